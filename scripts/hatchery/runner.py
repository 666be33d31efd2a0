"""Runs stages: builds the arguments of a stage's function from JSON, calls the function, and writes the manifest.

A stage is a function (`stage.py`). The name and type of a parameter determine the argument:

- `settings`: an object of the annotated settings class. If the annotation is a mapping, the settings are passed
  unchanged.
- `run`: an object that collects the outputs for the manifest at `output` (`stage_run`).
- `job`: an object (`Job`) with the settings, inputs and output of the job, for a function that writes the manifest
  itself.
- `output`: the path of the file to write, for stages without a manifest.
- A parameter of type `Manifest`: an input manifest that has been read. A `Path` is an input that the function reads
  itself; an `OutputPath` is a file that the function writes.
- Other parameters are settings such as `runtime`, numbers and texts.
- `inputs`: a dataclass whose fields are inputs of these types, for functions with many inputs.

The runner compares each input with its recorded checksum before and after the call, so the functions need not check
files.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from hatchery.artifacts.checksums import checksums_of, verified_view
from hatchery.artifacts.manifests import MANIFEST, Manifest, read_manifest, reuse_complete, stage_run
from hatchery.errors import ConfigError
from hatchery.raw.listings import location_of
from hatchery.raw.registration import open_source
from hatchery.settings.problems import nearest
from hatchery.source_parts import digests_read
from hatchery.stage import has_record, record_of
from hatchery.typed import build, stage_body

OutputPath = Annotated[Path, "a path to write to"]

BY_THE_RUNNER = ("settings", "output", "run", "job")
INPUTS = "inputs"
GIVEN = ("settings", "output")
"""Arguments that all stages need in their JSON, even if their functions do not declare these parameters."""


@dataclass(frozen=True)
class Job:
    """Settings of a job (with name and version of the stage), inputs by their names in the manifest, and the output."""

    settings: Mapping[str, Any]
    inputs: Mapping[str, Path]
    output: Path

    @cached_property
    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each input by the input's name. Raises ManifestError for a missing input."""
        return digests_read(self.settings, self.inputs)


