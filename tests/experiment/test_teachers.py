"""The teachers of a run in its plan: as inputs of its job, under the rules of its track, and in its cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from shipped import add, changed, written

from hatchery.errors import ConfigError
from hatchery.modeling.families import training_flops_per_sequence
from hatchery.typed import keys_of
from hatchery.workflow.cost_estimate import cost_settings, estimate
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.pretraining_time import PretrainingTimes


def taught(*teachers: dict[str, Any], weight: float = 0.5, **keys: Any) -> dict[str, Any]:
    chosen = {"teachers": list(teachers), "weight": weight}
    return {"pretraining": {"steps": 100, "distillation": chosen, **keys}}


def address(jobs: Jobs, run: str) -> str:
    return Path(jobs.storage_path(readable_path("demo", "pretraining", f"{run}-s42"))).parent.name


def test_teachers_are_inputs_of_the_job_so_that_a_changed_teacher_trains_its_students_anew(configuration: Path) -> None:
    student = taught({"run": "ltg_bert"}, {"run": "base", "seed": 2})
    jobs = Jobs(add(configuration, base={"seeds": [1, 2]}, student=student))
    call = jobs.call_at(address(jobs, "student"))
    runs = ("ltg_bert-s42", "base-s2")
    expected = [jobs.storage_path(readable_path("demo", "pretraining", run)) for run in runs]
    assert call.arguments["teachers"] == expected
    kept = json.loads(call.settings)["distillation"]
    assert kept == {"weight": 0.5, "temperature": 1.0}, "no name of a run, which may be renamed"
    base = {"seeds": [1, 2], "pretraining": {"optimizer": {"learning_rate": 0.003}}}
    other = Jobs(add(configuration, base=base, student=student))
    assert address(other, "student") != address(jobs, "student")
    assert address(other, "ltg_bert") == address(jobs, "ltg_bert")


def test_members_of_an_ensemble_are_inputs_of_a_job_that_trains_nothing(configuration: Path) -> None:
    joined = {"pretraining": {"steps": 0, "ensemble": [{"run": "base", "seed": 1}, {"run": "base", "seed": 2}]}}
    jobs = Jobs(add(configuration, base={"seeds": [1, 2]}, joined=joined, alone={"pretraining": {"steps": 0}}))
    call = jobs.call_at(address(jobs, "joined"))
    expected = [jobs.storage_path(readable_path("demo", "pretraining", run)) for run in ("base-s1", "base-s2")]
    assert call.arguments["members"] == expected and json.loads(call.settings)["ensemble"] is True
    assert "ensemble" not in json.loads(jobs.call_at(address(jobs, "alone")).settings)
    settings = json.loads(jobs.settings("write_cost", experiment="demo"))
    assert not any(run.get("teachers") for run in settings["runs"])
    joined_cost, cost = (
        next(each for each in estimate(cost_settings(settings)) if each.run == f"{name}-s42")
        for name in ("joined", "alone")
    )
    assert (joined_cost.parameters, joined_cost.model_bytes) == (2 * cost.parameters, 2 * cost.model_bytes)
    assert joined_cost.training_flops == joined_cost.export_bytes == 0


def test_the_model_of_an_order_is_an_input_whose_words_count(configuration: Path) -> None:
    ordered = {"pretraining": {"order": {"by": "loss", "model": {"run": "ltg_bert", "seed": 42}}}}
    short = {"pretraining": {"order": {"by": "length"}}}
    untrained = {"pretraining": {**ordered["pretraining"], "steps": 0}}
    jobs = Jobs(add(configuration, ordered=ordered, short=short, untrained=untrained))
    assert "order_model" not in jobs.call_at(address(jobs, "untrained")).arguments
    call = jobs.call_at(address(jobs, "ordered"))
    assert call.arguments["order_model"] == jobs.storage_path(readable_path("demo", "pretraining", "ltg_bert-s42"))
    kept = [json.loads(jobs.call_at(address(jobs, name)).settings)["order"] for name in ("ordered", "short")]
    rest = {"first": "easy", "epochs": None, "spread": 0.1}
    assert kept == [{"by": "loss", **rest}, {"by": "length", **rest}], "as before there were models of orders"
    itself = {"pretraining": {"order": {"by": "loss", "model": {"run": "ordered"}}}}
    with pytest.raises(
        ConfigError, match="demo/ordered-s42 depends on itself through the model that determines its data order"
    ):
        add(configuration, ordered=itself).check("experiment", "demo")


def test_a_run_ordered_by_a_column_reads_its_corpus_whose_sources_all_have_the_column(configuration: Path) -> None:
    runs = {"ordered": {"pretraining": {"order": {"by": "column", "column": "level"}}}}
    jobs = Jobs(add(configuration, **runs))
    arguments = jobs.call_at(address(jobs, "ordered")).arguments
    assert arguments["order_corpus"] == jobs.storage_path("results/corpora/demo/manifest.json")
    with pytest.raises(
        ConfigError, match=r"order\.column: got 'level', but the source 'bnc' of the corpus 'demo' has the"
    ):
        jobs.project.check("experiment", "demo")
    source = {"name": "mine", "data": {"path": "levels.csv"}, "reader": "plain_text"}
    levels = {"sources": [{**source, "options": {"numeric_columns": ["level"]}}]}
    sample = {"sample": {"corpus": "levels", "characters": 1000}}
    written(configuration, {"corpora/levels": levels, "corpora/levels_sample": sample})
    for corpus in ("levels", "levels_sample"):
        changed(configuration, ("corpus", corpus)).check("experiment", "demo")


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"pretraining": {"ensemble": [{"run": "ltg_bert"}]}}, "ensemble: got '1 model', expected at least two models"),
        (
            {"pretraining": {"steps": 9, "ensemble": [{"run": "one"}, {"run": "two"}]}},
            "ensemble: got '2 models', expected no ensemble, or `steps: 0`",
        ),
        (
            {"pretraining": {"steps": 0, "ensemble": [{"run": "ltg_bert"}, {"run": "ltg_brt"}]}},
            "pretraining.ensemble[1].run: got 'ltg_brt', expected a run of demo",
        ),
        (
            {"pretraining": {"steps": 0, "ensemble": [{"run": "elc_bert"}, {"run": "ltg_bert"}]}},
            "the ensemble 'joined' has another `model` than its first member, 'elc_bert' of demo; expected the same "
            "`model`",
        ),
    ],
)
def test_an_impossible_ensemble_is_refused_when_planning(
    configuration: Path, run: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        add(configuration, joined=run).check("experiment", "demo")
    assert message in str(refused.value)


def test_with_weight_0_a_run_is_that_without_teachers(configuration: Path) -> None:
    plain = {"pretraining": {"steps": 100}}
    jobs = Jobs(add(configuration, plain=plain, student=taught({"run": "ltg_bert"}, weight=0)))
    assert address(jobs, "student") == address(jobs, "plain")


def test_the_cost_of_a_run_includes_the_forward_passes_of_its_teachers(configuration: Path) -> None:
    plain, keys = {"pretraining": {"steps": 100}}, {"run": "ltg_bert"}
    jobs = Jobs(add(configuration, plain=plain, student=taught(keys), twice=taught(keys, keys)))
    settings = json.loads(jobs.settings("write_cost", experiment="demo"))
    costs = {cost.run: cost for cost in estimate(cost_settings(settings))}
    alone, once, twice = (costs[f"{name}-s42"].training_flops for name in ("plain", "student", "twice"))
    assert once > alone and twice - alone == pytest.approx(2 * (once - alone))
    project = jobs.project
    size = project.tokenizer(project.experiment("demo").tokenizer).vocabulary_size
    length = project.experiment("demo").runs["student"].pretraining.sequence_length
    small, large = (
        training_flops_per_sequence(keys_of(project.model_of("demo", run), "description"), size, length, 0.15)
        for run in ("student", "ltg_bert")
    )
    # A forward pass needs a third of the operations of training.
    assert (once - alone) / alone == pytest.approx(large / 3 / small, rel=0.01)
    evaluations = costs["student-s42"].development_flops
    assert evaluations == costs["plain-s42"].development_flops
    times = PretrainingTimes(project, json.dumps(settings))
    ratio = times.seconds("student-s42") / times.seconds("plain-s42")
    assert ratio == pytest.approx((once + evaluations) / (alone + evaluations), rel=1e-9)


def test_a_teacher_in_a_folder_is_an_input_and_its_configuration_is_read_for_the_cost(
    configuration: Path, tmp_path: Path
) -> None:
    manifest = tmp_path / "imported" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("{}", "utf-8")
    jobs = Jobs(add(configuration, student=taught({"path": str(manifest.parent)}), named=taught({"run": "ltg_bert"})))
    assert jobs.call_at(address(jobs, "student")).arguments["teachers"] == [str(manifest)]
    with pytest.raises(ConfigError, match=r"imported/config\.json: not the configuration of a model, expected the"):
        jobs.settings("write_cost", experiment="demo")
    model = keys_of(jobs.project.model_of("demo", "ltg_bert"), "description")
    (manifest.parent / "config.json").write_text(json.dumps({**model, "vocab_size": 99, "causal": True}), "utf-8")
    settings = json.loads(jobs.settings("write_cost", experiment="demo"))
    costs = {cost.run: cost.training_flops for cost in estimate(cost_settings(settings))}
    assert costs["student-s42"] == costs["named-s42"]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no teacher": ({"student": taught()}, "distillation.teachers: got no teachers, expected at least one teacher"),
    "a second teacher without a name": (
        {"student": taught({"run": "ltg_bert"}, {"seed": 42})},
        "distillation.teachers[1]: got neither `run` nor `path`, expected one of these two keys",
    ),
    "a circle": (
        {
            "one": taught({"run": "two"}),
            "two": {"pretraining": {"steps": 9, "initialise_from": {"run": "one"}}},
        },
        "runs.one.pretraining.distillation.teachers: demo/one-s42 depends on itself through its teachers or its",
    ),
    "fewer positions": (
        {
            "short": {"model_changes": {"position_embedding": "absolute", "max_position_embeddings": 64}},
            "student": taught({"run": "short"}, sequence_length=32, long_sequence={"from_fraction": 0.5, "factor": 4}),
        },
        "'short' of demo has positions for 64 tokens, expected at least 128, the longest sequence of 'student'",
    ),
    "another objective": (
        {"student": taught({"run": "ltg_bert"}, objective={"task": "causal"})},
        "'ltg_bert' of demo is not a causal model, expected a model that was trained, like this run, as a causal model",
    ),
    "masked tokens elsewhere": (
        {"student": taught({"run": "ltg_bert"}, objective={"task": "hybrid", "causal_share": 0.0})},
        "'ltg_bert' of demo predicts a masked token at the token's position, but this run predicts a masked token at "
        "the position before the token",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_line_when_planning(configuration: Path, mistake: str) -> None:
    runs, expected = MISTAKES[mistake]
    project = add(configuration, **runs)
    with pytest.raises(ConfigError) as caught:
        project.check("experiment", "demo")
    assert expected in str(caught.value)


def test_a_teacher_needs_no_more_positions_than_the_longest_sequence_has_tokens(configuration: Path) -> None:
    short = {"model_changes": {"position_embedding": "absolute", "max_position_embeddings": 64}}
    add(configuration, short=short, student=taught({"run": "short"}, sequence_length=64)).check("experiment", "demo")


def test_a_teacher_with_another_tokenizer_is_refused_with_both_names(configuration: Path) -> None:
    other = {"corpus": "demo", "tokenizer": "demo_gpt_bert", "pretraining": {"batch_size": 32, "steps": 9}}
    written(configuration, {"experiments/other": other | {"runs": {"base": {"model": "ltg_demo"}}}})
    project = add(configuration, student=taught({"run": "base", "experiment": "other"}))
    both = (
        r"'base' of other has the tokenizer 'demo_gpt_bert', 'student' of demo has the tokenizer 'demo'; expected the"
    )
    with pytest.raises(ConfigError, match=both):
        project.check("experiment", "demo")


def trained(words: str, epochs: float | None, *teachers: dict[str, str], **keys: Any) -> dict[str, Any]:
    budget = {"words_seen": words} | ({} if epochs is None else {"epochs": epochs})
    more = {"distillation": {"teachers": list(teachers)}} if teachers else {}
    return {"model": "ltg_demo", "pretraining": {"budget": budget, **more, **keys}}


def of(run: str, experiment: str | None = None) -> dict[str, str]:
    return {"run": run} | ({"experiment": experiment} if experiment else {})


def by_loss(model: dict[str, str]) -> dict[str, Any]:
    return {"by": "loss", "model": model}


FIRST, MIDDLE = trained("40M", 4), trained("30M", 3, of("first", "other"))
TRACKED = {
    "corpus": "demo",
    "tokenizer": "demo",
    "track": "strict_small",
    "pretraining": {"batch_size": 32, "budget": {"words_seen": "9M"}},
}
NAMES = "entry/last-s42, other/middle-s42, other/first-s42"


@pytest.mark.parametrize(
    ("last", "other", "rule"),
    [
        # 30M + 30M + 40M words, and 3 + 3 + 4 epochs: exactly the limit.
        (trained("30M", 3, of("middle", "other")), {}, ""),
        (
            trained("31M", 3, of("middle", "other")),
            {},
            f"{NAMES} have 101,000,000 words together, expected at",
        ),
        (trained("30M", 3.5, of("middle", "other")), {}, f"{NAMES} have 10.5 epochs together, expected at most 10"),
        (
            trained("30M", None, of("middle", "other")),
            {},
            "'last' of entry has no `budget.epochs`; expected this key",
        ),
        # The words of a teacher that is named twice count once.
        (trained("30M", 3, of("middle", "other"), of("first", "other")), {}, ""),
        # The budget includes the words of the initial model, which is also the teacher.
        (trained("60M", 6, of("middle", "other"), initialise_from=of("middle", "other")), {}, ""),
        (
            trained("61M", 6, of("middle", "other"), initialise_from=of("middle", "other")),
            {},
            "have 101,000,000 words together",
        ),
        # The initial model's experiment needs no track, because the run's own budget includes the words of that model.
        (trained("60M", 6, of("first", "other"), initialise_from=of("first", "other")), {"track": None}, ""),
        # An initial model that has a teacher; the run itself has no teacher.
        (
            trained("61M", 6, initialise_from=of("middle", "other")),
            {},
            "runs.last.pretraining.initialise_from: the budgets of",
        ),
        (trained("30M", 3, of("middle", "other")), {"track": None}, "the words of 'middle' of other are not counted"),
        (
            trained("30M", 3, of("middle", "other")),
            {"corpus": "demo_books"},
            "'first' of other trains on 'demo_books', expected 'demo'",
        ),
        (
            trained("30M", 3, {"path": "folder"}),
            {},
            "runs.last.pretraining.distillation: 'last' of entry depends on folder/manifest.json: expected a `run`",
        ),
        # A model whose loss orders the text counts as a teacher does: 60M + 40M words are the limit.
        (trained("60M", 6, order=by_loss(of("first", "other"))), {}, ""),
        (
            trained("61M", 6, order=by_loss(of("first", "other"))),
            {},
            "runs.last.pretraining.order.model: the budgets of entry/last-s42, other/first-s42 have 101,000,000 words",
        ),
        (trained("30M", 3, order=by_loss({"path": "folder"})), {}, "depends on folder/manifest.json: expected a `run`"),
    ],
)
def test_a_track_counts_the_words_of_teachers_and_of_their_teachers(
    configuration: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: dict[str, Any],
    other: dict[str, Any],
    rule: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/manifest.json").write_text("{}", "utf-8")
    (tmp_path / "folder/config.json").write_text("{}", "utf-8")
    teachers = {**TRACKED, "runs": {"first": FIRST, "middle": MIDDLE}, **other}
    files = {"experiments/other": teachers, "experiments/entry": {**TRACKED, "runs": {"last": last}}}
    found = written(configuration, files)
    if not rule:
        found.check("experiment", "entry")
        return
    with pytest.raises(ConfigError) as caught:
        found.check("experiment", "entry")
    assert rule in str(caught.value)
