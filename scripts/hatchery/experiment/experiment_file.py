"""Settings classes of experiments and studies, and of the protocols in their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import MinLen

from hatchery.evaluation.settings import PerplexityChoice
from hatchery.evaluation.surprisal.settings import AgeOfAcquisition, ReadingTimes, SurprisalTexts
from hatchery.evaluation.tasks.settings import ProtocolChoice
from hatchery.evaluation.translation_settings import TranslationChoice
from hatchery.experiment.hub import HubRepository
from hatchery.experiment.text_files import CorpusFile, TokenizerFile
from hatchery.experiment.tracks import TrackName
from hatchery.modeling.families import DEFAULT_FAMILY, FAMILIES
from hatchery.rendering.style import Style
from hatchery.settings.base import Count, Natural, Settings
from hatchery.settings.fields import (
    ABSENT,
    BaselineName,
    BlockName,
    ChosenBy,
    CorpusName,
    ModelName,
    NameOr,
    NotEmpty,
    OneOfKeys,
    PartOf,
    ReadingTableName,
    Reference,
    SuiteName,
    Sweepable,
    TaskName,
    Text,
    TokenizerName,
    Unique,
)
from hatchery.training.settings import PretrainingSettings

PartOfPretraining = Annotated[dict[str, Any], PartOf(PretrainingSettings), Sweepable()]
PartOfProtocol = Annotated[dict[str, Any], PartOf(ProtocolChoice)]
NAME_OR_KEYS = Text("", "text or keys with values")
"""Annotation of a key whose value is a name or, in the file, a mapping of keys. The mapping is replaced by a name
before validation.
"""


ModelFile: Any = ChosenBy("family", DEFAULT_FAMILY).among(family.file for family in FAMILIES.values())
"""Type of a file in config/models/. The key `family` selects the settings class."""


@dataclass(frozen=True, kw_only=True)
class ProtocolFile(Settings):
    """Fine-tuning protocol of a paper or an official pipeline: the keys that differ from the defaults."""

    description: str = ""
    """Description of the protocol in one or two sentences."""
    settings: PartOfProtocol
    """Keys whose values differ from those of the protocol `base` or, without `base`, from the defaults."""
    tasks: dict[TaskName, PartOfProtocol] = field(default_factory=dict)
    """Tasks by name, each with the keys that differ from `settings`."""


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """A model of an experiment."""

    model: Annotated[ModelName | ModelFile, NameOr()]
    """Architecture: the name of a file in config/models/, or the keys of such a file."""
    model_changes: Annotated[dict[str, Any], Sweepable()] = field(default_factory=dict)
    """Keys that override the keys of the model's file."""
    seeds: Annotated[tuple[Natural, ...], MinLen(1), Unique()] = (42,)
    """Random seeds; each seed is a separate pretraining."""
    pretraining: PartOfPretraining = field(default_factory=dict)
    """Keys that override the experiment's `pretraining`."""


@dataclass(frozen=True, kw_only=True)
class WholeRun(Run):
    """A model of an experiment with all inherited keys."""

    model: Annotated[ModelName, NAME_OR_KEYS]
    """The name of a file in config/models/, or `<experiment>.<run>` for a model whose keys are written
    inside the run."""
    pretraining: PretrainingSettings  # type: ignore[assignment]
    """Settings of the pretraining."""


PartOfRun = Annotated[dict[str, Any], PartOf(Run)]
Cell = int | float | str | bool | None
GridRow = Annotated[tuple[Cell, ...], MinLen(1)]
Columns = Annotated[dict[NotEmpty, Annotated[tuple[Cell, ...], MinLen(1), Unique()]], MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class Draw(Settings):
    """Random draw of grid rows, without repetition. Rows are drawn from all combinations of values, without the
    combinations that are rows of the grid's earlier list entries.
    """

    count: Count
    """Number of rows to draw."""
    seed: Natural = 0
    """Random seed of the draw."""
    among: Columns
    """Values of each column; rows are drawn from all combinations."""


@dataclass(frozen=True, kw_only=True)
class GridRows(OneOfKeys):
    """One or more rows of a grid, written in one of four forms: a list of rows (`rows`), a row and rows that differ
    from it in one column (`around`, `vary`), all combinations of values (`all`), or a random draw from all combinations
    (`draw`).
    """

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("rows",): "rows: [[16, 64]]",
        ("around", "vary"): "around: [16, 64], vary: {H: [32]}",
        ("all",): "all: {H: [16, 32]}",
        ("draw",): "draw: {count: 4, among: {H: [16, 32]}}",
    }

    rows: Annotated[tuple[GridRow, ...], MinLen(1)] = ABSENT
    """Rows of the grid set. Each row lists the values of one model, in the order of the columns."""
    around: GridRow = ABSENT
    """Row that `vary` changes in one column at a time. The row itself is also a model, unless an earlier list entry of
    the grid contains this row.
    """
    vary: Columns = ABSENT
    """Alternative values of columns. Each value generates one row, which differs from `around` in this column only."""
    all: Columns = ABSENT
    """Values of each column. All combinations of these values become rows."""
    draw: Draw = ABSENT
    """Random draw of rows from all combinations of values."""
    columns: dict[NotEmpty, NotEmpty | None] = field(default_factory=dict)
    """Keys that override the grid's `columns`."""
    run: PartOfRun = field(default_factory=dict)
    """Keys that override the grid's `run`."""


