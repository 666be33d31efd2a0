"""Settings of a raw input: a local path, a pinned data set of the Hugging Face hub, or downloads with checksums.

A local path has priority. A data set of the hub is pinned by the commit of its repository. Any other download is pinned
by the size and SHA-256 of the file. So every user gets identical bytes or an error. The planning of the workflow checks
whether a raw input is available; this depends only on its path and its settings.
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

# Keys that describe a raw input but do not affect results.
KEYS = ("obtain", "licence", "terms")


@dataclass(frozen=True)
class Hub(Settings):
    """Data set of the Hugging Face hub at a pinned commit, downloaded into resources/fetched/<name>/."""

    dataset: Annotated[str, Text(r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", "owner/name")]
    """Repository of the data set, as owner/name."""
    revision: Annotated[str, Text("^[0-9a-f]{40}$", "a commit - 40 digits 0-9 and a-f")]
    """Commit of the repository; a branch or tag is an error, because it may later refer to another commit."""
    config: str | None = None
    """Configuration of the data set; `null` uses the default configuration."""
    splits: Annotated[
        tuple[Annotated[str, Text(r"^\w+(\.\w+)*$", "the name of a split, without slices")], ...], MinLen(1), Unique()
    ] = ("train",)
    """Splits to download; each split is stored in separate shards."""
    documents: Count | None = None
    """Number of documents to download from the beginning of each split; `null` downloads all documents."""
    columns: SomeNames = ("text",)
    """Columns to download; all other columns are left out."""
    files: tuple[NotEmpty, ...] = ()
    """Shell patterns of file names. If set, the matching files of the repository are downloaded unchanged, instead of
    the rows of the data set.
    """

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
    """Commit in the history of the model's files on the hub; a branch or tag is an error, because it may later refer to
    another commit.
    """


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
    """If true, the file is unpacked; it must be a zip or tar archive. If an archive is the only download, it is always
    unpacked.
    """
    file: str | None = None
    """Name of the downloaded file in resources/fetched/<name>/; `null` uses the last part of the URL."""

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
        """Name of the downloaded file on this machine."""
        return self.file or PurePosixPath(unquote(urlsplit(self.url).path)).name


@dataclass(frozen=True, kw_only=True)
class SourceKeys(Settings):
    """Location of a raw input on this machine, or the address from which it is downloaded."""

    path: NotEmpty | None = None
    """File, folder, or zip or tar archive on this machine; with a path, nothing is downloaded. `null` if the data are
    not on this machine.
    """
    follow_links: bool = False
    """If true, links in the folder at `path` are followed; if false, a link is an error."""
    obtain: str = ""
    """Instructions to obtain the data by hand; the error message for missing data shows them."""
    licence: str = ""
    """Licence of the data; it is recorded at the registration, and shown with the data."""
    terms: str = ""
    """Permitted uses of the data; they are recorded at the registration, and shown with the data."""
    hub: Hub | None = None
    """Data set of the Hugging Face hub to download; `null` downloads no data set."""
    hub_model: HubModel | None = None
    """Model of the Hugging Face hub to download, for a file of config/baselines/; `null` downloads no model."""
    download: Annotated[tuple[Download, ...], MinLen(1)] | None = None
    """Files to download from the web into resources/fetched/<name>/; `null` downloads no files."""
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    """Limit on the size of an unpacked archive; a larger archive is an error."""

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
                    "download",
                    f"got {count} files called {name!r}, expected different names; set `file` of one download",
                )


@dataclass(frozen=True, kw_only=True)
class SourceSettings(SourceKeys):
    """An entry of `data` in config/config.yaml."""

    name: str
    """Name of the raw input, which is the key of the entry."""


def source_settings(settings: Mapping[str, Any]) -> SourceSettings:
    """Return the settings of a raw input as an object. Raises ConfigError, which names the key, for an invalid
    value.
    """
    return build(SourceSettings, stage_body(settings), f"data.{settings.get('name', '')}")


@dataclass(frozen=True, kw_only=True)
class EmbeddedSettings(Settings):
    """Sizes of the data that the demo generates in a miniature language."""

    seed: Natural = 0
    """Random seed of the generated data."""
    documents: Annotated[int, Range(ge=40)] = 4000
    """Number of generated documents of the corpora bnc and babylm together; a document has about 95 words."""
    pairs_per_paradigm: Annotated[int, Range(ge=2)] = 100
    """Number of sentence pairs in each paradigm of the minimal pairs."""
    examples_per_task: Annotated[int, Range(ge=4)] = 600
    """Number of training rows of the task acceptability, and of the task entailment."""
    examples_per_suite_task: Annotated[int, Range(ge=12)] = 60
    """Number of training rows of each task other than acceptability and entailment."""
    translation_pairs: Annotated[int, Range(ge=20)] = 3000
    """Number of sentence pairs with which translation models are trained."""


FORBIDDEN = "{}"
"""Characters that a raw input's path must not contain, because Snakemake would interpret them as wildcards."""


def path_problem(path: str | Path) -> str | None:
    """Return the reason why `path` cannot be used, as the end of a sentence ("is not at ..."); None for a usable file
    or folder.

    Devices are refused, because reading a device such as `/dev/zero` never ends.
    """
    path = Path(path)
    if any(character in str(path) for character in FORBIDDEN):
        remedy = "rename the path or link to it"
        return f"is at {path}, a path with {{ or }}, which Snakemake would treat as a wildcard; {remedy}"
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
    """Return a message if a raw input is unavailable, otherwise None.

    The message states the key to set, the place where the data are available, and their terms. A raw input without
    `path` that can be downloaded counts as available. By default, the key is the input's `path` in config.yaml; `place`
    names another key and its file.
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
    """Return `; licence: ...; terms: ...` of a raw input, the end of a message about this input; empty without licence
    and terms.
    """
    parts = [("licence", source.licence), ("terms", source.terms)]
    return "".join(f"; {name}: {text}" for name, text in parts if text)
