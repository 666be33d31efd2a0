"""A run ends within its budget of words, and its marks are the same checkpoints after kills and in chains."""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ConfigError
from hatchery.runner import run_stage
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training import continuation
from hatchery.training.batches import TrainingBatches
from hatchery.training.checkpoints import Position
from hatchery.training.continuation import initial_measures, words_before
from hatchery.training.curriculum import order_of
from hatchery.training.data_order import EpochSlice, epochs_of
from hatchery.training.inputs import Inputs
from hatchery.training.milestones import BABYLM_MARKS, mark_name, milestone_place, words_of_mark
from hatchery.training.objectives import objective_of
from hatchery.training.run import spent_budget
from hatchery.training.settings import PretrainSettings, pretrain_settings
from hatchery.training.stages.export_milestone import export_milestone
from hatchery.training.start_settings import BudgetSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS
from hatchery.training.word_budget import ShownWords, Spending, most_words, spend

Make = Callable[..., Any]
# The generated corpus has 120 documents of 72 words.
TEXT = 120 * 72
MARKS = [500, 1_000, 1_010, 1_400]
# The step of the second mark also reaches the third.
NAMES = ["chck_500", "chck_1K", "chck_1010", "chck_1400"]


def test_the_challenge_wants_19_or_28_checkpoints(golden_directory: Path) -> None:
    lists = json.loads((golden_directory / "babylm_2026/results/aoa_checkpoint_lists.json").read_text())
    for track, wanted in (("strict-small", BABYLM_MARKS[:19]), ("others", BABYLM_MARKS)):
        assert lists[track] == {"names": [mark_name(words) for words in wanted], "words": list(wanted)}
        assert [words_of_mark(name) for name in lists[track]["names"]] == lists[track]["words"]
    assert [words_of_mark(name) for name in ("chck_7", "chck_3K", "chck_1500K")] == [7, 3000, 1_500_000]


OBJECTIVES: dict[str, dict[str, Any]] = {
    "segments cut at random": {"segments": "bnc", "short_probability": 0.5},
    "packed": {"segments": "packed", "short_probability": 0.0},
    "pairs of texts": {"sentence_pairs": "document", "segments": "bnc"},
    "causal": {"task": "causal"},
    "both kinds": {"task": "hybrid", "causal_share": 0.25},
    "blocks filled at random": {"task": "hybrid", "causal_share": 0.5, "segments": "blocks", "kind": "short_span"},
}


def spent(
    data: Any, make: Make, objective: dict[str, Any], words: int, **more: Any
) -> tuple[PretrainSettings, Spending]:
    changes: dict[str, Any] = {"objective": objective, "budget": {"words_seen": words}, "sequence_length": 32, **more}
    values = make(**changes)
    del values["steps"]
    settings = pretrain_settings(values)
    chosen = objective_of(settings.objective)
    shards = TokenShards.open(data.tokens, TRAINING_SPLIT)
    return settings, spend(settings, chosen, partial(chosen.examples, shards), words)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_as_many_steps_as_are_within_the_budget_and_not_one_more(
    token_data: Any, pretrain_slice: Make, objective: dict[str, Any]
) -> None:
    # With segments cut at random, an epoch shows only part of each text.
    most = (7 if objective.get("segments") == "bnc" else 3) * TEXT + 100
    # Batches grow, and sequences become longer after half of the steps.
    grows = {"initial_batch_fraction": 0.5, "length_schedule": [{"from_fraction": 0.5, "factor": 2}]}
    settings, found = spent(token_data, pretrain_slice, objective, most, checkpoints_at=[3_000, most], **grows)
    chosen = objective_of(settings.objective)
    shards = TokenShards.open(token_data.tokens, TRAINING_SPLIT)

    def shown(steps: int) -> list[int]:
        plan = StepPlan(settings.with_steps(steps))
        made = partial(chosen.examples, shards)
        drawn = TrainingBatches(plan, settings.seed, SINGLE_PROCESS, None, made, partial(order_of, chosen))
        return [drawn.at(step).words for step in range(steps)]

    plan = StepPlan(settings.with_steps(found.steps))
    # A third epoch has begun, in which an objective with random cuts shows other text.
    assert epochs_of(chosen, chosen.examples(shards, settings.sequence_length), plan) > 2
    words = shown(found.steps)
    assert found.words_seen == sum(words) <= most < sum(shown(found.steps + 1))
    mark = found.marks["chck_3K"]
    assert mark.words == sum(words[: mark.step]) >= 3_000 > sum(words[: mark.step - 1])
    assert found.marks[mark_name(most)].step == found.steps