@dataclass(frozen=True, kw_only=True)
class Grid(Settings):
    """Models with different sizes. Every row is a run; every variant adds one run per row."""

    name: BlockName
    """First part of the run names. The values of the row follow this part, as in `rv_256_256_1024_8_8`."""
    columns: Annotated[dict[NotEmpty, NotEmpty | None], MinLen(1)]
    """Columns by name, each with the model key that the column's values set. If the key is `null`, the values are only
    added to the run's name.
    """
    run: PartOfRun
    """Keys that all runs share, such as the model whose sizes change."""
    sets: Annotated[dict[BlockName, tuple[GridRows, ...] | None], MinLen(1)]
    """Grid sets (groups of models) by name. The cost estimate has a sum for each grid set, and studies can select grid
    sets. `null` removes an inherited grid set.
    """
    variants: dict[BlockName, PartOfRun | None] = field(default_factory=dict)
    """Additional runs for every row, by the suffix of their names, each with the keys that differ from the row's run.
    `null` removes an inherited variant. `initialise_from: {step: 1000}` starts from a milestone of the row's run.
    """


@dataclass(frozen=True, kw_only=True)
class Finetuning(Settings):
    """Fine-tuning of an experiment: labelled tasks and the protocol."""

    protocol: PartOfProtocol = field(default_factory=dict)
    """Keys whose values differ from those of the protocol `base` or, without `base`, from the defaults."""
    tasks_per_job: Count | None = None
    """Number of tasks that one job fine-tunes one after another. A value above 1 saves time if starting a process takes
    longer than fine-tuning. `null` uses 1, or more if there would otherwise be more than 4,000 jobs.
    Results do not depend on this number.
    """
    head_options: dict[str, Any] = field(default_factory=dict)
    """Options (pooling, transform) of heads with one vector per sequence. These options override the options of the
    tasks."""
    tasks: dict[TaskName, PartOfProtocol] = field(default_factory=dict)
    """Tasks by name, each with the keys that differ from `protocol`. A task with its own `base` ignores `protocol`."""


@dataclass(frozen=True, kw_only=True)
class Published(Settings):
    """Published models that the runs replicate."""

    paper: str
    """Paper: the name of a table config/published/values/<paper>.csv."""
    track: str = ""
    """Track of the paper, if the paper has several tracks."""
    rows: Annotated[dict[str, str], MinLen(1)]
    """Published row of each run and baseline. The entry `"*": "*_unconstrained"` matches by name: the run `x`
    replicates the row `x_unconstrained` if the paper has this row. A run with its own entry ignores this entry.
    """


Edition = Literal[2025, 2026]
Track = Literal["strict", "strict_small"]


@dataclass(frozen=True, kw_only=True)
class Submission(Settings):
    """Submission file for BabyLM's leaderboard, results/<experiment>/submission.json, and a table of scores."""

    track: Track = "strict_small"
    """Track of the submission. The submission file has 19 checkpoints for `strict_small`, and 28 checkpoints for
    `strict`. The table of scores also shows published models of the track.
    """
    edition: Edition = 2026
    """Year of the BabyLM challenge. The rules of this year define the mean of the scores."""
    suites: NotEmpty = "babylm_2026"
    """Prefix of the suites' names: <suites>_blimp, <suites>_fast_blimp."""
    tasks: NotEmpty = "babylm_2026"
    """Prefix of the names of the GLUE tasks: <tasks>_boolq."""
    run: BlockName | None = None
    """Run to submit. `null` uses the first run with a budget of words or, if no run has a budget of words, the first
    run.
    """
    seed: Natural | None = None
    """Pretraining seed of the submitted run. `null` uses the run's first seed."""
    age_of_acquisition: Literal["as_measured", "zero"] = "as_measured"
    """Number for the age of acquisition in the submission file: the measured correlation (`as_measured`) or `zero`. The
    server averages this number as submitted, so a negative correlation lowers the average score.
    """


