"""Settings classes of experiments and studies, and of the protocols in their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import MinLen

from hatchery.evaluation.settings import PerplexityChoice, TranslationChoice
from hatchery.evaluation.surprisal.settings import AgeOfAcquisition, ReadingTimes, SurprisalTexts
from hatchery.evaluation.tasks.settings import ProtocolChoice
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
"""Type of a name that may be replaced by keys; the keys are taken out before validation."""


ModelFile: Any = ChosenBy("family", DEFAULT_FAMILY).among(family.file for family in FAMILIES.values())
"""Type of a file of config/models/, by its family."""


@dataclass(frozen=True, kw_only=True)
class ProtocolFile(Settings):
    """How a paper or an official pipeline fine-tunes, as far as it differs from the defaults."""

    description: str = ""
    """What it is, for people."""
    settings: PartOfProtocol
    """What differs from the defaults, or from the protocol that it names as its base."""
    tasks: dict[TaskName, PartOfProtocol] = field(default_factory=dict)
    """Tasks by name, each with what differs from the settings."""


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """A model of an experiment."""

    model: Annotated[ModelName | ModelFile, NameOr()]
    """A file of config/models/, or the keys that it would hold."""
    model_changes: Annotated[dict[str, Any], Sweepable()] = field(default_factory=dict)
    """What differs from the model's file."""
    seeds: Annotated[tuple[Natural, ...], MinLen(1), Unique()] = (42,)
    """One pretraining for each."""
    pretraining: PartOfPretraining = field(default_factory=dict)
    """What differs from the experiment."""


@dataclass(frozen=True, kw_only=True)
class WholeRun(Run):
    """A model of an experiment with all inherited keys written out."""

    model: Annotated[ModelName, NAME_OR_KEYS]
    """A file of config/models/, or a model that stands in the run: `<experiment>.<run>`."""
    pretraining: PretrainingSettings  # type: ignore[assignment]
    """Settings of the pretraining."""


