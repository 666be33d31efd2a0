"""The record of a stage, on its function: the stage's rule, command line and environment follow from it.

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
"""Where a job runs. "local": on the submitting machine; "cpu": without a model; "gpu": on one GPU, if there are any;
"gpus": on the nodes and GPUs of the `cluster` block."""

Threads = Literal["corpus", "tokenization", "evaluation", "pretraining"]

MODELS = ("pretraining", "baselines")
"""The folders of an experiment that hold models: its own, and those that others pretrained."""

MODEL = "results/models/{model}/manifest.json"
"""Path pattern of a model's manifest: a trained model, an imported model, or a checkpoint."""
ADDRESS = rf"{NAME}-[0-9a-f]{{{DIGITS}}}"
"""Pattern of the name of a result's folder that experiments share: a name, and the digest of the job's call."""
IMPORTED = "imported-"
"""The beginning of the addresses of models that others pretrained; no name of a corpus has a hyphen."""


def one_of(names: Iterable[str]) -> str:
    """Return a pattern that matches these names only, and nothing if there are none."""
    return "|".join(names) or "-"


def none_of(names: Iterable[str]) -> str:
    """Return a pattern of the name of a folder, without these names."""
    return f"(?!(?:{one_of(names)})/){NAME}"


@dataclass(frozen=True)
class Shared:
    """That results belong to a model and lie under what they are made from, so that experiments share them.

    `folder` of an experiment holds links to them; `names` tell the results of one model apart there.
    """

    folder: str
    names: tuple[str, ...] = ()

    @property
    def wildcards(self) -> tuple[str, ...]:
        """What names the place of a result: the model's address, and that of what was measured of it."""
        return ("model",) if self.folder in MODELS else ("model", "address")

    @property
    def outputs(self) -> dict[str, str]:
        """The pattern of a result's manifest."""
        if self.folder in MODELS:
            return {"output": MODEL}
        return {"output": f"results/{self.folder}/{{model}}/{{address}}/manifest.json"}

    def models(self, model: str) -> dict[str, str]:
        """The model at an address as an input of what is measured of it. It is no part of the measurement's address."""
        return {} if self.folder in MODELS else {"model": MODEL.format(model=model)}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage, a decorator of its function. Its rule, log and benchmark are called as the function is."""

    name: str = ""
    # Raised when the meaning of the code changes, so that results of the old code are made anew.
    version: int
    # The part of the resolved configuration that results depend on, of the project and the wildcards by their names.
    settings: Callable[..., Mapping[str, object]]
    # `envs/<environment>.yaml`.
    environment: str
    runs_on: RunsOn
    memory_mb: int
    # A pretraining (`runs_on` is "gpus") asks for the time that follows from its steps, if that is known.
    minutes: int
    memory_mb_per_thread: int = 0
    # The threads of `compute.<threads>_threads`; one without.
    threads: Threads | None = None
    # Keys of the block `compute` that the function is given as `runtime`; no result depends on them.
    runtime: tuple[str, ...] = ()
    # All that a job reads, by the arguments of the function: the inputs of its rule, and those in its call's file. The
    # function here takes wildcards, and by name `of` (Outputs), `results` (ResultPaths), `jobs` (Jobs) and `project`.
    inputs: Callable[..., Mapping[str, Paths]] = lambda: {}
    # Patterns of the files that a job writes, by name. The first is the function's `output`; an `OutputPath` gets the
    # file of its name. Those of a stage with `shared` follow from that.
    outputs: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    # Outputs that `snakemake --report` shows, by name: the category and the subcategory, with wildcards.
    # `workflow/report/<stage>.rst` is their caption.
    reported: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Of wildcards that only some values of their pattern may have here: narrower patterns.
    wildcard_patterns: Callable[..., Mapping[str, str]] = lambda project: {}
    # Files that have to be made before a job starts, though its function is not given them.
    made_after: Callable[..., list[str]] = lambda: []
    # Texts by which Snakemake notices more than settings and inputs say: a job runs again when one of them changes.
    recorded: Mapping[str, Callable[..., str]] = field(default_factory=dict)
    # Jobs of a higher priority start first.
    priority: int = 0
    # The files that a job reads of a raw input, by its settings and the input's name in its manifest; without, all.
    # Others may come and go: the job is not run again for them.
    files_read: "Callable[[Mapping[str, Any], str, RawSource], Iterable[str]] | None" = None
    # What the function is given besides, of the same: no result depends on it, and nothing is made anew for it.
    unrecorded: Callable[..., Mapping[str, object]] = lambda: {}
    shared: Shared | None = None
    # Of a stage that measures models: what becomes of its results.
    evaluation: "Evaluation | None" = None
    # Whether work that is finished is taken as it is (`artifacts.manifests.reuse_complete`).
    keep: bool = False
    # What the manifest calls the inputs of an argument, if not by its name or, in a mapping, by their own:
    # `{"source": "source {}"}`.
    input_names: Mapping[str, str] = field(default_factory=dict)
    # The class that the function takes the settings as, which says of some keys that they stay out at their default.
    settings_class: type[Settings] | None = None

    def __call__(self, function: Function) -> Function:
        """The function, with this as its record."""
        taken = function.__annotations__.get("settings")
        cls = taken if isinstance(taken, type) and issubclass(taken, Settings) else None
        outputs = self.outputs or (self.shared.outputs if self.shared else {})
        function.__dict__["stage"] = replace(self, name=function.__name__, settings_class=cls, outputs=outputs)
        return function

    @property
    def wildcards(self) -> tuple[str, ...]:
        """The wildcards of the rule, in the order in which logs and benchmarks name them."""
        return self.shared.wildcards if self.shared else parameters(self.settings)[1:]

    @property
    def first_output(self) -> str:
        """The pattern of the file that the function knows as its `output`."""
        first = next(iter(self.outputs.values()))
        return first if isinstance(first, str) else first[0]

    def place(self, root: str, suffix: str) -> str:
        """The pattern of a file of this stage's jobs below `root`, such as `logs/finetune/{model}/{address}.log`."""
        return "/".join([root, self.name, *(f"{{{name}}}" for name in self.wildcards)]) + suffix

    def canonical_settings(self, project: object, **wildcards: str) -> str:
        """Canonical JSON of everything in the configuration that a job depends on; takes the wildcards it needs.

        Raises ConfigError for a broken or unknown block.
        """
        return self.canonical(self.settings(project, **arguments_for(self.settings, wildcards)))

    def canonical(self, body: Mapping[str, Any]) -> str:
        """Canonical JSON of settings, with the name and version of the stage."""
        if self.settings_class is not None:
            body = without_defaults(self.settings_class, body)
        return canonical_json(plain({"stage": self.name, "stage_version": self.version, **body}))


