"""Settings of a raw input: a local path, a pinned data set of the Hugging Face hub, or downloads with checksums.

A local path has priority. Downloads are pinned, a data set of the hub by the commit of its repository, and a file by
size and SHA-256, so that every user gets identical bytes or an error. The planning of the workflow checks whether a raw
input is available, which depends only on its path and its settings.
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
from hatchery.settings.base import Count, Natural, Range, RefusedError, Settings, conflict
from hatchery.settings.fields import ABSENT, NotEmpty, OneOfKeys, SomeNames, Text, Unique
from hatchery.typed import build, stage_body

# Keys that describe a raw input without affecting results.
KEYS = ("obtain", "licence", "terms")


@dataclass(frozen=True)
class Hub(Settings):
    """Data set of the Hugging Face hub at a pinned commit, downloaded into resources/fetched/<name>/."""

    dataset: Annotated[str, Text(r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", "owner/name")]
    """Repository of the data set, as owner/name."""
    revision: Annotated[str, Text("^[0-9a-f]{40}$", "a commit - 40 digits 0-9 and a-f")]
    """Commit of the repository; a branch or tag is refused because it may change."""
    config: str | None = None
    """Configuration of the data set; null uses the default configuration."""
    splits: Annotated[
        tuple[Annotated[str, Text(r"^\w+(\.\w+)*$", "the name of a split, without slices")], ...], MinLen(1), Unique()
    ] = ("train",)
    """Splits to read; each split is stored in separate shards."""
    documents: Count | None = None
    """Number of documents read from the beginning of each split; null reads all documents."""
    columns: SomeNames = ("text",)
    """Columns to keep; all other columns are dropped."""
    files: tuple[NotEmpty, ...] = ()
    """Shell patterns of the repository's files that are downloaded unchanged, with their names, instead of the data
    set's rows."""

    def __post_init__(self) -> None:
        of_rows = self.documents, self.columns, self.splits, self.config
        if self.files and of_rows != (None, ("text",), ("train",), None):
            other = "`documents`, `columns`, `splits` or `config`"
            raise conflict("files", self.files, other, "these keys select rows of the data set")


@dataclass(frozen=True)
class HubModel(OneOfKeys):
    """Model of the Hugging Face hub at a pinned commit, downloaded into resources/fetched/<name>/ without code."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("revision",): "revision: <40 digits 0-9 and a-f>"}

    repository: Annotated[str, Text(r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", "owner/name")]
    """Repository of the model, as owner/name."""
    revision: Annotated[
        str, Text("^[0-9a-f]{40}$", "a commit from the history of its files on the hub - 40 digits 0-9 and a-f")
    ] = ABSENT
    """Commit in the history of the model's files on the hub; a branch or tag is refused because it may change."""


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
    """Unpack the file, a zip or tar archive. A single zip archive can also be read without unpacking."""
    file: str | None = None
    """File name in resources/fetched/<name>/; null uses the last part of the URL."""

    def __post_init__(self) -> None:
        name = self.file_name
        if not name or name.startswith(".") or Path(name).name != name or "\\" in name:
            raise RefusedError("file", f"got {name!r}, expected a file name without folders; set `file`")
        if self.unpack and archive_suffix(name) is None:
            raise RefusedError(
                "unpack", f"got true for {name}, expected a file name with one of the suffixes {', '.join(SUFFIXES)}"
            )

    @property
    def file_name(self) -> str:
        """File name of the download on this machine."""
        return self.file or PurePosixPath(unquote(urlsplit(self.url).path)).name


@dataclass(frozen=True, kw_only=True)
class SourceKeys(Settings):
    """Location of a raw input on this machine, or the source of its download."""

    path: NotEmpty | None = None
    """File, folder, or zip or tar archive on this machine, used instead of a download; null if the data are not on this
    machine."""
    follow_links: bool = False
    """Follow links in the folder at `path`; with false, a link is an error."""
    obtain: str = ""
    """Instructions to obtain the data by hand, shown if the data are missing."""
    licence: str = ""
    """Licence of the data, recorded with the source and shown with it."""
    terms: str = ""
    """Permitted uses of the data, recorded with the source and shown with it."""
    hub: Hub | None = None
    """Data set of the Hugging Face hub to download; null downloads no data set."""
    hub_model: HubModel | None = None
    """Model of the Hugging Face hub to download, for a file of config/baselines/; null downloads no model."""
    download: Annotated[tuple[Download, ...], MinLen(1)] | None = None
    """Files to download from the web into resources/fetched/<name>/; null downloads no files."""
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    """Maximum size of an unpacked archive; a larger archive is refused."""

    def __post_init__(self) -> None:
        places = [key for key in ("hub", "hub_model", "download") if getattr(self, key)]
        if len(places) > 1:
            raise RefusedError(
                "",
                f"got `{places[0]}` and `{places[1]}`, expected only one of these keys; remove the other key",
            )
        for name, count in Counter(download.file_name for download in self.download or ()).items():
            if count > 1:
                raise RefusedError(
                    "download", f"got {count} files called {name!r}, expected different names; set `file` of one file"
                )


@dataclass(frozen=True, kw_only=True)
class SourceSettings(SourceKeys):
    """An entry of `data` in config/config.yaml."""

    name: str
    """Name of the source."""


def source_settings(settings: Mapping[str, Any]) -> SourceSettings:
    """Return the typed settings of a source. Raises ConfigError, naming the key, for an invalid value."""
    return build(SourceSettings, stage_body(settings), f"data.{settings.get('name', '')}")


@dataclass(frozen=True, kw_only=True)
class EmbeddedSettings(Settings):
    """Sizes of the generated miniature language of the demo."""

    seed: Natural = 0
    """Random seed of the generated data."""
    documents: Annotated[int, Range(ge=40)] = 4000
    """Number of generated documents in the corpora bnc and babylm together; a document has about 95 words."""
    pairs_per_paradigm: Annotated[int, Range(ge=2)] = 100
    """Number of sentence pairs in each paradigm."""
    examples_per_task: Annotated[int, Range(ge=4)] = 600
    """Number of training rows in the acceptability and entailment tasks."""
    examples_per_suite_task: Annotated[int, Range(ge=12)] = 60
    """Number of training rows in each task except acceptability and entailment."""
    translation_pairs: Annotated[int, Range(ge=20)] = 3000
    """Number of sentence pairs for the training of translation models."""


FORBIDDEN = "{}"
"""Characters in an input's path that Snakemake would interpret as wildcards."""


def path_problem(path: str | Path) -> str | None:
    """Return why `path` cannot be read, as the end of a sentence ("is not at ..."); None for a readable file or folder.

    Devices are refused, because reading a device such as `/dev/zero` never ends.
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
    """Return a message if a raw input is unavailable: the key to set, where to get the data, and its terms; otherwise
    None.

    Data that can be downloaded count as available. `place` names the file and key of the path, if the path is not set
    in config.yaml.
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
    """Return a source's licence and terms as text to append to a sentence."""
    parts = [("licence", source.licence), ("terms", source.terms)]
    return "".join(f"; {name}: {text}" for name, text in parts if text)
