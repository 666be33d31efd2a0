"""Minimal pairs to read: paradigms that an untrained model already judges, and pairs that trained models misjudge."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.analyses.misjudged_pairs import (
    ANALYSIS,
    MisjudgedPairsSettings,
    _biased_table,
    _notes,
    _paradigms,
    _Suite,
    scored_pairs,
)
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import EvaluationError
from hatchery.evaluation.minimal_pairs.items import minimal_pair
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.raw.registration import register_source
from hatchery.sanitize import csv_text

# In "agreement" both sentences have two words; in "added" the bad sentence has one more.
SENTENCES = {"agreement": ("dogs{} sleep", "dogs{} sleeps"), "added": ("a dog{}", "a a dog{}")}
PAIRS = {
    name: [minimal_pair(name, name, str(n + 2), *(text.format(n) for text in sentences)) for n in range(30)]
    for name, sentences in SENTENCES.items()
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "pairs"
    folder.mkdir()
    for name, pairs in PAIRS.items():
        rows = [(pair.candidates[0].text, pair.candidates[1].text) for pair in pairs]
        (folder / f"{name}.csv").write_text(csv_text(("good", "bad"), rows), encoding="utf-8")
    register_source("pairs", folder, tmp_path / "pairs.json")
    return tmp_path / "pairs.json"


def judged(folder: Path, wrong: Mapping[str, Any], margin: float = 1.0, **more: int) -> Path:
    """Write the scores of a model that misjudges the named lines of each paradigm; return the manifest. With the margin
    0, the model ties both sentences of these lines."""
    columns = {"good": "good", "bad": "bad"}
    settings = {"stage": "score_minimal_pairs", "suite": "own", "format": "rows", "columns": columns, "files": "*.csv"}
    settings |= more
    with stage_run(folder / "manifest.json", settings) as run:
        rows = [
            {"paradigm": pair.paradigm, "pair_id": pair.item_id, "score_good": -5.0}
            | {"score_bad": -5.0 + margin * int(pair.item_id) if int(pair.item_id) in wrong.get(name, ()) else -9.0}
            | {"outcome": ("wrong" if margin else "tie") if int(pair.item_id) in wrong.get(name, ()) else "correct"}
            | {"tokens_good": len(pair.candidates[0].text.split()), "tokens_bad": len(pair.candidates[1].text.split())}
            for name in sorted(PAIRS)
            for pair in PAIRS[name]
        ]
        pl.DataFrame(rows).write_parquet(run.add_output(run.folder / "scores.parquet"))
    return folder / "manifest.json"


def found_of(
    source: Path, models: Mapping[str, Path], untrained: str = "", seeds: Sequence[Path] = (), suites: str = "own"
) -> Findings:
    """Return the findings of models with one seed each; the last model may have further `seeds`. All `suites` have the
    same scores."""
    runs = [(SeededRun.from_seed(model, 1, f"the {model}"), path) for model, path in models.items()]
    last = runs[-1][0]
    runs += [(SeededRun.from_seed(last.model, seed, last.label), path) for seed, path in enumerate(seeds, 2)]
    tables = {f"minimal_pairs/{run.name}:{suite}": path for suite in suites.split() for run, path in runs}
    tables |= {f"pair_files/{suite}": source for suite in suites.split()}
    study = Study("mine", tuple(run for run, _ in runs), tables=tables)
    return ANALYSIS.run(MisjudgedPairsSettings(untrained=(untrained,) if untrained else ()), study)


def rows(found: Findings, kind: str) -> list[Mapping[str, Any]]:
    return [row for row in found.rows if row["kind"] == kind]


def test_a_paradigm_that_an_untrained_model_judges_is_biased_and_its_lengths_stand_beside_it(
    tmp_path: Path, source: Path
) -> None:
    half = range(2, 17)
    models = {"random": judged(tmp_path / "random", {"agreement": half}), "ltg": judged(tmp_path / "ltg", {})}
    found = found_of(source, models, untrained="random")
    added, agreement = rows(found, "paradigm")
    assert (agreement["untrained_percent"], agreement["biased"], agreement["shorter_is_good_percent"]) == (50, 0, 50)
    assert (added["untrained_percent"], added["biased"], added["shorter_is_good_percent"]) == (100, 1, 100)
    assert (added["tokens_good"], added["tokens_bad"], added["pairs"]) == (2, 3, 30)
    (table,) = found.tables
    (row,) = table.rows
    assert list(row.cells) == ["own: added", "30", "100.0", "2.0", "3.0", "100.0"]
    assert found.notes[0].startswith("1 of 2 paradigms are biased") and "the chance level is not 50 %" in found.notes[0]


def test_without_an_untrained_model_lengths_alone_tell_of_a_bias(tmp_path: Path, source: Path) -> None:
    found = found_of(source, {"ltg": judged(tmp_path / "ltg", {})})
    assert [(row["paradigm"], row["biased"], row["untrained_percent"]) for row in rows(found, "paradigm")] == [
        ("added", 1, None),
        ("agreement", 0, None),
    ]
    assert any("only from the lengths of the sentences" in note for note in found.notes)


@pytest.mark.parametrize(("paradigms", "biased"), [(2, 1), (3, 1), (4, 0)])
def test_a_paradigm_is_biased_only_if_so_few_would_be_by_chance_among_all_of_them(paradigms: int, biased: int) -> None:
    frame = pl.DataFrame(
        {
            "paradigm": [f"p{index // 30}" for index in range(30 * paradigms)],
            **{name: [4] * 30 * paradigms for name in ("tokens_good", "tokens_bad")},
        }
    )
    guessed = np.array(([1.0] * 25 + [0.0] * 5) + [1.0, 0.0] * 15 * (paradigms - 1))
    first, *others = _paradigms("own", _Suite(frame, {}, np.zeros(len(guessed)), guessed))
    # 25 or more heads of 30, or as many tails: 0.00033. Times three paradigms, this is below 0.001, times four above.
    p_value = 2 * sum(math.comb(30, heads) for heads in range(25, 31)) / 2**30
    assert first["p_value"] == pytest.approx(p_value, rel=1e-2) and first["untrained_percent"] == pytest.approx(83.3333)
    assert (first["biased"], {row["biased"] for row in others}) == (biased, {0})


def test_pairs_that_most_models_misjudge_come_first_with_their_sentences(tmp_path: Path, source: Path) -> None:
    models = {
        "random": judged(tmp_path / "random", {"added": range(2, 32), "agreement": range(2, 32)}),
        "ltg": judged(tmp_path / "ltg", {"agreement": range(4, 12), "added": [3]}),
        "elc": judged(tmp_path / "elc", {"agreement": [5]}),
    }
    found = found_of(source, models, untrained="random")
    first, *rest = rows(found, "pair")
    assert (first["pair_id"], first["good"], first["bad"]) == ("5", "dogs3 sleep", "dogs3 sleeps")
    assert first["misjudged_by"] == "ltg;elc" and len(rest) == 8
    # The other pairs are sorted by margin.
    assert [row["pair_id"] for row in rest] == ["11", "10", "9", "8", "7", "6", "4", "3"]
    shown = [row.cells for row in found.tables[-1].rows]
    assert shown[0] == ["agreement, 5", "dogs3 sleep", "dogs3 sleeps", "the ltg, the elc"]
    # Of two trained models, one prefers the bad sentence of pair 11 by 11 nats, the other the good sentence by 4 nats.
    assert (first["margin_nats"], rest[0]["margin_nats"]) == (5.0, 3.5)
    # The table shows three pairs per paradigm.
    rows_of_suite = ["agreement, 5", "agreement, 11", "agreement, 10", "added, 3"]
    assert [cells[0] for cells in shown] == rows_of_suite
    again = found_of(source, models, untrained="random", suites="own other").tables[-1]
    assert [group.heading for group in again.groups] == ["own", "other"]
    assert [row.cells[0] for row in again.rows] == 2 * rows_of_suite
    # Of five or more models, the table shows the number.
    models |= dict.fromkeys(("a", "b", "c"), models["elc"])
    assert [row.cells[3] for row in found_of(source, models, untrained="random").tables[-1].rows][:2] == [
        "5 of 5 models",
        "1 of 5 models",
    ]


def test_a_model_misjudges_a_pair_that_half_of_its_seeds_have_wrong(tmp_path: Path, source: Path) -> None:
    first, second = judged(tmp_path / "one", {"agreement": [5]}, 0.0), judged(tmp_path / "two", {"agreement": [5, 6]})
    third = judged(tmp_path / "other", {})
    found = rows(found_of(source, {"elc": third, "ltg": first}, seeds=[second]), "pair")
    assert [(row["pair_id"], row["misjudged_by"]) for row in found] == [("5", "ltg"), ("6", "ltg")]
    # Margins are means over runs, so two seeds count twice: (0 + 5 - 4) / 3 and (-4 + 6 - 4) / 3.
    assert [row["margin_nats"] for row in found] == pytest.approx([1 / 3, -2 / 3], abs=1e-4)
    third_seed = found_of(source, {"ltg": first}, seeds=[second, third]).tables[-1]
    assert [row.cells[3] for row in third_seed.rows] == ["the ltg", "some seeds"]


def test_files_with_other_pairs_than_were_scored_are_refused(tmp_path: Path, source: Path) -> None:
    path = judged(tmp_path / "ltg", {})
    (tmp_path / "pairs/agreement.csv").write_text(csv_text(("good", "bad"), [("a", "b")]), encoding="utf-8")
    register_source("pairs", tmp_path / "pairs", source)
    with pytest.raises(EvaluationError, match=r"ltg/manifest\.json: the pairs differ from the pairs of"):
        found_of(source, {"ltg": path})


def test_thresholds_of_a_bias_are_a_tenth_for_judgements_and_a_quarter_for_lengths() -> None:
    right, shorter = {"a": 600, "b": 599, "c": 500, "d": 500}, {"c": 750, "d": 749}
    tokens_bad = [4] * 2000 + [5 if index < shorter[name] else 3 for name in "cd" for index in range(1000)]
    frame = pl.DataFrame({"paradigm": [*"abcd"] * 1000, "tokens_good": [4] * 4000}).sort("paradigm")
    guessed = np.concatenate([np.arange(1000) < count for count in right.values()]).astype(float)
    suite = _Suite(frame.with_columns(tokens_bad=pl.Series(tokens_bad)), {}, np.zeros(4000), guessed)
    found = [
        (row["untrained_percent"], row["shorter_is_good_percent"], row["biased"]) for row in _paradigms("own", suite)
    ]
    # 599 of 1,000 right judgements are no chance either, but less than a tenth from half.
    assert found == [(60.0, 50.0, 1), (59.9, 50.0, 0), (50.0, 75.0, 1), (50.0, 74.9, 0)]


def test_the_table_of_biased_paradigms_shows_the_twenty_that_are_farthest_from_half() -> None:
    same: dict[str, Any] = {"suite": "own", "pairs": 1, "tokens_good": 2, "tokens_bad": 2}
    biased = [
        {**same, "paradigm": f"p{n}", "untrained_percent": None, "shorter_is_good_percent": 50 + n}
        if n % 2
        else {**same, "paradigm": f"p{n}", "untrained_percent": 50 - n, "shorter_is_good_percent": 50}
        for n in range(24)
    ]
    (table,) = _biased_table(biased)
    assert [row.cells[0] for row in table.rows] == [f"own: p{n}" for n in range(23, 3, -1)]


def test_a_note_says_that_no_paradigm_is_biased_or_that_there_is_no_untrained_model() -> None:
    suite = _Suite(pl.DataFrame(), {}, np.zeros(0), np.zeros(0))
    (note,) = _notes({"own": suite}, [], [], [])
    assert note.startswith("No paradigm is biased")
    (note,) = _notes({"own": _Suite(suite.pairs, {}, suite.margins, None)}, [], [], [])
    assert note.startswith("There is no untrained model")
    # The table shows at most 20 biased paradigms.
    for biased, limited in ((20, False), (21, True)):
        rows: list[dict[str, Any]] = [{"paradigm": f"p{number}"} for number in range(30)]
        note = _notes({"own": suite}, rows, rows[:biased], [])[0]
        assert note.startswith(f"{biased} of 30 paradigms are biased")
        assert ("the table shows the 20 paradigms that are farthest" in note) == limited


def test_pairs_of_a_part_of_a_suite_are_those_that_the_seed_draws(tmp_path: Path, source: Path) -> None:
    drawn = [scored_pairs(judged(tmp_path / f"{seed}", {}, pairs_per_paradigm=5, seed=seed), source) for seed in (1, 2)]
    assert [frame.group_by("paradigm").len()["len"].to_list() for frame in drawn] == [[5, 5]] * 2
    assert not drawn[0].equals(drawn[1])


def test_an_experiment_with_minimal_pairs_has_this_analysis_with_its_untrained_models(repository: Path) -> None:
    project = Project(repository / "config")
    assert ANALYSIS.own(project.experiment("demo")) == {"untrained": ["random"]}
    assert ANALYSIS.own(project.experiment("my_text")) is None