def has_record(function: Callable[..., None]) -> bool:
    """Whether a function is a stage's; one that only people or other stages call has no record."""
    return "stage" in function.__dict__


def record_of(function: Callable[..., None]) -> Stage:
    """The record on a stage's function."""
    record: Stage = function.__dict__["stage"]
    return record


@cache
def stage_files() -> dict[str, Path]:
    """The files of all stages by their names."""
    found = [path for folder in ("hatchery/*", "demo") for path in SCRIPTS.glob(f"{folder}/stages/[a-z]*.py")]
    return {path.stem: path for path in sorted(found)}


def stage_called(rule: str) -> str:
    """Return the stage of a rule, which a module may call `hatchery_summarise`; the rule's name if it is no stage's."""
    return max((name for name in stage_files() if rule == name or rule.endswith(f"_{name}")), key=len, default=rule)


def function_of(name: str) -> Callable[..., None]:
    """The function of a stage. Raises ConfigError with the nearest name where there is none."""
    files = stage_files()
    if name not in files:
        raise ConfigError(f"run.py: there is no stage {name!r}{nearest(name, files)}")
    module = ".".join(files[name].relative_to(SCRIPTS).with_suffix("").parts)
    function: Callable[..., None] = resolve_name(f"{module}:{name}")
    return function


@cache
def stages() -> dict[str, Stage]:
    """The records of all stages by their names."""
    return {name: record_of(function) for name in stage_files() if has_record(function := function_of(name))}


@cache
def reserved_names() -> frozenset[str]:
    """Folders of `results/` that experiments share, so that no experiment may have their names."""
    first = [Path(stage.first_output).parts for stage in stages().values()]
    return frozenset({*UNDECLARED, *(parts[1] for parts in first if parts[0] == "results" and "{" not in parts[1])})


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function of a record takes."""
    return tuple(inspect.signature(function).parameters)


def arguments_for(function: Callable[..., Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the values that the function takes by their names."""
    return {name: values[name] for name in parameters(function) if name in values}
