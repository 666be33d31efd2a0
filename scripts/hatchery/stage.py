"""The record of a stage (`Stage`), which decorates the stage's function and determines rule, command and environment.

A stage `name` is the file `<package>/stages/name.py` with the record, the settings and the function `name`. The
Snakefile builds the rule `name` from the record. Planning imports the files of all stages, so numerical libraries are
imported inside the function. A job imports only the file of its own stage.
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
"""Machine of a job. "local": the machine that submits jobs; "cpu": any machine, no model is used; "gpu": one GPU, if
there are any; "gpus": the nodes and GPUs in the section `cluster` of the configuration.
"""

Threads = Literal["corpus", "tokenization", "evaluation", "pretraining"]

MODELS = ("pretraining", "baselines")
"""Folders of an experiment with models: trained models, and external models."""

MODEL = "results/models/{model}/manifest.json"
"""Path pattern of the manifest of a model: trained, external, or an intermediate checkpoint."""
ADDRESS = rf"{NAME}-[0-9a-f]{{{DIGITS}}}"
"""Pattern of an address, the folder name of a result that experiments share: a name, a hyphen, and the digest of the
job's specification (`job_spec`)."""
IMPORTED = "imported-"
"""Prefix of the addresses of external models; no other address has this prefix, because corpus names have no hyphen."""


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches only these names; without names, the expression matches nothing."""
    return "|".join(names) or "-"


def none_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches all names except for `names`."""
    return f"(?!(?:{one_of(names)})/){NAME}"


@dataclass(frozen=True)
class StoredByDigest:
    """Property of stages whose results are stored by digest, so that experiments share the results.

    `folder` is the folder of an experiment with links to the results; `names` are the wildcards, such as `suite`, that
    distinguish the results of one model in this folder.
    """

    folder: str
    names: tuple[str, ...] = ()

    @property
    def wildcards(self) -> tuple[str, ...]:
        """Wildcards of a result's path: the model's address and, for an evaluation, the evaluation's address."""
        return ("model",) if self.folder in MODELS else ("model", "address")

    @property
    def outputs(self) -> dict[str, str]:
        """Path pattern of a result's manifest, by output name."""
        if self.folder in MODELS:
            return {"output": MODEL}
        return {"output": f"results/{self.folder}/{{model}}/{{address}}/manifest.json"}

    def models(self, model: str) -> dict[str, str]:
        """Return the manifest of the evaluated model by argument; empty for stages that make models.

        This input does not affect the address of the evaluation, because the model's address is a separate part of the
        path.
        """
        return {} if self.folder in MODELS else {"model": MODEL.format(model=model)}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The record of a stage, a decorator of its function. Rule, log and benchmark have the name of the function."""

    name: str = ""
    # Increase this number when the code produces different results, so that old results are computed again.
    version: int
    # Function of the project and the wildcards that returns the part of the configuration on which results depend.
    settings: Callable[..., Mapping[str, object]]
    # Name of the software environment, the file `envs/<environment>.yaml`.
    environment: str
    runs_on: RunsOn
    memory_mb: int
    # Requested run time. A pretraining (`runs_on` is "gpus") requests the time estimated from its steps, if possible.
    minutes: int
    memory_mb_per_thread: int = 0
    # Name of the configuration key that sets the number of threads: "x" names the key `compute.x_threads`. None means
    # one thread.
    threads: Threads | None = None
    # Keys in the section `compute` of the configuration that the function receives as `runtime`; they do not affect
    # results.
    runtime: tuple[str, ...] = ()
    # Function that returns all files that a job reads, by argument of the stage's function. These files are the inputs
    # of the rule, and the job's specification lists these files. The function's parameters are wildcards and, if
    # needed, `of` (Outputs), `results` (ResultPaths), `jobs` (Jobs) or `project`.
    inputs: Callable[..., Mapping[str, Paths]] = lambda: {}
    # Path patterns of the files that a job writes, by name. The function receives the first path as `output`, and other
    # paths as the parameters of type `OutputPath` with these names. If `shared` is set, the patterns are derived from
    # `shared`.
    outputs: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    # Category and subcategory in the report of `snakemake --report`, by name of the output. Category and subcategory
    # may contain wildcards. The captions of these outputs are in `workflow/report/<stage>.rst`.
    reported: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Regular expressions of wildcards that may only have some values in this stage.
    wildcard_patterns: Callable[..., Mapping[str, str]] = lambda project: {}
    # Function that returns files that must exist before a job starts, but that the stage's function does not read.
    made_after: Callable[..., list[str]] = lambda: []
    # Functions that return additional texts for Snakemake to record, by name; a job runs again if a text changes.
    recorded: Mapping[str, Callable[..., str]] = field(default_factory=dict)
    # Jobs of a higher priority start first.
    priority: int = 0
    # Function that returns the files of a raw input that a job reads, from the job's settings and the input's name in
    # the manifest. Other files may change without a rerun of the job. If this is None, the job reads all files.
    files_read: "Callable[[Mapping[str, Any], str, RawSource], Iterable[str]] | None" = None
    # Function that returns further arguments of the stage's function, which do not affect results and cause no rerun.
    # Parameters are as for `inputs`.
    unrecorded: Callable[..., Mapping[str, object]] = lambda: {}
    shared: StoredByDigest | None = None
    # For stages that evaluate a model: the kind of evaluation. None for other stages.
    evaluation: "Evaluation | None" = None
    # True if a result that was finished before Snakemake was killed is reused (`artifacts.manifests.reuse_complete`).
    keep: bool = False
    # Names of inputs in the manifest, by argument, such as `{"source": "source {}"}`. By default, an input has the name
    # of the argument or, in a mapping, of its key.
    input_names: Mapping[str, str] = field(default_factory=dict)
    # Class of the function's settings, which defines the keys that are omitted at their default.
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
        """Wildcards of the rule, in the order in which paths of logs and benchmarks contain them."""
        return self.shared.wildcards if self.shared else parameters(self.settings)[1:]

    @property
    def first_output(self) -> str:
        """Pattern of the file that the function receives as `output`."""
        first = next(iter(self.outputs.values()))
        return first if isinstance(first, str) else first[0]

    def path_pattern(self, root: str, suffix: str) -> str:
        """Return the path pattern of a job's file below `root`, such as `logs/finetune/{model}/{address}.log`."""
        return "/".join([root, self.name, *(f"{{{name}}}" for name in self.wildcards)]) + suffix

    def canonical_settings(self, project: object, **wildcards: str) -> str:
        """Return canonical JSON of the configuration on which a job depends; unneeded wildcards are ignored.

        Raises ConfigError for an invalid or unknown experiment, corpus, suite and so on.
        """
        return self.canonical(self.settings(project, **arguments_for(self.settings, wildcards)))

    def canonical(self, body: Mapping[str, Any]) -> str:
        """Return canonical JSON of settings, with the name and version of the stage."""
        if self.settings_class is not None:
            body = without_defaults(self.settings_class, body)
        return canonical_json(plain({"stage": self.name, "stage_version": self.version, **body}))