@dataclass(frozen=True)
class Argument:
    """A parameter of a stage's function.

    `type` is the parameter's type without `| None`; for a mapping or list, it is the type of the values.
    """

    name: str
    type: Any
    group: type[Mapping[str, Any]] | type[Sequence[Any]] | None
    is_input: bool
    is_place: bool
    # Default value of the parameter, or `inspect.Parameter.empty`.
    default: Any

    @property
    def is_json(self) -> bool:
        """True if the function receives a JSON object or list, and not a path, manifest, number or text."""
        return self.type not in (Path, Manifest, int, str)

    @property
    def is_required(self) -> bool:
        """True if the parameter has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def expected(self) -> str:
        """Description of the JSON value that the parameter accepts."""
        if self.is_json:
            return "an object"
        if self.group is not None:
            return "an object of paths" if self.group is Mapping else "a list of paths"
        return {int: "a number", str: "a text"}.get(self.type, "a path")

    def from_json(self, value: Any) -> Any:
        """Return a JSON value as an argument for `run_stage`, with paths as `Path`; None if the value is missing.

        Raises ConfigError for a value of the wrong type.
        """
        if isinstance(value, list) and len(value) < 2 and not (self.group or self.is_json):
            value = value[0] if value else None
        if value is None or (self.is_json and isinstance(value, dict)):
            return value
        if self.group is Mapping and isinstance(value, dict) and all(isinstance(path, str) for path in value.values()):
            return {name: Path(path) for name, path in value.items()}
        if self.group is Sequence and isinstance(value, list) and all(isinstance(path, str) for path in value):
            return [Path(path) for path in value]
        if self.group is None and self.type is int and type(value) is int:
            return value
        if self.group is None and isinstance(value, str) and not self.is_json and self.type is not int:
            return value if self.type is str else Path(value)
        raise ConfigError(f"{self.name}: got {value!r}, expected {self.expected}")

    def inputs(self, given: Any, name: str | None) -> dict[str, Path]:
        """Return the input paths in `given`, the value of this parameter, by their names in the manifest.

        `name` is the name that the manifest uses for this input; None means the name of the parameter. Further paths of
        a list are named `<name>_2`, `<name>_3` and so on. For a mapping, `{}` in `name` is replaced by the key of each
        path; if `name` is None, the key is the name.
        """
        if not self.is_input or given is None:
            return {}
        if self.group is Mapping:
            return {(name or "{}").format(key): path for key, path in given.items()}
        name, paths = name or self.name, given if self.group else [given]
        return {name if number == 1 else f"{name}_{number}": path for number, path in enumerate(paths, 1)}

    def opened(self, given: Any) -> Any:
        """Return the object that the function receives if the value of this parameter is `given`.

        For example, if `given` is a path and the parameter's type is `Manifest`, the function receives the manifest at
        this path.
        """
        if self.is_json:
            return given if self.type is Any or given is None else build(self.type, given, self.name)
        if self.type is not Manifest or given is None:
            return given
        if self.group is Mapping:
            return {name: read_manifest(path) for name, path in given.items()}
        return [read_manifest(path) for path in given] if self.group else read_manifest(given)


def verify_inputs(paths: Iterable[Path]) -> None:
    """Compare files with their checksums in manifests, source manifests or checksum files.

    Raises ManifestError or SourceError for the first altered file.
    """
    for path in paths:
        if path.name == MANIFEST:
            read_manifest(path).verify()
        elif location_of(path).exists():
            open_source(path).verify()
        elif checksums_of(path).exists():
            verified_view(path)
        elif (vouching := path.with_name(MANIFEST)).exists():
            manifest = read_manifest(vouching)
            for output in manifest.outputs:
                if output.path == path:
                    manifest.check(output)


@cache
def arguments_of(function: Callable[..., None]) -> Mapping[str, Argument]:
    """Return the parameters of a stage's function by name; fields of the dataclass `inputs` count as parameters."""
    hints, empty = get_type_hints(function, include_extras=True), inspect.Parameter.empty
    parameters = inspect.signature(function).parameters
    found = {name: _argument(name, hints[name], each.default) for name, each in parameters.items() if name != INPUTS}
    for each in fields(hints[INPUTS]) if INPUTS in hints else ():
        default = each.default if each.default is not MISSING else empty
        found[each.name] = _argument(each.name, get_type_hints(hints[INPUTS])[each.name], default)
    return found


def _argument(name: str, hint: Any, default: Any) -> Argument:
    empty = inspect.Parameter.empty
    if type(None) in get_args(hint):
        hint = next(part for part in get_args(hint) if part is not type(None))
        default = None if default is empty else default
    group = get_origin(hint)
    if group not in (Mapping, Sequence) or Any in get_args(hint):
        inner, group = Any if group is Mapping else hint, None
    else:
        inner, default = get_args(hint)[-1], () if default is empty and group is Sequence else default
        default = {} if default is empty else default
    is_place = get_origin(inner) is Annotated
    kind = get_args(inner)[0] if is_place else inner
    return Argument(name, kind, group, kind in (Path, Manifest) and not is_place, is_place, default)


def inputs_of(function: Callable[..., None], given: Mapping[str, Any]) -> dict[str, Path]:
    """Return the input paths among the arguments `given` of a stage's function, by their names in the manifest."""
    arguments, names = arguments_of(function), record_of(function).input_names if has_record(function) else {}
    inputs: dict[str, Path] = {}
    for name, value in given.items():
        inputs |= arguments[name].inputs(value, names.get(name))
    return inputs