@dataclass(frozen=True, kw_only=True)
class MultilingualSubmission(Settings):
    """The two submission files for BabyLM's multilingual track, written to
    results/<experiment>/multilingual_submission/."""

    suites: NotEmpty = "multilingual"
    """Prefix of the suites' names: <suites>_zhoblimp."""
    tasks: NotEmpty = "multilingual"
    """Prefix of the names of fine-tuning tasks: <tasks>_arc_nl."""
    reading: NotEmpty = "meco"
    """Prefix of the names of reading-time tables: <reading>_l1_eng."""
    run: BlockName | None = None
    """Run to submit. `null` uses the first run with a budget of words or, if no run has a budget of words, the first
    run.
    """
    seed: Natural | None = None
    """Pretraining seed of the submitted run. `null` uses the run's first seed."""
    model: BlockName | None = None
    """Beginning of the file name <model>_submission.json; `null` uses the run's name and seed."""


@dataclass(frozen=True, kw_only=True)
class PaperTables(Settings):
    """Settings of a miniature, which is a small copy of an original experiment. A paper's tables show the miniature's
    scores in the rows of the original experiment.
    """

    of: Annotated[str, Reference("experiment", inherited=True)]
    """Original experiment, which has the key `published`. A run of the miniature fills the table rows of the original
    experiment's run with the same name.
    """
    prefix: str = ""
    """Prefix that the names of suites and tasks have only in this experiment, and not in the original experiment."""
    suites: dict[str, str] = field(default_factory=dict)
    """Suites whose names differ between the two experiments: the name in this experiment, and the name in the original
    experiment.
    """
    caveat: NotEmpty
    """Reason why the scores are not comparable with the printed scores; shown below every table."""


