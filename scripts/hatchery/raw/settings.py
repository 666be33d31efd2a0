"""Settings of a raw input: a local path, a pinned data set of the Hugging Face hub, or downloads with checksums.

A local path has precedence. Downloaded data is pinned: a data set of the hub by the commit of its repository, a file by
its size and SHA-256, so that everyone who downloads a source gets identical bytes or an error. Whether a raw input is
available depends only on its path and these settings, so it is checked when the workflow is planned.
"""

import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar
from urllib.parse import unquote, urlsplit

from annotated_types import MinLen

from hatchery.raw.archives import SUFFIXES, ArchiveLimits, archive_suffix
from hatchery.raw.listings import listing_of
from hatchery.settings.base import Count, Natural, Range, RefusedError, Settings
from hatchery.settings.fields import ABSENT, NotEmpty, OneOfKeys, SomeNames, Text, Unique
from hatchery.typed import build, stage_body

# Keys that describe a raw input, and on which no result depends.
KEYS = ("obtain", "licence", "terms")


@dataclass(frozen=True)
class Hub(Settings):
    """Data set of the Hugging Face hub at one commit, streamed into resources/fetched/<name>/."""

    dataset: Annotated[str, Text(r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", "owner/name")]
    """Repository of the data set, as owner/name."""
    revision: Annotated[str, Text("^[0-9a-f]{40}$", "a commit - 40 digits 0-9 and a-f")]
    """Commit of the repository; a branch or tag is refused because it may change."""
    config: str | None = None
    """Configuration of the data set; null uses the default configuration."""
    splits: Annotated[
        tuple[Annotated[str, Text(r"^\w+(\.\w+)*$", "the name of a split, without slices")], ...], MinLen(1), Unique()
    ] = ("train",)
    """Splits to read; each is stored in its own shards."""
    documents: Count | None = None
    """Number of documents read from the beginning of each split; null reads all documents."""
    columns: SomeNames = ("text",)
    """Columns to keep; all other columns are dropped."""
    files: tuple[NotEmpty, ...] = ()
    """Shell patterns of repository files to fetch unchanged under their names, instead of the rows of the data set."""

    def __post_init__(self) -> None:
        of_rows = self.documents, self.columns, self.splits, self.config
        if self.files and of_rows != (None, ("text",), ("train",), None):
            raise RefusedError("files", "cannot be set together with documents, columns, splits or config")


@dataclass(frozen=True)
class HubModel(OneOfKeys):
    """Model of the Hugging Face hub at one commit, fetched into resources/fetched/<name>/ without its code."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("revision",): "revision: <40 digits 0-9 and a-f>"}

    repository: Annotated[str, Text(r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", "owner/name")]
    """Repository of the model, as owner/name."""
    revision: Annotated[
        str, Text("^[0-9a-f]{40}$", "a commit from the history of its files on the hub - 40 digits 0-9 and a-f")
    ] = ABSENT
    """Commit from the history of the model's files on the hub; a branch or tag is refused because it may change."""


@dataclass(frozen=True)
class Download(Settings):
    """A file on the web, with size and checksum."""

    url: Annotated[str, Text("^https?://", "an address that begins with https:// or http://")]
    """Address of the file."""
    bytes: Natural
    """Size of the file in bytes."""
    sha256: Annotated[str, Text("^[0-9a-f]{64}$", "64 digits 0-9 and a-f")]
    """SHA-256 checksum of the file."""
    unpack: bool = False
    """Unpack the file as a zip or tar archive. A single zip file can be read without unpacking."""
    file: str | None = None
    """File name in resources/fetched/<name>/; null uses the last part of the URL."""

    def __post_init__(self) -> None:
        name = self.file_name
        if not name or name.startswith(".") or Path(name).name != name or "\\" in name:
            raise RefusedError("file", f"got {name!r}, expected a file name without folders; set `file`")
        if self.unpack and archive_suffix(name) is None:
            raise RefusedError(
                "unpack", f"{name} is not an archive, expected one of the suffixes {', '.join(SUFFIXES)}"
            )

    @property
    def file_name(self) -> str:
        """Name of the downloaded file on disk."""
        return self.file or PurePosixPath(unquote(urlsplit(self.url).path)).name


@dataclass(frozen=True, kw_only=True)
class SourceKeys(Settings):
    """Location of a raw input, or the source from which it is downloaded."""

    path: NotEmpty | None = None
    """File, folder, or zip or tar archive on this machine; null if it is not on this machine. Replaces hub and
    download."""
    follow_links: bool = False
    """Follow links in the folder at `path`; false reports a link as an error."""
    obtain: str = ""
    """Instructions for obtaining the data by hand; shown if the data is missing."""
    licence: str = ""
    """Licence of the data; recorded with the source and shown."""
    terms: str = ""
    """Permitted uses of the data; recorded with the source and shown."""
    hub: Hub | None = None
    """Data set of the Hugging Face hub to fetch; null fetches none."""
    hub_model: HubModel | None = None
    """Model of the Hugging Face hub to fetch, for a file of config/baselines/; null fetches none."""
    download: Annotated[tuple[Download, ...], MinLen(1)] | None = None
    """Files to download from the web into resources/fetched/<name>/; null downloads none."""
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    """Maximum size of an unpacked archive; larger archives are refused."""

    def __post_init__(self) -> None:
        places = [key for key in ("hub", "hub_model", "download") if getattr(self, key)]
        if len(places) > 1:
            raise RefusedError(
                "",
                f"got both `{places[0]}` and `{places[1]}`, expected one source of the data; remove one of them",
            )
        for name, count in Counter(download.file_name for download in self.download or ()).items():
            if count > 1:
                raise RefusedError("download", f"{count} files are called {name!r}; set `file`")


@dataclass(frozen=True, kw_only=True)
class SourceSettings(SourceKeys):
    """One entry under `data` in config/config.yaml."""

    name: str
    """Name of the source."""


def source_settings(settings: Mapping[str, Any]) -> SourceSettings:
    """Return the checked settings of a source. Raises ConfigError, which names the key, for an invalid value."""
    return build(SourceSettings, stage_body(settings), f"data.{settings.get('name', '')}")


@dataclass(frozen=True, kw_only=True)
class EmbeddedSettings(Settings):
    """Sizes of the generated miniature language of the demo."""

    seed: Natural = 0
    """Random seed of the generated data."""
    documents: Annotated[int, Range(ge=40)] = 4000
    """Number of generated documents of bnc and babylm together, about 95 words each."""
    pairs_per_paradigm: Annotated[int, Range(ge=2)] = 100
    """Number of sentence pairs in each paradigm."""
    examples_per_task: Annotated[int, Range(ge=4)] = 600
    """Number of training rows in the acceptability and entailment tasks."""
    examples_per_suite_task: Annotated[int, Range(ge=12)] = 60
    """Number of training rows in every other task."""
    translation_pairs: Annotated[int, Range(ge=20)] = 3000
    """Number of sentence pairs for the training of translation models."""


FORBIDDEN = "{}"
"""Characters in the path of an input that Snakemake would treat as wildcards."""


def path_problem(path: str | Path) -> str | None:
    """Return why `path` cannot be read, as the end of a sentence ("is not at ..."), or None for a file or a folder.

    Devices are refused, because a device such as `/dev/zero` never ends.
    """
    path = Path(path)
    if any(character in str(path) for character in FORBIDDEN):
        return f"is at {path}, a path with {{ or }}, which Snakemake would treat as a wildcard; rename it or link to it"
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        broken = path.is_symlink()
        return f"is not at {path}" + (f", a link to {path.readlink()}, which does not exist" if broken else "")
    except (OSError, ValueError) as error:
        return f"cannot be read at {path}: {getattr(error, 'strerror', None) or error}"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return f"is at {path}, which is a device or a pipe, expected a file or a folder"
    return None


def source_problem(source: SourceSettings, place: str = "") -> str | None:
    """Return a message why a raw input is unavailable, with the key to set, where to get the data, and its terms.

    None if the input is available; data that can be downloaded counts as available. `place` names the file and key of
    the path, if it is not set in config.yaml.
    """
    state, fetch = "has no path", ""
    if source.path is not None:
        problem = path_problem(source.path)
        if problem is None and listing_of(source.path, most=1, follow_links=source.follow_links):
            return None
        state = problem or f"is at {source.path}, a folder without files"
        fetch = ", or to null to have it downloaded" if source.hub or source.hub_model or source.download else ""
    elif source.hub or source.hub_model or source.download:
        return None
    advice = f"; {source.obtain}" if source.obtain else ""
    key = place or f"data.{source.name}.path in config/config.yaml"
    return f"source {source.name!r} {state}: set {key}{fetch}{advice}{conditions(source)}"


def conditions(source: SourceSettings) -> str:
    """Return licence and terms of a source as text, to append to a sentence about the source."""
    parts = [("licence", source.licence), ("terms", source.terms)]
    return "".join(f"; {name}: {text}" for name, text in parts if text)
