"""Settings of a raw input: a local path, a pinned data set of the hub, or downloads with their checksums.

A local path wins over the others. Whatever is fetched is pinned: a hub data set by the commit of its repository, a
download by its size and SHA-256, so that two people who fetch a source get the same bytes or an error.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from hatchery.errors import ConfigError
from hatchery.settings.fields import Settings
from hatchery.sources.archives import SUFFIXES, archive_suffix
from hatchery.storage.archive_members import ArchiveLimits
from hatchery.typed import build, stage_body

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SPLIT = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True)
class Hub(Settings):
    """A data set of the Hugging Face hub at one commit."""

    dataset: str
    """Repository of the data set, `owner/name`."""
    revision: str
    """Commit of the repository: 40 hexadecimal digits. A branch or tag could change its content."""
    config: str | None = None
    """Configuration of the data set; None for its default."""
    splits: tuple[str, ...] = ("train",)
    """Splits to read, each into shards of its own."""
    documents: int | None = None
    """How many documents to take from the beginning of each split; None for all."""
    columns: tuple[str, ...] = ("text",)
    """Columns to keep."""


@dataclass(frozen=True)
class Download(Settings):
    """One file on the web, and how to know that it is the right one."""

    url: str
    """Where it lies; https or http."""
    bytes: int
    """Its size."""
    sha256: str
    """Its SHA-256: 64 hexadecimal digits."""
    unpack: bool = False
    """Whether it is an archive whose files are wanted; a single zip archive need not be unpacked to be read."""
    file: str | None = None
    """Name to store it under; None for the last part of the URL."""

    @property
    def file_name(self) -> str:
        """Name of the file on disk."""
        return self.file or PurePosixPath(unquote(urlsplit(self.url).path)).name


@dataclass(frozen=True)
class SourceSettings(Settings):
    """One entry under `data` in config/config.yaml."""

    name: str
    """Name of the source."""
    path: str | None = None
    """A file, a folder, a zip archive or a tar archive here; wins over `download` and `hub`."""
    obtain: str = ""
    """Where to get it by hand."""
    licence: str = ""
    """The licence it is under."""
    terms: str = ""
    """What it may be used for."""
    download: tuple[Download, ...] | None = None
    """Files to fetch."""
    hub: Hub | None = None
    """Data set to fetch."""
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    """How much an archive may hold."""


def source_settings(settings: Mapping[str, Any]) -> SourceSettings:
    """The settings of a source, checked. Raises ConfigError naming the key for a value that is not possible."""
    source = build(SourceSettings, stage_body(settings), f"data.{settings.get('name', '')}")
    where = f"data.{source.name}"
    if source.hub is not None and source.download:
        raise ConfigError(f"{where}: has both `hub` and `download`, expected one of them")
    if source.hub is not None:
        _check_hub(source.hub, f"{where}.hub")
    for index, download in enumerate(source.download or ()):
        _check_download(download, f"{where}.download[{index}]")
    for name, count in Counter(download.file_name for download in source.download or ()).items():
        if count > 1:
            raise ConfigError(f"{where}.download: {count} files are called {name!r}; set `file`")
    if min(source.limits.unpacked_bytes, source.limits.members, source.limits.ratio) <= 0:
        raise ConfigError(f"{where}.limits: expected positive numbers, got {source.limits}")
    return source


def _check_hub(hub: Hub, where: str) -> None:
    if not _COMMIT.fullmatch(hub.revision):
        raise ConfigError(
            f"{where}.revision: got {hub.revision!r}, expected a commit of the data set's repository (40 hexadecimal "
            "digits): a branch or tag may change"
        )
    if hub.documents is not None and hub.documents < 1:
        raise ConfigError(f"{where}.documents: got {hub.documents}, expected 1 or more, or null for all")
    if not hub.splits or len(set(hub.splits)) != len(hub.splits):
        raise ConfigError(f"{where}.splits: got {list(hub.splits)}, expected one or more different names")
    for split in hub.splits:
        if not _SPLIT.fullmatch(split):
            raise ConfigError(f"{where}.splits: got {split!r}, expected the name of a split, without slices")
    if not hub.columns:
        raise ConfigError(f"{where}.columns: expected one or more names")


def _check_download(download: Download, where: str) -> None:
    if urlsplit(download.url).scheme not in ("https", "http"):
        raise ConfigError(f"{where}.url: got {download.url!r}, expected an https or http address")
    if download.bytes < 0:
        raise ConfigError(f"{where}.bytes: got {download.bytes}, expected a size in bytes")
    if not _SHA256.fullmatch(download.sha256):
        raise ConfigError(f"{where}.sha256: got {download.sha256!r}, expected 64 hexadecimal digits in lower case")
    name = download.file_name
    if not name or name.startswith(".") or Path(name).name != name or "\\" in name:
        raise ConfigError(f"{where}.file: {name!r} is not a plain file name; set `file`")
    if download.unpack and archive_suffix(name) is None:
        raise ConfigError(f"{where}.unpack: {name} is none of {', '.join(SUFFIXES)}")