PartOfRun = Annotated[dict[str, Any], PartOf(Run)]
Cell = int | float | str | bool | None
GridRow = Annotated[tuple[Cell, ...], MinLen(1)]
Columns = Annotated[dict[NotEmpty, Annotated[tuple[Cell, ...], MinLen(1), Unique()]], MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class Draw(Settings):
    """Rows drawn at random, each once, among those that no part before this one has."""

    count: Count
    """How many."""
    seed: Natural = 0
    """Of the draw."""
    among: Columns
    """The values of each column; the candidates are all combinations."""


@dataclass(frozen=True, kw_only=True)
class GridRows(OneOfKeys):
    """Rows of a set: listed, one change at a time, all combinations, or drawn."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("rows",): "rows: [[16, 64]]",
        ("around", "vary"): "around: [16, 64], vary: {H: [32]}",
        ("all",): "all: {H: [16, 32]}",
        ("draw",): "draw: {count: 4, among: {H: [16, 32]}}",
    }

    rows: Annotated[tuple[GridRow, ...], MinLen(1)] = ABSENT
    """A list of values for each model, in the order of the columns."""
    around: GridRow = ABSENT
    """The row that `vary` changes; it is a model as well, unless it stands above."""
    vary: Columns = ABSENT
    """Other values of columns; each changes the row alone."""
    all: Columns = ABSENT
    """The values of each column, in all combinations."""
    draw: Draw = ABSENT
    """A random draw of combinations."""
    columns: dict[NotEmpty, NotEmpty | None] = field(default_factory=dict)
    """What differs from the `columns` of the grid."""
    run: PartOfRun = field(default_factory=dict)
    """What differs from the `run` of the grid."""


@dataclass(frozen=True, kw_only=True)
class Grid(Settings):
    """Models that differ in their sizes: every row is a run, and each of its variants one more."""

    name: BlockName
    """Runs are called after it and the values of their row, as in `rv_256_256_1024_8_8`."""
    columns: Annotated[dict[NotEmpty, NotEmpty | None], MinLen(1)]
    """Names of the columns, with the key of the model that each is a value of; null for a value of the name alone."""
    run: PartOfRun
    """What all runs have, such as the model whose sizes change."""
    sets: Annotated[dict[BlockName, tuple[GridRows, ...] | None], MinLen(1)]
    """The models, in sets that the cost estimate adds up and that studies tell apart; null is an inherited set that is
    left out."""
    variants: dict[BlockName, PartOfRun | None] = field(default_factory=dict)
    """More runs of every row, by the end of their names, each with what differs; null is an inherited one that is left
    out. `initialise_from: {step: 1000}` means a milestone of the row's own run."""


@dataclass(frozen=True, kw_only=True)
class Finetuning(Settings):
    """The labelled tasks of an experiment."""

    protocol: PartOfProtocol = field(default_factory=dict)
    """What differs from the protocol that it names as its base, or from the defaults."""
    tasks_per_job: Count | None = None
    """Tasks that one job works on in turn; more than one pays where starting a process costs more than the work. null:
    one, or as many as keep the jobs of all models at 4,000. Results do not depend on it."""
    head_options: dict[str, Any] = field(default_factory=dict)
    """Options of the heads with one vector per sequence, over those of the tasks (pooling, transform)."""
    tasks: dict[TaskName, PartOfProtocol] = field(default_factory=dict)
    """Tasks by name, each with what differs from the protocol; a task with a base of its own takes nothing from the
    protocol above."""


@dataclass(frozen=True, kw_only=True)
class Published(Settings):
    """The published models that ours repeat."""

    paper: str
    """Name of a table of numbers, config/published/values/<paper>.csv."""
    track: str = ""
    """One of the paper's tracks, where it has some."""
    rows: Annotated[dict[str, str], MinLen(1)]
    """The published row of each of our runs and baselines. `"*": "*_unconstrained"` matches by name: a run with whose
    name for the star the paper has a row repeats that row, unless the run is named itself."""


Edition = Literal[2025, 2026]
Track = Literal["strict", "strict_small"]


@dataclass(frozen=True, kw_only=True)
class Submission(Settings):
    """The file that the leaderboard of BabyLM takes, results/<experiment>/submission.json, and a table of scores."""

    track: Track = "strict_small"
    """Which checkpoints the file has (19, or 28 in strict), and which published rows stand beside ours."""
    edition: Edition = 2026
    """Whose rules average the parts of a score."""
    suites: NotEmpty = "babylm_2026"
    """What suites are called before the names that BabyLM gives them: <suites>_blimp, <suites>_fast_blimp."""
    tasks: NotEmpty = "babylm_2026"
    """What the tasks of GLUE are called before their names: <tasks>_boolq."""
    run: BlockName | None = None
    """The run that is handed in; null: the first one that has a budget of words, or else the first."""
    seed: Natural | None = None
    """Its pretraining seed; null: its first."""
    age_of_acquisition: Literal["as_measured", "zero"] = "as_measured"
    """What the file says of this part, which the server takes as it is: a negative correlation lowers the mean."""


@dataclass(frozen=True, kw_only=True)
class MultilingualSubmission(Settings):
    """Both files of BabyLM's multilingual track, in results/<experiment>/multilingual_submission/."""

    suites: NotEmpty = "multilingual"
    """What suites are called before the names that BabyLM gives them: <suites>_zhoblimp."""
    tasks: NotEmpty = "multilingual"
    """What fine-tuned tasks are called before their names and languages: <tasks>_arc_nl."""
    reading: NotEmpty = "meco"
    """What tables of reading times are called before their names: <reading>_l1_eng."""
    run: BlockName | None = None
    """The run that is submitted; null: the first one that has a budget of words, or else the first."""
    seed: Natural | None = None
    """Its pretraining seed; null: its first."""
    model: BlockName | None = None
    """What the files are called: <model>_submission.json; null: the run with its seed."""


@dataclass(frozen=True, kw_only=True)
class PaperTables(Settings):
    """Whose rows of a paper's tables a miniature fills."""

    of: Annotated[str, Reference("experiment", inherited=True)]
    """An experiment with `published`; runs of the same names stand in the same rows."""
    prefix: str = ""
    """What suites and tasks are called before the names that the other experiment has."""
    suites: dict[str, str] = field(default_factory=dict)
    """Suites that are called otherwise there."""
    caveat: NotEmpty
    """Why no number is comparable with a printed one; stands below every table."""


@dataclass(frozen=True, kw_only=True)
class ExperimentFile(OneOfKeys):
    """Which corpus, tokenizer, models and evaluations; `results/<name>/summary.csv` exists because the file exists."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("runs",): "runs: {my_model: {model: ltg_small}}",
        ("grid",): "grid: {name: ltg, ...}",
    }

    @classmethod
    def other_files(cls) -> Mapping[str, type]:
        """Other files to search for an unknown key, with their names for messages."""
        from hatchery.experiment.kinds import MainFile

        return {"config/config.yaml": MainFile}

    description: str = ""
    """What it is, for people."""
    base: Annotated[str, Reference("experiment", inherited=True)] | None = None
    """Another experiment whose keys come first."""
    corpus: Annotated[CorpusName | CorpusFile, NameOr()]
    """The corpus that the models are trained on: a file of config/corpora/, or the keys that it would hold. Then it is
    called like the experiment."""
    tokenizer: Annotated[TokenizerName | TokenizerFile, NameOr()]
    """Their tokenizer: a file of config/tokenizers/, or the keys that it would hold, without `corpus` where it is
    trained on the experiment's. Then it is called like the experiment."""
    track: TrackName | None = None
    """A track of the BabyLM challenge whose rules the runs have to keep; null keeps none. What is broken is told before
    anything runs; the words of the text are counted before the first step."""
    pretraining: Annotated[PretrainingSettings, Sweepable()]
    """How they are pretrained."""
    runs: Annotated[dict[BlockName, Run | None], MinLen(1)] = ABSENT
    """The models of the experiment by the names that the tables show; null is an inherited one that is left out."""
    grid: Grid = ABSENT
    """Instead of `runs`: models that are made from lists of sizes."""
    cards: Annotated[tuple[CorpusName, ...], Unique()] = ()
    """Corpora that the page describes beside the experiment's own."""
    minimal_pairs: Annotated[tuple[SuiteName, ...], Unique()] = ()
    """Suites of minimal pairs, files of config/suites/."""
    suites_per_job: Count = 1
    """Suites that one job scores in turn, with the model loaded once; more than one pays where starting a process costs
    more than the work. Results do not depend on it."""
    surprisal: dict[BlockName, SurprisalTexts] = field(default_factory=dict)
    """Texts by names of your choice: the surprisal of each of their words, in bits, in
    results/<experiment>/surprisal/<model>/<name>/surprisal.parquet, and as .csv."""
    reading: ReadingTimes | None = None
    """Reading times that the surprisal of words is to explain; null measures none."""
    reading_times: Annotated[tuple[ReadingTableName, ...], Unique()] = ()
    """Tables of reading times, files of config/reading_tables/: how much better regressions predict the times with the
    surprisals of each model."""
    acquisition: AgeOfAcquisition | None = None
    """When children say words, beside when models know them, by the checkpoints of runs with `checkpoints_at`; null
    measures none."""
    baselines: Annotated[tuple[BaselineName, ...], Unique()] = ()
    """Models that others pretrained, scored on the same suites, files of config/baselines/."""
    evaluate_milestones: Annotated[tuple[NotEmpty, ...], Unique()] = ()
    """What is measured of the `milestones` of every run, too: a kind of evaluation (perplexity), or one of the names
    that the experiment asks for (minimal_pairs/blimp)."""
    perplexity: PerplexityChoice = field(default_factory=PerplexityChoice)
    """On which held-out text the perplexity is measured, and how."""
    translation: TranslationChoice = field(default_factory=TranslationChoice)
    """The test sets that models with the objective `translation` translate."""
    finetuning: Finetuning = field(default_factory=Finetuning)
    """The labelled tasks."""
    tests_against: str | None = None
    """The run or baseline that all others are tested against on minimal pairs and tasks; null: every two models, or of
    more than four all others against the first that was never trained, else the first baseline, else the first run."""
    published: Published | None = None
    """The published models that ours repeat; the numbers are in config/published/values/<paper>.csv."""
    submission: Submission | None = None
    """The file for BabyLM's leaderboard; null makes none."""
    multilingual_submission: MultilingualSubmission | None = None
    """Both files of BabyLM's multilingual track; null makes none."""
    paper_tables: PaperTables | None = None
    """In a miniature, the experiment whose rows of a paper's tables it fills; null is what `published` names."""
    hub: HubRepository | None = None
    """Where `scripts/upload_model.py` uploads exported models; null: nowhere."""
    figures: Style = field(default_factory=Style)
    """Look of the figures."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ExperimentFile):
    """An experiment that is written out (`expansion.py`), so that every run is whole."""

    corpus: Annotated[CorpusName, NAME_OR_KEYS]
    """The corpus that the models are trained on."""
    tokenizer: Annotated[TokenizerName, NAME_OR_KEYS]
    """Their tokenizer."""
    runs: Annotated[dict[BlockName, WholeRun], MinLen(1)] = ABSENT  # type: ignore[assignment]
    """The models of the experiment by the names that the tables show."""


@dataclass(frozen=True, kw_only=True)
class StudyFile(Settings):
    """Several experiments read together; `results/<name>/summary.csv` exists because the file exists."""

    base: Annotated[str, Reference("study", inherited=True)] | None = None
    """A study whose keys, analyses included, are the defaults of this one; only what differs is stated."""
    description: str = ""
    """What it is, for people."""
    experiments: Annotated[tuple[Annotated[str, Reference("experiment")], ...], MinLen(1), Unique()]
    """The experiments, files of config/experiments/, in the order of tables and pages."""
    analyses: dict[BlockName, dict[str, Any]] = field(default_factory=dict)
    """What is computed from their results: settings by names of your choice. `analysis` names the analysis, where the
    entry is not called like it."""
    figures: Style = field(default_factory=Style)
    """Look of the figures."""