def run_stage(function: Callable[..., None], settings: Mapping[str, Any], output: Path, **given: Any) -> None:
    """Call the function of a stage. `given` contains the other arguments of this function by name of the parameter:
    paths, lists or mappings of paths, and runtime settings.

    Raises ConfigError for wrong settings, ManifestError for a missing or altered input, and any exception of the
    function. The manifest is written last, and only if no exception was raised.
    """
    arguments, keep = arguments_of(function), has_record(function) and record_of(function).keep
    typed = arguments["settings"].type
    inputs = inputs_of(function, given)
    # Collect the paths without names, because in a stage without a manifest two inputs may have the same name.
    paths = [path for name, value in given.items() for path in arguments[name].inputs(value, None).values()]
    job = Job(settings, inputs, output)
    known: dict[str, Any] = {"settings": settings, "job": job, "output": output}
    if typed is not Any:
        known["settings"] = build(typed, stage_body(settings), settings.get("stage", function.__name__))
    others = [argument for name, argument in arguments.items() if name not in BY_THE_RUNNER]
    # Check the values before searching for a finished result, so that errors do not depend on whether a result exists.
    known |= {each.name: each.opened(given.get(each.name, each.default)) for each in others if each.is_json}

    def call(**more: Any) -> None:
        verify_inputs(paths)
        opened = {
            each.name: each.opened(given.get(each.name, each.default))
            for each in others
            if not each.is_json and (each.name in given or not each.is_required)
        }
        given_by_us = {name: value for name, value in known.items() if name in arguments}
        if (grouped := get_type_hints(function).get(INPUTS)) is not None:
            given_by_us[INPUTS] = grouped(
                **{each.name: opened.pop(each.name) for each in fields(grouped) if each.name in opened}
            )
        function(**given_by_us, **opened, **more)
        # Verify the inputs again: if an input was altered during the call, the manifest must not contain its old
        # checksum.
        verify_inputs(paths)

    if "run" not in arguments:
        call()
    elif not (keep and reuse_complete(output, settings, job.digests)):
        with stage_run(output, settings, inputs, keep, job.digests) as run:
            call(run=run)


def run_given(function: Callable[..., None], given: Mapping[str, Any]) -> None:
    """Run a stage with the arguments in a JSON object, which include `settings` and `output`.

    Raises ConfigError for an argument that is missing, unknown or of the wrong type, and the exceptions of `run_stage`.
    """
    stage = function.__name__
    arguments = {name: each for name, each in arguments_of(function).items() if name not in BY_THE_RUNNER}
    for name in given:
        if name not in arguments and name not in GIVEN:
            known = [*GIVEN, *arguments]
            raise ConfigError(
                f"run.py {stage}: unknown argument {name!r}{nearest(name, known)}; `run.py {stage}` lists the arguments"
            )
    missing = [name for name in GIVEN if name not in given]
    try:
        found = {name: each.from_json(given.get(name)) for name, each in arguments.items()}
        if not isinstance(output := given.get("output", ""), str):
            raise ConfigError(f"output: got {output!r}, expected a path")
    except ConfigError as error:
        raise ConfigError(f"run.py {stage}: {error}") from None
    missing += [name for name, each in arguments.items() if each.is_required and found[name] is None]
    if missing:
        raise ConfigError(
            f"run.py {stage}: missing arguments: {', '.join(missing)}; `run.py {stage}` lists all arguments"
        )
    taken = {name: value for name, value in found.items() if value is not None}
    run_stage(function, given["settings"], Path(output), **taken)


def usage(function: Callable[..., None]) -> str:
    """Return a description of a stage's arguments, for users who run a stage from the command line."""
    arguments = {name: each for name, each in arguments_of(function).items() if name not in BY_THE_RUNNER}
    lines = ["settings: an object", "output: a path, the manifest or other file to write"]
    lines += [f"{name}: {each.expected}{'' if each.is_required else ', optional'}" for name, each in arguments.items()]
    described = "".join(f"  {line}\n" for line in lines)
    text = inspect.getdoc(function) or ""
    return (
        f"usage: run.py {function.__name__} JSON..., where JSON is a JSON object or a file with a JSON object; keys:\n"
        f"{described}\n{text}\n"
    )
