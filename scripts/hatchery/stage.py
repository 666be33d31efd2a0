"""The record of a stage, a decorator of its function: rule, command line and environment are derived from the record.

A stage `name` is the file `<package>/stages/name.py` with the record, the settings and the function `name`. The
Snakefile makes the rule `name` from the record. Planning imports the files of all stages, so numerical libraries are
imported inside the function. A job imports the file of its own stage.
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
"""Machine of a job. "local": the submitting machine; "cpu": any machine, without a model; "gpu": one GPU, if there are
any; "gpus": the nodes and GPUs of the `cluster` block.
"""

Threads = Literal["corpus", "tokenization", "evaluation", "pretraining"]

MODELS = ("pretraining", "baselines")
"""Folders of an experiment that hold models: trained ones and imported ones."""

MODEL = "results/models/{model}/manifest.json"
"""Path pattern of a model's manifest: a trained model, an imported model, or a checkpoint."""
ADDRESS = rf"{NAME}-[0-9a-f]{{{DIGITS}}}"
"""Pattern of the folder name of a result that experiments share: a name, a hyphen, and the digest of the job's call."""
IMPORTED = "imported-"
"""Prefix of the addresses of imported models; no corpus name contains a hyphen."""


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches only these names, and nothing if there are no names."""
    return "|".join(names) or "-"


def none_of(names: Iterable[str]) -> str:
    """Return a regular expression for folder names other than these."""
    return f"(?!(?:{one_of(names)})/){NAME}"


@dataclass(frozen=True)
class StoredByDigest:
    """Results of a model are stored by digest, so experiments that need the same results reuse them.

    `folder` is the folder of an experiment with links to them; `names` distinguish the results of one model in it.
    """

    folder: str
    names: tuple[str, ...] = ()

    @property
    def wildcards(self) -> tuple[str, ...]:
        """Wildcards of a result's path: the model's address and, for an evaluation, the evaluation's address."""
        return ("model",) if self.folder in MODELS else ("model", "address")

    @property
    def outputs(self) -> dict[str, str]:
        """Pattern of a result's manifest, by output name."""
        if self.folder in MODELS:
            return {"output": MODEL}
        return {"output": f"results/{self.folder}/{{model}}/{{address}}/manifest.json"}

    def models(self, model: str) -> dict[str, str]:
        """Return the manifest of the model as an input of an evaluation. The evaluation's address does not depend on
        it.
        """
        return {} if self.folder in MODELS else {"model": MODEL.format(model=model)}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage, a decorator of its function. Its rule, log and benchmark have the name of the function."""

    name: str = ""
    # Raised when the meaning of the code changes, so that results of the old code are computed again.
    version: int
    # Returns the part of the resolved configuration that results depend on, from the project and the wildcards.
    settings: Callable[..., Mapping[str, object]]
    # `envs/<environment>.yaml`.
    environment: str
    runs_on: RunsOn
    memory_mb: int
    # A pretraining (`runs_on` is "gpus") requests the time estimated from its steps, if there is an estimate.
    minutes: int
    memory_mb_per_thread: int = 0
    # Names the key `compute.<threads>_threads`; without it, one thread.
    threads: Threads | None = None
    # Keys of the block `compute` that the function receives as `runtime`; no result depends on them.
    runtime: tuple[str, ...] = ()
    # Returns all files that a job reads, by argument of the function: the inputs of its rule and of its call's file.
    # The function here takes wildcards, and by name `of` (Outputs), `results` (ResultPaths), `jobs` (Jobs) and
    # `project`.
    inputs: Callable[..., Mapping[str, Paths]] = lambda: {}
    # Patterns of the files that a job writes, by name. The first is the function's `output`; an `OutputPath` receives
    # the file of its name. For a stage with `shared`, they are derived from it.
    outputs: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    # Outputs that `snakemake --report` shows, by name: the category and the subcategory, with wildcards.
    # `workflow/report/<stage>.rst` is their caption.
    reported: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Narrower patterns of wildcards that may have only some values in this stage.
    wildcard_patterns: Callable[..., Mapping[str, str]] = lambda project: {}
    # Files that must exist before a job starts but that its function does not receive.
    made_after: Callable[..., list[str]] = lambda: []
    # Additional texts recorded by Snakemake: a job runs again when one of them changes.
    recorded: Mapping[str, Callable[..., str]] = field(default_factory=dict)
    # Jobs of a higher priority start first.
    priority: int = 0
    # Returns the files that a job reads of a raw input, from its settings and the input's name in its manifest; None:
    # all. The other files may change without a rerun of the job.
    files_read: "Callable[[Mapping[str, Any], str, RawSource], Iterable[str]] | None" = None
    # Returns further arguments of the function, from the same values: no result depends on them, and they cause no
    # rerun.
    unrecorded: Callable[..., Mapping[str, object]] = lambda: {}
    shared: StoredByDigest | None = None
    # Set for stages whose results belong to a model: how the results are stored.
    evaluation: "Evaluation | None" = None
    # True if a finished result is reused (`artifacts.manifests.reuse_complete`).
    keep: bool = False
    # Names of an argument's inputs in the manifest, if not the argument's name or, for a mapping, its keys:
    # `{"source": "source {}"}`.
    input_names: Mapping[str, str] = field(default_factory=dict)
    # Class of the function's settings; it marks keys that are omitted at their default.
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
        """Return the pattern of a file for each job below `root`, such as `logs/finetune/{model}/{address}.log`."""
        return "/".join([root, self.name, *(f"{{{name}}}" for name in self.wildcards)]) + suffix

    def canonical_settings(self, project: object, **wildcards: str) -> str:
        """Return canonical JSON of all configuration that a job depends on; unneeded wildcards are ignored.

        Raises ConfigError for a broken or unknown block.
        """
        return self.canonical(self.settings(project, **arguments_for(self.settings, wildcards)))

    def canonical(self, body: Mapping[str, Any]) -> str:
        """Return canonical JSON of settings, with the name and version of the stage."""
        if self.settings_class is not None:
            body = without_defaults(self.settings_class, body)
        return canonical_json(plain({"stage": self.name, "stage_version": self.version, **body}))


def has_record(function: Callable[..., None]) -> bool:
    """Return True if a function is a stage. Functions that are only called by users or other stages have no record."""
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
    """Return the stage of a rule, which a module may name `hatchery_summarise`; the rule's name if it is no stage."""
    return max((name for name in stage_files() if rule == name or rule.endswith(f"_{name}")), key=len, default=rule)


def function_of(name: str) -> Callable[..., None]:
    """Return the function of a stage. Raises ConfigError with the nearest name if there is no such stage."""
    files = stage_files()
    if name not in files:
        raise ConfigError(f"run.py: there is no stage {name!r}{nearest(name, files)}")
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
    """Return the parameter names of a function of a record."""
    return tuple(inspect.signature(function).parameters)


def arguments_for(function: Callable[..., Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Select the values that the function has parameters for, by name."""
    return {name: values[name] for name in parameters(function) if name in values}
