"""What a job reads of a registered raw input: the files that its settings choose.

A manifest records the digest of these files as if nothing lay beside them. So a file that no pattern takes may be put
there, edited or removed, and what was made from the others is still what it would be. Where all files are read, this is
the digest of the source manifest itself.
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
    """The source with those of its files that a job of these settings reads as its input `name`.

    `settings` name the stage. All files where the stage does not say, or would end in an error.
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
    """SHA-256 of what a job of these settings reads of an input. Raises SourceError for a damaged source manifest."""
    if not location_of(path).exists():
        return sha256_file(path)
    source = open_source(path)
    part = part_read(settings, name, source)
    return sha256_file(path) if len(part.files) == len(source.files) else part.digest


def digests_read(settings: Mapping[str, Any], inputs: Mapping[str, Path]) -> dict[str, str]:
    """The same of all inputs by their names, sorted. Raises ManifestError naming one that is missing, too."""
    whole = input_digests({name: path for name, path in inputs.items() if not location_of(path).exists()})
    parts = {name: digest_read(settings, name, path) for name, path in inputs.items() if name not in whole}
    return dict(sorted((whole | parts).items()))


def is_what_was_read(made: Path, manifest: str, now: RawSource) -> bool:
    """Whether `now`, the source of a source manifest, holds what the job that wrote the manifest `made` read of it."""
    found = read_manifest(made)
    names = [name for name, path in volatile_facts(made).get("inputs", {}).items() if path == manifest]
    return bool(names) and all(part_read(found.settings, name, now).digest == found.inputs.get(name) for name in names)
