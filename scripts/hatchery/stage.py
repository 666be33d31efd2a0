"""The class `Stage`, the record of a stage. The record decorates the stage's function, and determines the stage's
Snakemake rule, its command and its software environment.

The stage `name` is defined in the file `<package>/stages/name.py`, with its record, its settings and the function
`name`. The Snakefile builds the rule `name` from the record. Planning imports the files of all stages. To keep planning
fast, numerical libraries are imported inside the functions. A job imports the file of its own stage, and not the files
of all stages.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hatchery.artifacts.checksums import canonical_json
from hatchery.errors import ConfigError
from hatchery.folders import UNDECLARED
from hatchery.job_spec import DIGITS, Paths
from hatchery.settings.base import Settings
from hatchery.settings.fields import NAME
from hatchery.settings.problems import nearest
from hatchery.typed import plain, without_defaults

if TYPE_CHECKING:
    from hatchery.evaluation.evaluation import Evaluation
    from hatchery.raw.registration import RawSource

Function = TypeVar("Function", bound=Callable[..., None])

SCRIPTS = Path(__file__).parents[1]

RunsOn = Literal["local", "cpu", "gpu", "gpus"]
"""Machine on which a job runs. "local": the machine that submits jobs; "cpu": any machine, because the job uses no
model; "gpu": a machine with one GPU, if there are GPUs; "gpus": the nodes and GPUs that the section `cluster` of the
configuration requests.
"""

Threads = Literal["corpus", "tokenization", "evaluation", "pretraining"]

MODELS = ("pretraining", "baselines")
"""Folders of an experiment that contain models: trained models, and external models (baselines)."""

MODEL = "results/models/{model}/manifest.json"
"""Path pattern of the manifest of a model, which may be a trained model, an external model, or a milestone."""
ADDRESS = rf"{NAME}-[0-9a-f]{{{DIGITS}}}"
"""Pattern of an address, which is the name of a folder with a result that experiments share: a name, a hyphen, and the
digest of the job's specification (`job_spec`).
"""
IMPORTED = "imported-"
"""Prefix of the addresses (names of folders) of external models. Other addresses begin with the name of a corpus, which
contains no hyphen.
"""


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches only `names`; if there are no names, the expression matches no name."""
    return "|".join(names) or "-"


