"""The experiments of the reduced-vocabulary paper have the settings of the paper and of its study's files."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from shipped import PROJECT, REPOSITORY, trained

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.correlation import counting
from hatchery.analysis.stages.analyse import analyse_settings
from hatchery.analysis.studies import analyses_of
from hatchery.modeling.families import model_config
from hatchery.modeling.roberta.config import RobertaConfig
from hatchery.modeling.roberta.encoder import roberta_parameters
from hatchery.typed import keys_of, plain
from hatchery.workflow.jobs import Jobs

CONSTRAINED = "reduced_vocabulary_constrained"
PUBLISHED = f"{CONSTRAINED}_as_published"
UNCONSTRAINED = "reduced_vocabulary_unconstrained"
SUBWORDS = {CONSTRAINED: 19_000, PUBLISHED: 19_000, UNCONSTRAINED: 29_000}
SETS = {"set_1": 16, "set_2": 16, "set_3": 30, "larger": 7}
RATES = [(2e-3,), (1e-3,), (6e-4,), (5e-4,), (1e-4,)]
REPLACED = ("random_probability", "keep_probability")
TRIALS: dict[str, tuple[str, tuple[str, ...], list[tuple[float, ...]], tuple[float, ...]]] = {
    "replacement": ("objective", REPLACED, [(0, 0), (0.1, 0), (0, 0.1), (0.1, 0.1)], (0, 0)),
    "peak_rate": ("optimizer", ("learning_rate",), RATES, (5e-4,)),
    "peak_rate_larger": ("optimizer", ("learning_rate",), RATES, (1e-4,)),
    "weight_decay": ("optimizer", ("weight_decay",), [(0,), (0.01,), (0.1,)], (0.01,)),
}


def config_of(experiment: str, run: str) -> RobertaConfig:
    model = keys_of(PROJECT.model_of(experiment, run), "description")
    config = model_config({**model, "vocab_size": SUBWORDS[experiment]})
    assert isinstance(config, RobertaConfig)
    return config


@pytest.mark.parametrize("experiment", [CONSTRAINED, PUBLISHED])
def test_the_study_has_the_papers_numbers_of_models_and_a_twin_of_each(experiment: str) -> None:
    assert {name: len(trained(PROJECT, experiment, name)) for name in SETS} == SETS
    runs = PROJECT.experiment(experiment).runs
    assert set(runs) == {name + end for name in trained(PROJECT, experiment) for end in ("", "_untrained")}
    assert {run.seeds[0] for run in runs.values()} == {0}


@pytest.mark.parametrize("experiment", [UNCONSTRAINED, f"{UNCONSTRAINED}_as_published"])
def test_ten_models_are_trained_on_any_words(experiment: str, golden_directory: Path) -> None:
    printed = printed_rows(golden_directory, 4)
    assert set(trained(PROJECT, experiment)) == {f"rv_{'_'.join(row)}" for row, _ in printed}
    assert set(PROJECT.expansion(experiment).sets().values()) == {"unconstrained"}
    assert PROJECT.experiment(experiment).corpus == "reduced_vocabulary_unconstrained"


def printed_rows(golden_directory: Path, table: int) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    path = golden_directory / "published" / f"reduced_vocabulary_table{table}.csv"
    with path.open(newline="") as file:
        return [(tuple(row[key] for key in "EHILA"), row) for row in csv.DictReader(file)]


def test_the_models_of_the_printed_tables_are_there_with_their_printed_sizes(golden_directory: Path) -> None:
    printed = dict([*printed_rows(golden_directory, 3), *printed_rows(golden_directory, 7)])
    assert len(printed) == 26
    for sizes, row in printed.items():
        run = f"rv_{'_'.join(sizes)}"
        count = roberta_parameters(config_of(PUBLISHED, run))
        # The tables give four of the seven tied runs the size of the untied anchor.
        if row["params_millions"] == "16.24":
            assert count == 11_304_258
            count = roberta_parameters(config_of(CONSTRAINED, "rv_256_256_1024_8_8"))
        assert count / 1e6 == pytest.approx(float(row["params_millions"]), abs=0.0101)


def test_the_logged_runs_have_their_exact_parameters(golden_directory: Path) -> None:
    path = golden_directory / "published" / "reduced_vocabulary_repo_runs_jan2023.csv"
    with path.open(newline="") as file:
        logged = list(csv.DictReader(file))
    ours = PROJECT.experiment(PUBLISHED).runs
    # Two runs try another learning rate and are not models of the study.
    known = [run for run in logged if run["peak_lr"] == "5e-4"]
    assert len(known) == 40
    for run in known:
        name = f"rv_{'_'.join(run[key] for key in 'EHILA')}"
        assert name in ours
        assert roberta_parameters(config_of(PUBLISHED, name)) == int(run["total_params"])


def test_a_larger_vocabulary_adds_what_table_4_prints(golden_directory: Path) -> None:
    for sizes, row in printed_rows(golden_directory, 4):
        run = f"rv_{'_'.join(sizes)}"
        more = roberta_parameters(config_of(UNCONSTRAINED, run)) - roberta_parameters(config_of(CONSTRAINED, run))
        assert more / 1e6 == pytest.approx(float(row["delta_params_millions"]), abs=0.0051)


@pytest.mark.parametrize(
    ("corrected", "published", "number_of_tied"),
    [
        (CONSTRAINED, PUBLISHED, 7),
        (f"{CONSTRAINED}_mini", f"{PUBLISHED}_mini", 2),
        (f"{UNCONSTRAINED}_mini", f"{UNCONSTRAINED}_as_published_mini", 0),
    ],
)
def test_the_readings_differ_in_the_slips_of_the_code_alone(
    corrected: str, published: str, number_of_tied: int
) -> None:
    slips = {"padding_in_loss", "padding_attended"}
    runs = set(trained(PROJECT, corrected)) & set(trained(PROJECT, published))
    assert runs
    for run in runs:
        ours, theirs = (
            json.loads(Jobs(PROJECT).settings("pretrain", experiment=name, run=f"{run}-s0"))
            for name in (corrected, published)
        )
        differing = {key for key in ours["objective"] if ours["objective"][key] != theirs["objective"][key]}
        assert differing == slips
        assert {key for key in ours if ours[key] != theirs[key]} == {"objective", "model"}
        model = {key for key in ours["model"] if ours["model"][key] != theirs["model"][key]}
        assert model <= {"initialisation", "num_attention_heads", "tie_word_embeddings", "embedding_size"}
        assert "initialisation" in model
        assert theirs["model"]["num_attention_heads"] == 8 or theirs["model"]["tie_word_embeddings"]
    tied = [run for run in trained(PROJECT, published) if PROJECT.model_of(published, run).tie_word_embeddings]
    assert len(tied) == number_of_tied


def test_pretraining_is_that_of_the_reference() -> None:
    experiment = PROJECT.experiment(CONSTRAINED)
    settings = json.loads(Jobs(PROJECT).settings("pretrain", experiment=CONSTRAINED, run="rv_256_256_1024_8_8-s0"))
    assert (settings["steps"], settings["batch_size"], settings["sequence_length"]) == (35_475, 256, 128)
    chosen = {"learning_rate": 5e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.01}
    assert chosen.items() <= settings["optimizer"].items()
    assert (settings["optimizer"]["decay"], settings["optimizer"]["max_gradient_norm"]) == ("all", None)
    assert settings["schedule"]["name"] == "inverse_square_root"
    for run in trained(PROJECT, CONSTRAINED):
        millions = roberta_parameters(config_of(CONSTRAINED, run)) / 1e6
        rate = experiment.runs[run].pretraining.optimizer.learning_rate
        assert rate == (1e-4 if millions > 18 else 5e-4)


@pytest.mark.parametrize("reading", ["", "_as_published"])
def test_sizes_train_at_the_same_rate_on_any_words_even_where_the_vocabulary_makes_them_larger(reading: str) -> None:
    larger = set()
    for run in trained(PROJECT, f"{UNCONSTRAINED}{reading}"):
        rate, same = (
            PROJECT.experiment(f"{name}{reading}").runs[run].pretraining.optimizer.learning_rate
            for name in (UNCONSTRAINED, CONSTRAINED)
        )
        assert rate == same == 5e-4
        if roberta_parameters(config_of(UNCONSTRAINED, run)) > 18e6:
            larger.add(run)
    # For these models, the paper's rule by number of parameters contradicts its "same hyperparameters" (Appendix C.3).
    assert larger == {"rv_256_256_1024_8_8", "rv_256_256_1024_4_8"}


@pytest.mark.parametrize("end", ["", "_mini"])
def test_the_study_of_the_published_reading_asks_the_same_of_its_experiments(end: str) -> None:
    ours, theirs = (plain(PROJECT.study(f"reduced_vocabulary{reading}{end}")) for reading in ("", "_as_published"))

    def with_published_readings(entry: dict[str, Any]) -> dict[str, Any]:
        named = {
            key: [f"{name.removesuffix(end)}_as_published{end}" for name in entry[key]]
            for key in ("experiments", "frontier")
            if key in entry
        }
        return {**entry, **named}

    analyses = {name: with_published_readings(entry) for name, entry in ours["analyses"].items()}
    assert theirs["analyses"] == analyses
    assert theirs["experiments"] == with_published_readings(ours)["experiments"]


def test_the_study_of_the_published_reading_trains_154_models_and_nine_with_milestones() -> None:
    planned = {
        part: {Jobs(PROJECT).settings("pretrain", experiment=part, run=run.name) for run in PROJECT.seeded_runs(part)}
        for part in PROJECT.members("reduced_vocabulary_as_published")
    }
    constrained, unconstrained, checkpoints = map(len, planned.values())
    # 79 models and their untrained counterparts; two models differ from others only in heads, which the code ignored.
    assert constrained + unconstrained == 2 * 79 - 4
    assert checkpoints == 9 + 27


# The main reading draws another set of models, which lacks five of the models.
@pytest.mark.parametrize(("reading", "shared"), [("", 4), ("_as_published", 9)])
def test_figure_4_has_27_checkpoints_of_models_that_are_trained_as_those_of_the_study(
    reading: str, shared: int
) -> None:
    experiment, study = f"reduced_vocabulary_checkpoints{reading}", f"{CONSTRAINED}{reading}"
    finished = trained(PROJECT, experiment)
    assert len(PROJECT.seeded_runs(experiment)) - len(finished) == 27
    in_study = [run for run in finished if run in PROJECT.experiment(study).runs]
    assert (len(in_study), len(finished)) == (shared, 9)
    for run in in_study:
        ours, theirs = (
            json.loads(Jobs(PROJECT).settings("pretrain", experiment=name, run=f"{run}-s0"))
            for name in (experiment, study)
        )
        assert ours == {**theirs, "milestones": [3000, 8000, 18000]}
    assert PROJECT.experiment(experiment).finetuning == PROJECT.experiment(study).finetuning


@pytest.mark.parametrize("reading", ["", "_as_published"])
def test_the_correlation_of_section_5_3_is_of_the_tabulated_models_and_the_27_checkpoints(reading: str) -> None:
    study = f"reduced_vocabulary{reading}"
    entry = analyses_of(PROJECT, study)["all_fine_tuned"]
    repeated: Any = analyse_settings(PROJECT, study, "all_fine_tuned")["published"]
    files = {"values/reduced_vocabulary": REPOSITORY / "config/published/values/reduced_vocabulary.csv"}
    counts = counting(entry, Study(study, published=tuple(repeated), files=files))
    models = {f"{part}/{run}" for part in entry.experiments for run in PROJECT.experiment(part).runs}
    counted = {model for model in models if counts(model) and not model.endswith("_untrained")}
    tabulated = {model for model in counted if "_at_" not in model}
    assert len(counted - tabulated) == 27
    assert {model.partition("/")[0] for model in tabulated} == {f"{CONSTRAINED}{reading}"}
    # Table 3 has 19 rows.
    assert len(tabulated) == 19


def test_the_laws_are_fitted_without_and_with_the_larger_models() -> None:
    analyses = analyses_of(PROJECT, "reduced_vocabulary")
    without, including = (analyses[name] for name in ("power_laws", "with_larger_models"))
    sizes = {run: roberta_parameters(config_of(CONSTRAINED, run)) for run in trained(PROJECT, CONSTRAINED)}
    left_out = {run for run, size in sizes.items() if size > without.most_parameters}
    assert left_out == set(trained(PROJECT, CONSTRAINED, "larger"))
    assert including.most_parameters is None
    assert all(getattr(without, key) == getattr(including, key) for key in ("analysis", "experiments", "flops", "bins"))


def test_the_published_readings_alone_fine_tune_as_the_studys_script_loads_models() -> None:
    for experiment, loader in ((CONSTRAINED, None), (PUBLISHED, "reduced_vocabulary")):
        settings = json.loads(Jobs(PROJECT).settings("finetune", experiment=experiment, task="rv_glue_stsb"))
        assert settings["task"]["head"]["options"].get("loader") == loader


def test_the_trials_of_the_paper_sweep_what_it_tried_and_train_the_studys_models_once() -> None:
    """Reduced vocabulary, Sections 3.5 and 4.2."""
    experiment = "reduced_vocabulary_trials"
    settings = {
        run.name: json.loads(Jobs(PROJECT).settings("pretrain", experiment=experiment, run=run.name))
        for run in PROJECT.seeded_runs(experiment)
    }
    swept = {
        name: [run for run, base in PROJECT.expansion(experiment).swept().items() if base == name] for name in TRIALS
    }
    assert len(settings) == sum(map(len, swept.values()))
    for name, runs in swept.items():
        section, keys, values, of_study = TRIALS[name]
        tried = [tuple(settings[f"{run}-s0"][section][key] for key in keys) for run in runs]
        assert tried == values
        # Each sweep changes these keys, and one of its runs has the settings of the study's model.
        (same,) = [run for run, value in zip(runs, tried, strict=True) if value == of_study]
        study = PROJECT.seeded_runs(CONSTRAINED)
        anchor = "rv_512_512_2048_8_8-s0" if name == "peak_rate_larger" else "rv_256_256_1024_8_8-s0"
        assert anchor in {run.name for run in study}
        ours = json.loads(Jobs(PROJECT).settings("pretrain", experiment=CONSTRAINED, run=anchor))
        assert settings[f"{same}-s0"] == ours
        for run in runs:
            other = settings[f"{run}-s0"]
            assert {**other, section: {**other[section], **{key: ours[section][key] for key in keys}}} == ours
    assert not PROJECT.experiment(experiment).finetuning.tasks
