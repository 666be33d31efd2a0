"""Selection of those files of a registered raw input that a job reads. The settings of the job determine these files.

The job's manifest records only the digest of these files. So the result of the job stays up to date if other files of
the raw input are added, edited or removed. If the job reads all files, the manifest records the digest of the source
manifest.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import input_digests, read_manifest, volatile_facts
from hatchery.errors import HatcheryError
from hatchery.raw.listings import location_of
from hatchery.raw.registration import RawSource, open_source
from hatchery.stage import function_of, has_record, record_of, stage_files


def part_read(settings: Mapping[str, Any], name: str, source: RawSource) -> RawSource:
    """Return `source` with only those files that a job reads from its input `name`.

    `settings` are the settings of the job and contain the name of the stage. Return all files if the stage defines no
    function `files_read`, or if this function raises a HatcheryError.
    """
    stage = settings.get("stage", "")
    if stage not in stage_files() or not has_record(function := function_of(stage)):
        return source
    files_read = record_of(function).files_read
    if files_read is None:
        return source
    try:
        return source.only(files_read(settings, name, source))
    except HatcheryError:
        return source


def digest_read(settings: Mapping[str, Any], name: str, path: Path) -> str:
    """Return the digest of the input `name` for the manifest of a job with these settings. If the input is a registered
    raw input (`path` is its source manifest) and the job reads only some of its files, return the SHA-256 of these
    files. In all other cases, return the SHA-256 of the file at `path`.

    Raises SourceError for a damaged source manifest.
    """
    if not location_of(path).exists():
        return sha256_file(path)
    source = open_source(path)
    part = part_read(settings, name, source)
    return sha256_file(path) if len(part.files) == len(source.files) else part.digest


def digests_read(settings: Mapping[str, Any], inputs: Mapping[str, Path]) -> dict[str, str]:
    """Return the digest of each input, computed by `digest_read`, sorted by name of the input.

    Raises ManifestError for a missing input, and SourceError for a damaged source manifest.
    """
    whole = input_digests({name: path for name, path in inputs.items() if not location_of(path).exists()})
    parts = {name: digest_read(settings, name, path) for name, path in inputs.items() if name not in whole}
    return dict(sorted((whole | parts).items()))


def is_what_was_read(made: Path, manifest: str, now: RawSource) -> bool:
    """Return True if those files of a raw input that a job has read are unchanged.

    `made` is the manifest of the job's result, `manifest` is the source manifest, and `now` is the source with its
    current files.
    """
    found = read_manifest(made)
    names = [name for name, path in volatile_facts(made).get("inputs", {}).items() if path == manifest]
    return bool(names) and all(part_read(found.settings, name, now).digest == found.inputs.get(name) for name in names)