def none_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches all names except for `names`."""
    return f"(?!(?:{one_of(names)})/){NAME}"


@dataclass(frozen=True)
class StoredByDigest:
    """Property of stages whose results are stored by digest, so that experiments can share the results.

    `folder` is the folder of an experiment that contains links to the results. `names` are the wildcards, such as
    `suite`, that distinguish the results of one model in this folder.
    """

    folder: str
    names: tuple[str, ...] = ()

    @property
    def wildcards(self) -> tuple[str, ...]:
        """Wildcards in the path of a result: the address (name of the folder) of the model and, for an evaluation, the
        address of the evaluation.
        """
        return ("model",) if self.folder in MODELS else ("model", "address")

    @property
    def outputs(self) -> dict[str, str]:
        """Mapping with the single key `output`: the path pattern of a result's manifest."""
        if self.folder in MODELS:
            return {"output": MODEL}
        return {"output": f"results/{self.folder}/{{model}}/{{address}}/manifest.json"}

    def models(self, model: str) -> dict[str, str]:
        """Return a mapping with the single key `model`: the path of the evaluated model's manifest. The mapping is
        empty for stages that make models. The argument `model` is the model's address (name of its folder).

        The evaluation's specification does not contain this manifest, because the path of the evaluation already
        contains the address of the model.
        """
        return {} if self.folder in MODELS else {"model": MODEL.format(model=model)}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The record of a stage, and the decorator of the stage's function. The stage's Snakemake rule, log files and
    benchmark files have the name of this function.
    """

    name: str = ""
    # Version of the results. Increase this number when the code produces different results: all results are then
    # computed again.
    version: int
    # Function that returns the settings of a job: the part of the configuration on which its results depend.
    # Parameters: the project and wildcards.
    settings: Callable[..., Mapping[str, object]]
    # Name of the software environment, the file `envs/<environment>.yaml`.
    environment: str
    runs_on: RunsOn
    memory_mb: int
    # Requested run time in minutes. A pretraining (`runs_on` is "gpus") requests `cluster.pretraining_minutes` or,
    # without this key, the time that is estimated from its number of steps. It requests `minutes` only if there is no
    # estimate.
    minutes: int
    memory_mb_per_thread: int = 0
    # Kind of threads. For the kind "x", the number of threads is the value of the configuration key
    # `compute.x_threads`. The kind "tokenization" has a fixed number of threads (`workflow.resources`). If this is
    # None, a job has one thread.
    threads: Threads | None = None
    # Keys in the section `compute` of the configuration that the function receives in the argument `runtime`. These
    # keys do not affect results.
    runtime: tuple[str, ...] = ()
    # Function that returns all files that a job reads, except for the evaluated model (see `StoredByDigest.models`), by
    # name of the argument of the stage's function. These files are inputs of the rule and are listed in the job's
    # specification. The parameters of `inputs` are wildcards and, if needed, `of` (Outputs), `results` (ResultPaths),
    # `jobs` (Jobs) or `project`.
    inputs: Callable[..., Mapping[str, Paths]] = lambda: {}
    # Path patterns of the files that a job writes, by name of the output. The stage's function receives the first path
    # as the argument `output`; parameters of type `OutputPath` receive the path of the output with the same name. If
    # `shared` is set, the patterns are derived from `shared`.
    outputs: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    # Category and subcategory of an output in the report of `snakemake --report`, by name of the output. Category and
    # subcategory may contain wildcards. The captions of these outputs are in `workflow/report/<stage>.rst`.
    reported: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Function that returns regular expressions of those wildcards that may only have certain values in this stage.
    wildcard_patterns: Callable[..., Mapping[str, str]] = lambda project: {}
    # Function that returns files that must exist before a job starts, although the stage's function does not read them.
    made_after: Callable[..., list[str]] = lambda: []
    # Functions, by name, that return further texts. Snakemake records the texts, and runs the job again if a text
    # changes.
    recorded: Mapping[str, Callable[..., str]] = field(default_factory=dict)
    # Priority of the jobs; among several jobs that could start, jobs with a higher priority start first.
    priority: int = 0
    # Function that returns those files of a raw input that a job reads. Parameters: the job's settings, the input's
    # name in the manifest, and the source. If other files change, the job does not run again. If this is None, the job
    # reads all files.
    files_read: "Callable[[Mapping[str, Any], str, RawSource], Iterable[str]] | None" = None
    # Function that returns further arguments of the stage's function. These arguments do not affect results, so the job
    # does not run again if they change. The parameters are those of `inputs`.
    unrecorded: Callable[..., Mapping[str, object]] = lambda: {}
    shared: StoredByDigest | None = None
    # Kind of evaluation, if the stage evaluates a model; None for other stages.
    evaluation: "Evaluation | None" = None
    # True if a repeated job reuses a result that was finished before Snakemake was killed
    # (`artifacts.manifests.reuse_complete`).
    keep: bool = False
    # Names of inputs in the manifest, by argument, such as `{"source": "source {}"}`. By default, an input has the name
    # of its argument or, if the argument is a mapping, the name of its key.
    input_names: Mapping[str, str] = field(default_factory=dict)
    # Class of the settings that the function receives. Canonical settings omit some keys at their default value; the
    # class names these keys.
    settings_class: type[Settings] | None = None

    def __call__(self, function: Function) -> Function:
        """Return the function with this record attached."""
        taken = function.__annotations__.get("settings")
        cls = taken if isinstance(taken, type) and issubclass(taken, Settings) else None
        outputs = self.outputs or (self.shared.outputs if self.shared else {})
        function.__dict__["stage"] = replace(self, name=function.__name__, settings_class=cls, outputs=outputs)
        return function

    @property
    def wildcards(self) -> tuple[str, ...]:
        """Wildcards of the rule, in the order in which the paths of logs and benchmarks contain them."""
        return self.shared.wildcards if self.shared else parameters(self.settings)[1:]

    @property
    def first_output(self) -> str:
        """Path pattern of the stage's first output, which the stage's function receives as the argument `output`."""
        first = next(iter(self.outputs.values()))
        return first if isinstance(first, str) else first[0]

    def path_pattern(self, root: str, suffix: str) -> str:
        """Return the path pattern of one file per job in the folder `root`, such as
        `logs/finetune/{model}/{address}.log`.
        """
        return "/".join([root, self.name, *(f"{{{name}}}" for name in self.wildcards)]) + suffix

    def canonical_settings(self, project: object, **wildcards: str) -> str:
        """Return the part of the configuration on which a job depends, as canonical JSON. `wildcards` are the job's
        wildcards; those that are no parameters of the record's function `settings` are ignored.

        Raises ConfigError for an invalid or unknown experiment, corpus, suite and so on.
        """
        return self.canonical(self.settings(project, **arguments_for(self.settings, wildcards)))

    def canonical(self, body: Mapping[str, Any]) -> str:
        """Return settings as canonical JSON, with the name and version of the stage."""
        if self.settings_class is not None:
            body = without_defaults(self.settings_class, body)
        return canonical_json(plain({"stage": self.name, "stage_version": self.version, **body}))


def has_record(function: Callable[..., None]) -> bool:
    """Return True if a stage's function has a record (`Stage`). A function without a record has no Snakemake rule: only
    users or other stages call it.
    """
    return "stage" in function.__dict__


def record_of(function: Callable[..., None]) -> Stage:
    """Return the record of a stage's function."""
    record: Stage = function.__dict__["stage"]
    return record