@dataclasses.dataclass
class Drawn:
    """Sequence i has 100 + i words, and 10 more words per epoch if each epoch is cut anew."""

    same_in_every_epoch: bool
    asked: list[tuple[int, int, list[int]]] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return 3

    def words(self, seed: int, epoch: int, indices: np.ndarray) -> np.ndarray:
        self.asked += [(seed, epoch, indices.tolist())] if len(indices) else []
        return 100 + (0 if self.same_in_every_epoch else 10 * epoch) + indices


def test_words_of_each_epoch_are_counted_once_and_anew_where_its_text_is_another() -> None:
    for same, expected in ((True, [203, 102, 203, 204]), (False, [203, 102, 223, 244])):
        examples = Drawn(same)
        shown = ShownWords(examples, 7, 2)
        parts = [(0, [1, 2]), (0, [2]), (1, [2, 1]), (2, [1, 3])]
        assert [shown.of(EpochSlice(epoch, np.array(indices))) for epoch, indices in parts] == expected
        again = [(1, [2, 1]), (2, [1, 3])]
        assert examples.asked[:1] == [(7, 0, [1, 2])]
        assert examples.asked[1:] == ([(7, 2, [3])] if same else [(7, epoch, which) for epoch, which in again])


WORDS_BEFORE: dict[str, tuple[dict[str, Any], str, int | None, int | None]] = {
    # `words` counts the run's own words, `words_seen` those of all its model's trainings: 100, then 50 more, then 30
    # more.
    "weights of the first": ({"words": 100}, "weights", None, 100),
    "the first goes on": ({"words": 100}, "training", None, 0),
    "weights of the second": ({"words": 50, "words_seen": 150, "initial_model": {}}, "weights", None, 150),
    "the second goes on": ({"words": 50, "words_seen": 150, "initial_model": {}}, "training", None, 100),
    "weights of the third": ({"words": 80, "words_seen": 180, "initial_model": {}}, "weights", None, 180),
    "the third goes on": ({"words": 80, "words_seen": 180, "initial_model": {}}, "training", None, 100),
    "after a step of the first": ({"words": 100}, "weights", 3, 20),
    "after a step of the second": ({"words": 50, "words_seen": 150, "initial_model": {}}, "weights", 3, 120),
    "after a step that nobody counted": ({"words": 100}, "weights", 4, None),
    "nobody counted before": ({"words": 50, "initial_model": {}}, "weights", None, None),
    "nobody counted": ({}, "weights", None, None),
}


@pytest.mark.parametrize(("measures", "take", "step", "expected"), WORDS_BEFORE.values(), ids=WORDS_BEFORE.keys())
def test_words_before_a_run_are_those_of_every_run_that_its_own_count_leaves_out(
    pretrain_slice: Make, tmp_path: Path, measures: dict[str, Any], take: str, step: int | None, expected: int | None
) -> None:
    with stage_run(tmp_path / "manifest.json", {"stage": "pretrain"}) as run:
        rows = ({"step": 3, "words": 20}, {"step": 4})
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        run.add_output(tmp_path / "metrics.jsonl")
        run.measures.update(measures)
    chosen = {"take": take} | ({} if step is None else {"step": step})
    settings = pretrain_settings(pretrain_slice(initialise_from=chosen))
    assert words_before(settings, tmp_path / "manifest.json") == expected
    assert words_before(pretrain_settings(pretrain_slice()), None) == 0


