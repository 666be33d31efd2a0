"""What a stage is: a record on its function, from which its rule, its command line and its environment follow.

A stage `name` is the file `<package>/stages/name.py`, which holds the record, the settings and the function `name`, and
the rule `name` in `workflow/rules/`. Planning imports the files of all stages, so what computes is imported inside the
function; a job imports the file of its own stage.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hatchery.artifacts.checksums import canonical_json
from hatchery.errors import ConfigError
from hatchery.job_spec import Paths
from hatchery.settings.base import Settings
from hatchery.settings.problems import nearest
from hatchery.typed import plain, without_defaults

if TYPE_CHECKING:
    from hatchery.evaluation.evaluation import Evaluation
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource

Function = TypeVar("Function", bound=Callable[..., None])

SCRIPTS = Path(__file__).parents[1]

RunsOn = Literal["local", "cpu", "gpu", "gpus"]
"""Where a job runs. "local": on the submitting machine; "cpu": without a model; "gpu": on one GPU, if there are any;
"gpus": on the nodes and GPUs of the `cluster` block."""

Threads = Literal["corpus", "tokenization", "evaluation", "pretraining"]

MODELS = ("pretraining", "baselines")
"""The folders of an experiment that hold models: its own, and those that others pretrained."""


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

    def models(self, model: str) -> dict[str, str]:
        """The model at an address as an input of what is measured of it. It is no part of the measurement's address."""
        return {} if self.folder in MODELS else {"model": f"results/models/{model}/manifest.json"}


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
    # Where a job's time follows from its size (`expected_minutes`), the time without that knowledge.
    minutes: int
    memory_mb_per_thread: int = 0
    # The threads of `compute.<threads>_threads`; one without.
    threads: Threads | None = None
    # Keys of the block `compute` that the function is given as `runtime`; no result depends on them.
    runtime: tuple[str, ...] = ()
    # All that a job reads, by the arguments of the function: the inputs of its rule, and what its call's file holds. Of
    # the wildcards and of what makes paths by their names: `data` (DataPaths), `results` (ResultPaths), `jobs` (Jobs).
    inputs: Callable[..., Mapping[str, Paths]] = lambda: {}
    # The files that a job reads of a raw input, by its settings and the input's name in its manifest; without, all.
    # Others may come and go: the job is not run again for them.
    files_read: "Callable[[Mapping[str, Any], str, RawSource], Iterable[str]] | None" = None
    # What the function is given besides, of the same: no result depends on it, and nothing is made anew for it.
    unrecorded: Callable[..., Mapping[str, object]] = lambda: {}
    shared: Shared | None = None
    # Of a stage that measures models: what becomes of its results.
    evaluation: "Evaluation | None" = None
    # Minutes of a job, of the planned work (`work`), the project and the names of a result.
    expected_minutes: Callable[..., float | None] | None = None
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
        function.__dict__["stage"] = replace(self, name=function.__name__, settings_class=cls)
        return function

    @property
    def wildcards(self) -> tuple[str, ...]:
        """The wildcards of the rule, in the order in which logs and benchmarks name them."""
        return self.shared.wildcards if self.shared else parameters(self.settings)[1:]

    def place(self, root: str, suffix: str) -> str:
        """The pattern of a file of this stage's jobs below `root`, such as `logs/finetune/{model}/{address}.log`."""
        return "/".join([root, self.name, *(f"{{{name}}}" for name in self.wildcards)]) + suffix

    def canonical_settings(self, project: "Project", **wildcards: str) -> str:
        """Canonical JSON of everything in the configuration that a job depends on; takes the wildcards it needs.

        Raises ConfigError for a broken or unknown block.
        """
        body = self.settings(project, **arguments_for(self.settings, wildcards))
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


def function_of(name: str) -> Callable[..., None]:
    """The function of a stage. Raises ConfigError with the nearest name where there is none."""
    files = stage_files()
    if name not in files:
        raise ConfigError(f"run.py: there is no stage {name!r}{nearest(name, files)}")
    module = ".".join(files[name].relative_to(SCRIPTS).with_suffix("").parts)
    function: Callable[..., None] = resolve_name(f"{module}:{name}")
    return function


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function of a record takes."""
    return tuple(inspect.signature(function).parameters)


def arguments_for(function: Callable[..., Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the values that the function takes by their names."""
    return {name: values[name] for name in parameters(function) if name in values}