@cache
def stage_files() -> dict[str, Path]:
    """Return the Python files that define stages, by name of the stage."""
    found = [path for folder in ("hatchery/*", "demo") for path in SCRIPTS.glob(f"{folder}/stages/[a-z]*.py")]
    return {path.stem: path for path in sorted(found)}


def stage_called(rule: str) -> str:
    """Return the name of the stage to which a rule belongs, or the name of the rule if it belongs to no stage.

    Another workflow that uses Hatchery as a module may add a prefix to the names of rules, as in `hatchery_summarise`.
    """
    return max((name for name in stage_files() if rule == name or rule.endswith(f"_{name}")), key=len, default=rule)


def function_of(name: str) -> Callable[..., None]:
    """Return the function of a stage. For an unknown stage, raises ConfigError, which suggests the most similar
    name.
    """
    files = stage_files()
    if name not in files:
        raise ConfigError(f"run.py: unknown stage {name!r}{nearest(name, files)}")
    module = ".".join(files[name].relative_to(SCRIPTS).with_suffix("").parts)
    function: Callable[..., None] = resolve_name(f"{module}:{name}")
    return function


@cache
def stages() -> dict[str, Stage]:
    """Return the records of all stages by name of the stage."""
    return {name: record_of(function) for name in stage_files() if has_record(function := function_of(name))}


@cache
def reserved_names() -> frozenset[str]:
    """Return the names of folders of `results/` that do not belong to one experiment; no experiment may have such a
    name.
    """
    first = [Path(stage.first_output).parts for stage in stages().values()]
    return frozenset({*UNDECLARED, *(parts[1] for parts in first if parts[0] == "results" and "{" not in parts[1])})


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)


def arguments_for(function: Callable[..., Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return those entries of `values` whose key is the name of a parameter of the function."""
    return {name: values[name] for name in parameters(function) if name in values}
