"""Manifests of results: settings, inputs and outputs of a stage.

Two files are next to the outputs of a stage. `manifest.json` identifies the result: settings, digests of inputs and
outputs, and measures. It contains no value that changes from run to run. Therefore equal results have identical
manifests, Snakemake sees no change, and tables that contain the manifest's digest do not change. `provenance.json`
contains the values that change from run to run: time, machine, package versions, duration, speed. It also names the
folder, so that a result that was moved to another folder is detected.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import json_text, json_value, remove_leftovers, write_bytes, write_json, write_text
from hatchery.artifacts.checksums import SHOWN_DIGITS, Expected, check_file, digest, sha256_file
from hatchery.artifacts.host import surroundings
from hatchery.errors import ManifestError, MisplacedError

MANIFEST = "manifest.json"
FINISHED = "finished.json"
"""Name of a copy of the manifest. Snakemake does not know this copy, and therefore does not delete it.

The copy shows that a stage has finished, even if Snakemake or Slurm was killed before it recorded the end of the job.
"""

PROVENANCE = "provenance.json"
RESULTS = "results"
SHORT_DIGEST = 12
"""Number of hexadecimal digits with which tables and pages show the SHA-256 of a manifest."""
REMEDY = "remove this manifest to have it made again"
"""Advice for a damaged manifest: remove the manifest, because Snakemake makes missing files again."""


@dataclass(frozen=True)
class OutputFile:
    """One output in a manifest: path, size, SHA-256 and, if known, the modification time (nanoseconds) when it was
    written.
    """

    path: Path
    bytes: int
    sha256: str
    modified: int | None = None


@dataclass(frozen=True)
class Manifest:
    """Content of a manifest file; `digest` is the SHA-256 of this file."""

    path: Path
    stage: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    outputs: list[OutputFile]
    measures: dict[str, Any]
    digest: str

    @property
    def short(self) -> str:
        """First digits of the manifest's SHA-256, as tables and pages show them."""
        return self.digest[:SHORT_DIGEST]

    @property
    def folder(self) -> Path:
        """Folder that contains the manifest and its outputs."""
        return self.path.parent

    def listed(self, suffix: str = "", prefix: str = "") -> list[OutputFile]:
        """Return the outputs whose file names begin with `prefix` and end in `suffix`, in the order of the manifest.

        The outputs are not read or checked.
        """
        return [
            output
            for output in self.outputs
            if output.path.name.startswith(prefix) and output.path.name.endswith(suffix)
        ]

    def files(self, suffix: str = "", prefix: str = "") -> list[Path]:
        """Return the paths of the outputs whose file names begin with `prefix` and end in `suffix`."""
        return [output.path for output in self.listed(suffix, prefix)]

    def file(self, name: str) -> Path:
        """Return the path of the output `name`, a path relative to the folder of the manifest.

        Raises ManifestError if the manifest has no such output.
        """
        for output in self.outputs:
            if output.path == self.folder / name:
                return output.path
        raise ManifestError(f"{self.path}: the manifest has no output {name!r}")

    def check(self, output: OutputFile) -> None:
        """Raise ManifestError if an output file differs from the size and checksum in this manifest."""
        remedy = f"remove {self.path} and run the same command again to make the result again"
        stated_by = str(self.path)
        check_file(
            output.path,
            Expected(str(output.path), output.bytes, output.sha256, stated_by, remedy, modified=output.modified),
        )

    def verify(self) -> None:
        """Check all outputs, and raise ManifestError for the first output that differs from its checksum in this
        manifest.
        """
        for output in self.outputs:
            self.check(output)


