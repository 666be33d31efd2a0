"""Obtains the files of a raw input: at its `path` if one is set, otherwise by a download.

Archives are unpacked once, into `<fetched>/<name>/`. There is one exception: if the only download is an archive without
the setting `unpack`, it is unpacked into `<fetched>/<name>/unpacked/`. All other files are read in place. If the data
are neither on this machine nor downloadable, an error message names the missing data and the configuration key for
their path. The message also states where the data are available, and their terms of use.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import SourceError
from hatchery.raw.archives import ArchiveLimits, is_archive, unpack
from hatchery.raw.fetched_folder import FetchedFolder
from hatchery.raw.registration import open_source, register_source
from hatchery.raw.settings import Download, SourceSettings, conditions, source_problem, source_settings
from hatchery.typed import plain

FETCHED = Path("resources/fetched")
# Name prefix of sources that the demo generates. Their files are checked against the manifest of the generating stage.
GENERATED = "embedded_"


@dataclass(frozen=True)
class Obtained:
    """The files of a source: their path, their origin (a JSON object), and the archive from which they were unpacked
    (None if they were not unpacked).
    """

    root: Path
    origin: dict[str, object]
    archive: Path | None = None


def register_settings(settings: Mapping[str, Any], output: str | Path, fetched: Path = FETCHED) -> str:
    """Obtain and register the source that a stage's settings define; return one line that describes the source.

    Raises ConfigError for invalid settings, ManifestError for changed generated files, and SourceError, which states
    the problem and its remedy, if the source cannot be obtained.
    """
    source = source_settings(settings)
    obtained = obtain(source, fetched)
    if source.name.startswith(GENERATED):
        generated = read_manifest(obtained.root.parent / "manifest.json")
        for made in generated.outputs:
            if made.path.is_relative_to(obtained.root):
                generated.check(made)
    register_source(
        source.name,
        obtained.root,
        output,
        licence=source.licence,
        terms=source.terms,
        origin=obtained.origin,
        archive=obtained.archive,
        follow_links=source.follow_links,
    )
    files = open_source(output).files.values()
    size = sum(size for size, _sha256 in files)
    count = "1 file" if len(files) == 1 else f"{len(files):,} files"
    return f"source {source.name!r}: {count}, {size:,} bytes{conditions(source)}"


def obtain(source: SourceSettings, fetched: Path = FETCHED) -> Obtained:
    """Return the files of a source: those at its path or, if no path is set, files downloaded into `fetched`.

    Raises SourceError if the files are missing, or cannot be downloaded or unpacked.
    """
    folder = fetched / source.name
    if problem := source_problem(source):
        raise SourceError(problem)
    if source.path is not None:
        return _files_at(Path(source.path), folder, source.limits, {})
    if source.hub is not None:
        # Import the functions for downloads only here, because their libraries take long to import.
        from hatchery.raw.hub import fetch_hub

        return Obtained(fetch_hub(source.hub, folder), {"hub": plain(source.hub)})
    if source.hub_model is not None:
        from hatchery.raw.hub import fetch_hub_model

        return Obtained(fetch_hub_model(source.hub_model, folder), {"hub_model": asdict(source.hub_model)})
    downloads = source.download or ()
    root = _downloaded(downloads, folder, source.limits)
    return _files_at(
        root, folder / "unpacked", source.limits, {"download": [asdict(download) for download in downloads]}
    )


def _files_at(path: Path, folder: Path, limits: ArchiveLimits, origin: dict[str, object]) -> Obtained:
    """Return the files at `path`. If `path` is an archive, it is unpacked into `folder`."""
    if not is_archive(path):
        return Obtained(path, origin)
    return Obtained(_unpacked(path, folder, limits), origin, path)


def _unpacked(path: Path, folder: Path, limits: ArchiveLimits) -> Path:
    target = FetchedFolder(folder, {"archive": path.name, "sha256": sha256_file(path)})
    if target.is_complete():
        return folder
    work = target.start(keep=False)
    try:
        unpack(path, work, limits)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return target.publish()


def _downloaded(downloads: tuple[Download, ...], folder: Path, limits: ArchiveLimits) -> Path:
    """Download files and return the folder that contains them.

    If there is only one download and it is not unpacked, return the path of this file instead.
    """
    from hatchery.raw.downloads import fetch

    target = FetchedFolder(folder, {"download": [asdict(download) for download in downloads]})
    if not target.is_complete():
        work = target.start(keep=True)
        files = [fetch(download, work) for download in downloads]
        if any(download.unpack for download in downloads):
            content = work / ".content"
            try:
                _assemble(downloads, files, content, limits)
            except BaseException:
                shutil.rmtree(content, ignore_errors=True)
                raise
            target.publish(content)
        else:
            target.publish()
    single = len(downloads) == 1 and not downloads[0].unpack
    return folder / downloads[0].file_name if single else folder


def _assemble(downloads: tuple[Download, ...], files: list[Path], content: Path, limits: ArchiveLimits) -> None:
    shutil.rmtree(content, ignore_errors=True)
    content.mkdir()
    for download, file in zip(downloads, files, strict=True):
        if download.unpack:
            unpack(file, content, limits)
    for download, file in zip(downloads, files, strict=True):
        if not download.unpack:
            place = content / download.file_name
            if place.exists():
                raise SourceError(
                    f"{download.url}: an unpacked file already has the name of this download; set another name with "
                    "`file`"
                )
            # Create a hard link instead of moving the downloaded file, so that a killed job need not download the file
            # again.
            try:
                os.link(file, place)
            except OSError:
                shutil.copyfile(file, place)
