"""Credits by the rules of BabyLM's server and collator, compared with their outputs (tests/golden/babylm_2026)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from babylm_cases import items_of, settings_of, source_of

from hatchery.errors import ConfigError
from hatchery.evaluation.minimal_pairs.counted_texts import counted_by_text, right_texts
from hatchery.evaluation.minimal_pairs.decisions import Decision, accuracy_table, decision
from hatchery.evaluation.minimal_pairs.items import Item
from hatchery.evaluation.minimal_pairs.predictions import predictions_json
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores


def shares(items: list[Item], decisions: list[Decision]) -> dict[str, float]:
    outcomes, credits = [one.outcome for one in decisions], [one.credit for one in decisions]
    return {row.name: row.accuracy for row in accuracy_table(items, outcomes, "x", credits) if row.level == "paradigm"}


def test_the_server_compares_right_answers_of_entity_tracking_with_other_rows_if_asked_for(golden_directory):
    golden = json.loads(
        (golden_directory / "babylm_2026/results/collated/entity_all_right_answers.json").read_text(encoding="utf-8")
    )
    expected = golden["server_scores"]["entity_all_rows"]
    assert min(expected.values()) < 1 == min(golden["server_scores"]["entity_any_option_filter"].values())
    settings = settings_of("entity_tracking/entity_tracking", counted_by="server")
    source, items = source_of(golden_directory, settings), items_of(golden_directory, settings)
    right = [Decision("correct", 0, 1.0) for _ in items]
    assert json.loads(predictions_json(items, right, settings)) == golden["predictions"]
    assert shares(items, right) == pytest.approx(golden["server_scores"]["entity_any_option_filter"])
    assert shares(
        items, counted_by_text(items, right, right_texts(items, source, settings), settings)
    ) == pytest.approx(expected)


GOLD = {
    "blimp": "blimp/blimp_filtered",
    "blimp_supplement": "blimp/supplement_filtered",
    "ewok": "ewok/ewok_filtered",
    "comps": "comps/comps",
    "entity_all_rows": "entity_tracking/entity_tracking",
}


@pytest.mark.parametrize("block", GOLD)
def test_predictions_are_compared_with_the_texts_of_the_server(golden_directory, block):
    settings = settings_of(GOLD[block], counted_by="server")
    found: dict[str, list[str]] = {}
    for paradigm, text in right_texts(
        items_of(golden_directory, settings), source_of(golden_directory, settings), settings
    ):
        # The server compares all rows of entity tracking whose right option does not contain "nothing".
        found.setdefault(paradigm, []).append(text)
    folder = golden_directory / "babylm_2026/results/collated/gold" / block
    theirs = {
        path.stem: [json.loads(line)["target"] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in folder.iterdir()
    }
    if block == "entity_all_rows":
        theirs = {uid: [text for text in texts if "nothing" not in text] for uid, texts in theirs.items()}
    assert found == theirs


FAST = {
    "blimp": "blimp/blimp_fast",
    "blimp_supplement": "blimp/supplement_fast",
    "ewok": "ewok/ewok_fast",
    "entity_tracking_filtered": "entity_tracking/entity_tracking_fast",
    "global_piqa_parallel": "global_piqa_parallel/global_piqa_parallel",
    "global_piqa_nonparallel": "global_piqa_nonparallel/global_piqa_nonparallel",
}


@pytest.mark.parametrize("block", FAST)
def test_of_checkpoints_the_collator_counts_what_it_did_if_asked_for(golden_directory, model, block):
    collated = golden_directory / "babylm_2026/results/collated/toy_sizes_two_of_three_checkpoints.json"
    theirs = json.loads(collated.read_text(encoding="utf-8"))["fast_eval_results"][block]
    settings = settings_of(FAST[block], official=True, counted_by="collator")
    items, source = items_of(golden_directory, settings), source_of(golden_directory, settings)
    for expected, backend in zip(theirs[1:], ("causal_nobos/causal", "causal_bos/causal"), strict=True):
        scored = candidate_scores(items, model(backend), official=True)
        values = scored.scores / np.maximum(scored.tokens, 1) if settings.per_token else scored.scores
        decided = [
            decision(item, row[: len(item.candidates)].tolist(), settings)
            for item, row in zip(items, values, strict=True)
        ]
        counted = counted_by_text(items, decided, right_texts(items, source, settings), settings)
        # The collator drew other texts among ties, so its share lies between all ties wrong and all ties right.
        least, most = (
            shares(items, [replace(one, credit=tie) if one.outcome == "tie" else one for one in counted])
            for tie in (0.0, 1.0)
        )
        # The paradigm of GlobalPIQA is the name of its folder. Here, the folder is the source.
        if settings.format == "global_piqa":
            ((name, share),), (source_name,) = expected.items(), least
            expected = {source_name: share}
        assert least.keys() == most.keys() == expected.keys()
        for name, share in expected.items():
            assert least[name] - 1e-9 <= share <= most[name] + 1e-9
        if block == "ewok":
            assert set(expected.values()) == {0.0} and max(shares(items, decided).values()) > 0


def test_what_the_organisers_count_is_of_their_rows_alone():
    with pytest.raises(ConfigError, match=r"counted_by: got 'server', expected null unless all pairs are"):
        settings_of("ewok/ewok_filtered", counted_by="server", pairs_per_paradigm=3)