def test_counts_before_a_training_that_goes_on_are_not_lost_to_the_next_one(
    pretrain_slice: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chain: 100 steps; 20 steps from those weights; the same training continued to 50; a start from all 150 steps."""
    monkeypatch.setattr(continuation, "initial_position", lambda initial: Position(20, 200, None))

    def started(name: str, take: str, steps: int, before: dict[str, Any] | None) -> dict[str, Any]:
        path = tmp_path / name / "manifest.json"
        with stage_run(path, {"stage": "pretrain"}) as run:
            run.measures |= {"steps": steps, "tokens": 10 * steps} | ({"initial_model": before} if before else {})
        return initial_measures(pretrain_settings(pretrain_slice(initialise_from={"take": take})), path)

    second = started("first", "weights", 100, None)
    assert second == {"take": "weights", "earlier_steps": 100, "earlier_tokens": 1_000}
    third = started("second", "training", 20, second)
    left_out = {"left_out_steps": 100, "left_out_tokens": 1_000}
    assert third == {"take": "training", "earlier_steps": 20, "earlier_tokens": 200, **left_out}
    assert started("third", "training", 50, third)["left_out_steps"] == 100
    assert started("third", "weights", 50, third) == {"take": "weights", "earlier_steps": 150, "earlier_tokens": 1_500}
    alone = started("first", "training", 20, None)
    assert alone == {"take": "training", "earlier_steps": 20, "earlier_tokens": 200}


def test_words_before_count_and_a_budget_smaller_than_a_step_is_one_line(token_data: Any, pretrain_slice: Make) -> None:
    settings, whole = spent(token_data, pretrain_slice, OBJECTIVES["packed"], 4_000)
    chosen = objective_of(settings.objective)
    examples = partial(chosen.examples, TokenShards.open(token_data.tokens, TRAINING_SPLIT))
    later = spend(settings, chosen, examples, 4_000, words_before=3_000)
    assert later.steps < whole.steps and 3_000 < later.words_seen <= 4_000
    # A continued training has already done the earlier steps.
    part = 0
    order = order_of(chosen, StepPlan(settings.with_steps(5)), settings.seed, examples)
    shown = ShownWords(examples(32), settings.seed, 1)
    for step in range(5):
        part += sum(map(shown.of, order(StepPlan(settings.with_steps(5)).at(step))))
    assert spend(settings, chosen, examples, 4_000, words_before=part, first_step=5) == dataclasses.replace(
        whole, marks={}
    )
    # A budget or mark includes a step that ends at exactly its number of words.
    assert spend(settings, chosen, examples, whole.words_seen).steps == whole.steps
    assert spend(settings, chosen, examples, whole.words_seen - 1).steps == whole.steps - 1
    marks = spent(token_data, pretrain_slice, OBJECTIVES["packed"], 4_000, checkpoints_at=[part, part + 1])[1].marks
    assert [mark.step for mark in marks.values()] == [5, 6] and marks[mark_name(part)].words == part
    with pytest.raises(ConfigError, match="more than the 10 words that are left"):
        spend(settings, chosen, examples, 4_000, words_before=3_990)


def test_a_run_spends_what_its_initial_model_left_of_a_budget_in_words_of_one_rule(
    token_data: Any, pretrain_slice: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = spent(token_data, pretrain_slice, OBJECTIVES["packed"], 4_000, checkpoints_at=[1])
    initial, first = tmp_path / "manifest.json", whole.marks["chck_1"]

    def left(take: str, measures: dict[str, Any], **limits: int) -> Spending:
        with stage_run(initial, {"stage": "pretrain"}) as run:
            run.measures.update(measures)
        budget = {"words_seen": 4_000, **limits}
        chosen = {"objective": OBJECTIVES["packed"], "sequence_length": 32, "initialise_from": {"take": take}}
        values = pretrain_slice(budget=budget, **chosen)
        del values["steps"]
        return spent_budget(pretrain_settings(values), Inputs(token_data.tokens, token_data.tokenizer, initial))

    after = left("weights", {"words": 3_000})
    assert after.words_seen is not None and whole.words_seen is not None
    assert after.steps == pytest.approx(1_000 / whole.words_seen * whole.steps, abs=1)
    assert 4_000 - 8 * 32 < after.words_seen <= 4_000
    # A training that goes on after its first step ends as if it had not been interrupted.
    monkeypatch.setattr("hatchery.training.run.initial_position", lambda _: Position(first.step, 256, first.words))
    assert left("training", {"words": first.words}) == dataclasses.replace(whole, marks={})
    rules = f"the initial model {initial} counts words by the rule adjusted, and the corpus of this run .* white_space"
    with pytest.raises(ConfigError, match=rules):
        left("weights", {"words": 100, "word_count": "adjusted"})
    with pytest.raises(ConfigError, match=f"budget: {initial} contains no count of words, which"):
        left("weights", {})
    with pytest.raises(ConfigError, match=r"corpus_bytes: the text has [\d,]+ bytes, expected at most 60"):
        left("weights", {"words": 100}, corpus_bytes=60)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"steps": None}, "steps: the key is missing; expected `steps` or a `budget`"),
        ({"budget": {"words_seen": "1M"}}, "which cannot be combined with `budget`, because the budget determines"),
        (
            {"checkpoints_at": "babylm"},
            "checkpoints_at: got 'babylm', expected no word milestones, because there is no budget in words",
        ),
        (
            {"steps": None, "budget": {"words_seen": "1K"}, "checkpoints_at": ["2K"]},
            "checkpoints_at: got 2000, expected at most the 1,000 words of the budget",
        ),
        (
            {"steps": None, "budget": {"words_seen": "1K"}, "milestones": [10]},
            r"milestones: got \[10\], which cannot be combined with `budget`",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(pretrain_slice: Make, changes: dict[str, Any], complaint: str) -> None:
    values = {key: value for key, value in pretrain_slice(**changes).items() if value is not None}
    with pytest.raises(ConfigError, match=complaint):
        pretrain_settings(values)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # In 10 epochs, 95 words of text are 95 % of a budget of 1,000 words.
        (95, 950),
        (94, "words_seen: got 1,000, expected at most about 940, which is budget.epochs (10) times the 94"),
        (100, 1_000),
        (101, "corpus_words: the text has 101 words, expected at most 100"),
    ],
)
def test_a_text_may_be_as_long_as_its_limit_and_lack_a_twentieth(text: int, told: int | str) -> None:
    limits = BudgetSettings(1_000, epochs=10.0, corpus_words=100)
    if isinstance(told, int):
        assert most_words(limits, text) == told
        return
    with pytest.raises(ConfigError) as caught:
        most_words(limits, text)
    assert told in str(caught.value)


def test_epochs_and_the_words_of_the_text_are_limits_too() -> None:
    limits = BudgetSettings(100, epochs=10.0, corpus_words=10)
    assert most_words(limits, 10) == 100
    # Part of the text is held out, so ten epochs have fewer words; the budget's own mark is still the finished model.
    assert most_words(BudgetSettings(1_000, epochs=10.0), 97) == 970
    with pytest.raises(ConfigError, match="corpus_words: the text has 11 words, expected at most 10"):
        most_words(limits, 11)
    by_bytes = BudgetSettings(100, corpus_bytes=60)
    assert most_words(by_bytes, 10, 60) == 100
    with pytest.raises(ConfigError, match="corpus_bytes: the text has 61 bytes, expected at most 60"):
        most_words(by_bytes, 10, 61)
    with pytest.raises(
        ConfigError, match="corpus_bytes: the bytes of the text were not counted; encode the corpus again"
    ):
        most_words(by_bytes, 10)
    with pytest.raises(ConfigError, match="words_seen: got 100, expected at most about 50"):
        most_words(limits, 5)


def contents(folder: Path) -> dict[str, str]:
    """Return digests of all files of a run and of its models, except for files that depend on the machine."""
    own = {"provenance.json", "speed.jsonl", "finished.json"}
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in own)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def budget(make: Make, words: int, marks: list[int], **more: Any) -> Any:
    command = make(budget={"words_seen": words}, checkpoints_at=marks, **more)
    del command.settings["steps"]
    return command


@pytest.mark.slow
def test_marks_survive_a_kill_and_add_up_over_a_chain(make_command: Make) -> None:
    whole, killed = (budget(make_command, 1_400, MARKS, objective={"task": "causal"}) for _ in range(2))
    log = whole.finish()
    manifest = read_manifest(whole.output)
    steps = {name: mark["step"] for name, mark in manifest.measures["marks"].items()}
    assert sorted(steps) == sorted(NAMES) and steps["chck_1K"] == steps["chck_1010"] < steps["chck_1400"]
    assert f"the `budget` allows {steps['chck_1400']} steps" in log
    assert manifest.measures["steps"] == steps["chck_1400"] and manifest.measures["words"] <= 1_400
    rows = {row["step"]: row for row in whole.rows()}
    assert [rows[mark["step"]]["words"] for mark in manifest.measures["marks"].values()] == [
        mark["words"] for mark in manifest.measures["marks"].values()
    ]
    assert all("development_loss" in rows[step] for step in steps.values())

    # Kill the run between the marks, after the first mark's model is kept.
    killed.runtime["checkpoint_interval_steps"] = 1
    killed.kill_after(steps["chck_500"] + 1)
    assert "continues after step" in killed.finish()
    assert contents(killed.output.parent) == contents(whole.output.parent)

    # The last mark is the finished model. The second and third marks are one model. A milestone can be exported with a
    # manifest.
    folder = whole.output.parent
    files = {name: contents(folder / milestone_place(name)) for name in NAMES}
    own = contents(folder)
    assert files["chck_1400"] == {name: own[name] for name in files["chck_1400"]} and len(files["chck_1400"]) == 3
    assert files["chck_1K"] == files["chck_1010"] != files["chck_500"]
    read = {"tokens": whole.tokens, "tokenizer": whole.tokenizer, "pretraining": whole.output}
    output = folder / milestone_place("chck_1K") / "manifest.json"
    settings = {"stage": "export_milestone", "stage_version": 1, "model": "tiny", "milestone": "chck_1K"}
    run_stage(export_milestone, settings, output, **read)
    made = read_manifest(output)
    expected = {"steps": steps["chck_1K"], "words_seen": manifest.measures["marks"]["chck_1K"]["words"]}
    assert {key: made.measures[key] for key in expected} == expected and len(made.outputs) == 3
    assert made.settings["milestone"] == "chck_1K"

    # A later run from the finished model has the remaining words of its budget.
    chained = {"initial": whole.output, "initialise_from": {"take": "weights"}, "objective": {"task": "causal"}}
    later = budget(make_command, 2_000, [1_600, 2_000], **chained)
    later.finish()
    seen = read_manifest(later.output).measures
    assert seen["words_seen"] == manifest.measures["words"] + seen["words"] <= 2_000
    assert seen["marks"]["chck_1600"]["words"] >= 1_600 and sorted(seen["marks"]) == ["chck_1600", "chck_2K"]


@pytest.mark.slow
def test_words_add_up_over_three_trainings_of_which_the_last_goes_on(make_command: Make) -> None:
    causal = {"objective": {"task": "causal"}}
    first = budget(make_command, 700, [700], **causal)
    first.finish()
    start = {"initial": first.output, "initialise_from": {"take": "weights"}, "keep_training_state": True}
    second = budget(make_command, 1_400, [1_000, 1_400], **start, **causal)
    second.finish()
    more = {"initial": second.output, "initialise_from": {"take": "training"}}
    third = budget(make_command, 2_000, [1_600, 2_000], **more, **causal)
    third.finish()
    one, two, three = (read_manifest(command.output).measures for command in (first, second, third))
    # The third training continues the count of the second, whose 1,400 words include those of the first.
    assert 650 < one["words"] <= 700 and one["words"] + two["words"] == two["words_seen"] <= 1_400
    assert two["words"] < three["words"] and one["words"] + three["words"] == three["words_seen"] <= 2_000
    rows = third.rows()
    widest = max(row["words"] - before["words"] for before, row in itertools.pairwise(rows))
    assert three["words_seen"] + widest > 2_000
    mark = three["marks"]["chck_1600"]
    at, before = (next(row["words"] for row in rows if row["step"] == mark["step"] - back) for back in (0, 1))
    assert one["words"] + before < 1_600 <= one["words"] + at == mark["words"]
    assert rows[0]["step"] == two["steps"] + 1 or rows[0]["words"] <= two["words"]