@dataclass(frozen=True, kw_only=True)
class ExperimentFile(OneOfKeys):
    """Corpus, tokenizer, models and evaluations of an experiment. The file makes `results/<name>/summary.csv` a target
    of Snakemake.
    """

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("runs",): "runs: {my_model: {model: ltg_small}}",
        ("grid",): "grid: {name: ltg, ...}",
    }

    @classmethod
    def other_files(cls) -> Mapping[str, type]:
        """Settings classes of other files, by file name. If a key is unknown here, but known in one of these files, the
        error message names that file.
        """
        from hatchery.experiment.kinds import MainFile

        return {"config/config.yaml": MainFile}

    description: str = ""
    """Description of the experiment in one or two sentences."""
    base: Annotated[str, Reference("experiment", inherited=True)] | None = None
    """Experiment from which this file inherits every key that it leaves out; `null` inherits from no experiment."""
    corpus: Annotated[CorpusName | CorpusFile, NameOr()]
    """Training corpus: the name of a file in config/corpora/, or the keys of such a file. A corpus given by keys has
    the name of the experiment."""
    tokenizer: Annotated[TokenizerName | TokenizerFile, NameOr()]
    """Tokenizer of the models: the name of a file in config/tokenizers/, or the keys of such a file. A tokenizer given
    by keys has the name of the experiment; if its keys contain no `corpus`, it is trained on the experiment's corpus.
    """
    track: TrackName | None = None
    """Track of the BabyLM challenge whose rules all runs must follow. `null` checks no rules. Broken rules are reported
    before any job starts; only the number of words in the training text is checked later, at the start of the training.
    """
    pretraining: Annotated[PretrainingSettings, Sweepable()]
    """Pretraining settings of all runs; a run can override each key."""
    runs: Annotated[dict[BlockName, Run | None], MinLen(1)] = ABSENT
    """Models of the experiment by name, as shown in the tables; `null` removes an inherited run."""
    grid: Grid = ABSENT
    """Models generated from lists of model sizes, instead of `runs`."""
    cards: Annotated[tuple[CorpusName, ...], Unique()] = ()
    """Corpora that the experiment's page describes in addition to its own corpus."""
    minimal_pairs: Annotated[tuple[SuiteName, ...], Unique()] = ()
    """Minimal-pair suites on which every model is scored, by the names of files in config/suites/."""
    suites_per_job: Count = 1
    """Number of minimal-pair suites that one job scores after loading the model once. A value above 1 saves time if
    starting a process takes longer than scoring. Results do not depend on this number.
    """
    surprisal: dict[BlockName, SurprisalTexts] = field(default_factory=dict)
    """Texts, under names of your choice, for whose words the surprisal is computed in bits. Output:
    results/<experiment>/surprisal/<model>/<name>/surprisal.parquet and surprisal.csv.
    """
    reading: ReadingTimes | None = None
    """Prediction of BabyLM's reading times from the surprisal of words; `null` skips this evaluation."""
    reading_times: Annotated[tuple[ReadingTableName, ...], Unique()] = ()
    """Tables of reading times, by the names of files in config/reading_tables/. Regressions predict the reading times.
    A model's score is the gain in log-likelihood when the regression also contains the model's surprisals.
    """
    acquisition: AgeOfAcquisition | None = None
    """Comparison of the age at which children say a word with the number of training words after which a model has
    learned this word. Models are measured at the checkpoints that `checkpoints_at` keeps. `null` skips this evaluation.
    """
    baselines: Annotated[tuple[BaselineName, ...], Unique()] = ()
    """External models that are scored on the same suites, by the names of files in config/baselines/."""
    evaluate_milestones: Annotated[tuple[NotEmpty, ...], Unique()] = ()
    """Evaluations that are also applied to the milestones of every run. An entry names all evaluations of a kind
    (perplexity), or one evaluation of the experiment (minimal_pairs/blimp).
    """
    perplexity: PerplexityChoice = field(default_factory=PerplexityChoice)
    """Held-out text on which the perplexity is measured, and the masking of the tokens to predict."""
    translation: TranslationChoice = field(default_factory=TranslationChoice)
    """Test sets for models with the objective `translation`."""
    finetuning: Finetuning = field(default_factory=Finetuning)
    """Labelled tasks on which the models are fine-tuned, and the fine-tuning protocol."""
    tests_against: str | None = None
    """Run or baseline with which all other models are compared in significance tests on minimal pairs and tasks. `null`
    compares every pair of models. If there are more than four models, `null` compares all models with one reference:
    the first untrained run, or else the first baseline, or else the first run.
    """
    published: Published | None = None
    """Published models that the runs replicate. The published scores are in config/published/values/<paper>.csv. `null`
    replicates no published model.
    """
    submission: Submission | None = None
    """Submission file for BabyLM's leaderboard; `null` writes no file."""
    multilingual_submission: MultilingualSubmission | None = None
    """Write the two submission files for BabyLM's multilingual track; `null` writes no files."""
    paper_tables: PaperTables | None = None
    """For a miniature, which is a small copy of an original experiment: the original experiment, whose rows in a
    paper's tables then show the miniature's scores. `null` fills the rows that `published` names.
    """
    hub: HubRepository | None = None
    """Repository to which `scripts/upload_model.py` uploads exported models. `null`: exported models are not uploaded.
    """
    figures: Style = field(default_factory=Style)
    """Style of the experiment's figures."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ExperimentFile):
    """An experiment after its expansion (`expansion.py`), so that every run contains all keys that it inherits."""

    corpus: Annotated[CorpusName, NAME_OR_KEYS]
    """The corpus on which the models are trained."""
    tokenizer: Annotated[TokenizerName, NAME_OR_KEYS]
    """The tokenizer of the models."""
    runs: Annotated[dict[BlockName, WholeRun], MinLen(1)] = ABSENT  # type: ignore[assignment]
    """The models of the experiment, by their names in tables."""


@dataclass(frozen=True, kw_only=True)
class StudyFile(Settings):
    """Joint analysis of several experiments. The file makes `results/<name>/summary.csv` a target of Snakemake."""

    base: Annotated[str, Reference("study", inherited=True)] | None = None
    """Study from which this file inherits every key that it leaves out, including analyses; `null` inherits from no
    study.
    """
    description: str = ""
    """Description of the study in one or two sentences."""
    experiments: Annotated[tuple[Annotated[str, Reference("experiment")], ...], MinLen(1), Unique()]
    """Experiments of the study, in the order of tables and pages, by the names of files in config/experiments/."""
    analyses: dict[BlockName, dict[str, Any]] = field(default_factory=dict)
    """Settings of each analysis of the results, by a name of your choice. If this name is not the name of an analysis,
    the key `analysis` is required.
    """
    figures: Style = field(default_factory=Style)
    """Style of the study's figures."""