def read_manifest(path: str | Path) -> Manifest:
    """Return the manifest at `path`.

    Raises ManifestError if the file is missing, is not JSON, lacks a key, was altered, or was written for another
    folder.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
        value = json_value(content.decode("utf-8"))
    except FileNotFoundError as error:
        raise ManifestError(f"{path}: the manifest is missing; to make it: snakemake --cores 1 {path}") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError(f"{path}: the manifest cannot be read: {reason}; {REMEDY}") from error
    found = sha256(content).hexdigest()
    modified = _check_manifest(path, found)
    try:
        outputs = [
            OutputFile(path.parent / o["path"], int(o["bytes"]), str(o["sha256"]), modified.get(o["path"]))
            for o in value["outputs"]
        ]
        return Manifest(
            path=path,
            stage=value["stage"],
            settings=value["settings"],
            inputs=value["inputs"],
            outputs=outputs,
            measures=value["measures"],
            digest=found,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"{path}: the file is not a manifest: {type(error).__name__} at {error}") from error


def _check_manifest(path: Path, found: str) -> dict[str, int]:
    """Check a manifest, and return the modification time of each output by name, as recorded in `provenance.json`.

    The result is empty if `provenance.json` is missing or damaged. Raises ManifestError if the manifest's digest
    (`found`) or folder differs from the digest or folder in `provenance.json`.
    """
    try:
        facts = volatile_facts(path)
    except ManifestError:
        return {}
    if (expected := facts.get("manifest_sha256")) is not None:
        Expected(str(path), None, str(expected), str(path.with_name(PROVENANCE)), REMEDY).check_digest(found)
    if (place := facts.get("place")) is not None and RESULTS in path.parts:
        wanted, folder = Path(place).parts, Path(os.path.realpath(path.parent))
        # Compare the recorded folder with the given path and with the path whose links are resolved, because
        # experiments contain links to shared results. If a user has replaced a folder below results/ by a link to
        # another disk, the resolved path need not contain the first component of the recorded folder.
        results = os.path.realpath(Path(*path.parts[: path.parts.index(RESULTS) + 1]))
        own = wanted if folder.is_relative_to(results) else wanted[1:]
        if path.parent.parts[-len(wanted) :] != wanted and folder.parts[-len(own) :] != own:
            raise MisplacedError(
                f"{path}: the result was made in {RESULTS}/{place}; move the result back to this folder, or {REMEDY}"
            )
    return dict(facts.get("modified", {}))


def _place(folder: Path) -> str | None:
    """Return the path of a folder relative to results/, such as `models/tiny-0123456789abcdef`; None outside of
    results/.
    """
    parts = folder.parts
    return "/".join(parts[parts.index(RESULTS) + 1 :]) if RESULTS in parts else None


def volatile_facts(manifest: Path) -> dict[str, Any]:
    """Return the content of the file `provenance.json` next to a manifest; empty if this file is missing.

    Raises ManifestError if the file is damaged.
    """
    path = manifest.with_name(PROVENANCE)
    try:
        value = json_value(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError(
            f"{path}: cannot be read: {reason}; remove this file, or remove {manifest} to have both files made again"
        ) from error
    if not isinstance(value, dict):
        raise ManifestError(f"{path}: expected a JSON object, got {type(value).__name__}")
    checksum = value.pop("checksum", None)
    if checksum is not None and checksum != (is_now := digest(value)):
        shown = f"{is_now[:SHOWN_DIGITS]}, expected {str(checksum)[:SHOWN_DIGITS]}"
        raise ManifestError(
            f"{path}: its content has the checksum {shown}; remove this file, or remove {manifest} to have both "
            "files made again"
        )
    return value


def input_digests(inputs: Mapping[str, str | Path]) -> dict[str, str]:
    """Return the SHA-256 of each input file of a stage, sorted by name of the input.

    Raises ManifestError for a missing file.
    """
    for name, path in inputs.items():
        if not Path(path).is_file():
            raise ManifestError(f"{path}: the file of the input {name!r} is missing")
    return {name: sha256_file(path) for name, path in sorted(inputs.items())}


@dataclass
class StageRun:
    """Outputs, measures and other values that a running stage collects; `stage_run` writes them when the stage ends.

    `measures` are written to the manifest. `volatile` values change from run to run, and are written to
    `provenance.json`.
    """

    folder: Path
    outputs: list[Path] = field(default_factory=list)
    measures: dict[str, Any] = field(default_factory=dict)
    volatile: dict[str, Any] = field(default_factory=dict)
    volatile_files: list[Path] = field(default_factory=list)
    """Files that the stage has written but that are not part of the result, such as logs of the speed;
    `provenance.json` contains their checksums.
    """

    def add_output(self, path: str | Path) -> Path:
        """Record a finished output file, which must be inside the manifest's folder, and return the file's path."""
        path = Path(path)
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise ManifestError(f"{path}: expected an output in {self.folder}")
        self.outputs.append(path)
        return path


@contextmanager
def stage_run(
    output: str | Path,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str | Path] | None = None,
    keep: bool = False,
    digests: Mapping[str, str] | None = None,
) -> Iterator[StageRun]:
    """Yield an object that collects the outputs of a stage, and write the manifest to `output` at the end.

    `settings` are the stage's resolved settings (with `stage` and `stage_version`). `inputs` are the manifests or files
    that the stage reads, by name. `digests`, if given, replaces the SHA-256 of the inputs: if a stage reads only some
    files of an input, the digest covers only these files. The manifest of an earlier run is removed first. The new
    manifest is written last, and only on success. If `keep` is true, a copy of the manifest is written for
    `reuse_complete`. Raises ManifestError for a missing input.
    """
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    output.with_name(FINISHED).unlink(missing_ok=True)
    remove_leftovers(output.parent)
    started = time.time()
    digests = input_digests(inputs or {}) if digests is None else dict(sorted(digests.items()))
    run = StageRun(output.parent)
    yield run
    entries, modified = [], {}
    for path in run.outputs:
        name, found = path.resolve().relative_to(output.parent.resolve()).as_posix(), path.stat()
        entries.append({"path": name, "bytes": found.st_size, "sha256": sha256_file(path)})
        modified[name] = found.st_mtime_ns
    identity = {
        "stage": settings.get("stage", ""),
        "stage_version": settings.get("stage_version", 0),
        "settings": dict(settings),
        "inputs": digests,
        "outputs": sorted(entries, key=lambda entry: str(entry["path"])),
        "measures": run.measures,
    }
    text = json_text(identity)
    volatile = {
        **surroundings(started),
        "inputs": {name: str(path) for name, path in sorted((inputs or {}).items())},
        **run.volatile,
        "files": {path.name: sha256_file(path) for path in run.volatile_files},
        "modified": modified,
        "manifest_sha256": sha256(text.encode("utf-8")).hexdigest(),
        "place": _place(output.parent),
    }
    # Convert the values to the form in which JSON returns them (numeric keys become text), so that the checksum is the
    # same before writing and after reading.
    volatile = json.loads(json_text(volatile))
    write_json(output.parent / PROVENANCE, {**volatile, "checksum": digest(volatile)})
    if keep:
        write_text(output.with_name(FINISHED), text)
    write_text(output, text)


FORCED = "HATCHERY_FORCED"
"""Environment variable that is set if the user forces jobs to run. Finished results are then not reused."""


def is_made_from(path: str | Path, settings: Mapping[str, Any], digests: Mapping[str, str]) -> bool:
    """Return True if the manifest at `path` contains these settings and these digests of inputs, and if manifest and
    outputs match their checksums.
    """
    try:
        found = read_manifest(path)
        found.verify()
    except ManifestError:
        return False
    return found.settings == dict(settings) and found.inputs == dict(digests)


def is_forced() -> bool:
    """Return True if the user forces jobs to run, so that no finished result is reused."""
    return bool(os.environ.get(FORCED))


def reuse_complete(output: str | Path, settings: Mapping[str, Any], digests: Mapping[str, str]) -> bool:
    """Reuse the result if an earlier run has already finished the stage: restore the manifest from its copy and return
    True.

    The stage counts as finished if the copy (see `keep` of `stage_run`) contains the given settings and digests of
    inputs, and if all outputs match their checksums. Return False if the stage is not finished, or if the user forces
    jobs to run.
    """
    output = Path(output)
    finished = output.with_name(FINISHED)
    if is_forced() or not finished.is_file() or not is_made_from(finished, settings, digests):
        return False
    # Remove the temporary file that a run leaves if it was killed while it wrote the manifest.
    remove_leftovers(output.parent)
    write_bytes(output, finished.read_bytes())
    print(f"{output}: reused the finished result, whose checksums are correct", file=sys.stderr, flush=True)
    return True