def has_record(function: Callable[..., None]) -> bool:
    """Return True if a function has a record; functions that only users or other stages call have no record."""
    return "stage" in function.__dict__


def record_of(function: Callable[..., None]) -> Stage:
    """Return the record of a stage's function."""
    record: Stage = function.__dict__["stage"]
    return record


@cache
def stage_files() -> dict[str, Path]:
    """Return the files of all stages by name."""
    found = [path for folder in ("hatchery/*", "demo") for path in SCRIPTS.glob(f"{folder}/stages/[a-z]*.py")]
    return {path.stem: path for path in sorted(found)}


def stage_called(rule: str) -> str:
    """Return the name of a rule's stage; a workflow module may prefix rules, such as `hatchery_summarise`.

    Return the rule's name if it belongs to no stage.
    """
    return max((name for name in stage_files() if rule == name or rule.endswith(f"_{name}")), key=len, default=rule)


def function_of(name: str) -> Callable[..., None]:
    """Return the function of a stage. Raises ConfigError, which suggests the most similar name, for an unknown
    stage.
    """
    files = stage_files()
    if name not in files:
        raise ConfigError(f"run.py: unknown stage {name!r}{nearest(name, files)}")
    module = ".".join(files[name].relative_to(SCRIPTS).with_suffix("").parts)
    function: Callable[..., None] = resolve_name(f"{module}:{name}")
    return function


@cache
def stages() -> dict[str, Stage]:
    """Return the records of all stages by name."""
    return {name: record_of(function) for name in stage_files() if has_record(function := function_of(name))}


@cache
def reserved_names() -> frozenset[str]:
    """Return the folders of `results/` that experiments share; no experiment may have one of these names."""
    first = [Path(stage.first_output).parts for stage in stages().values()]
    return frozenset({*UNDECLARED, *(parts[1] for parts in first if parts[0] == "results" and "{" not in parts[1])})


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameter names of a function."""
    return tuple(inspect.signature(function).parameters)


def arguments_for(function: Callable[..., Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the elements of `values` whose name is a parameter of the function."""
    return {name: values[name] for name in parameters(function) if name in values}
