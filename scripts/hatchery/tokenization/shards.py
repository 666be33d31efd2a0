"""The shards of documents and of tokens that a manifest names: `{split}-{i}-of-{n}.parquet` or `.arrow`."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from hatchery.artifacts.manifests import Manifest, OutputFile, read_manifest
from hatchery.errors import CorpusError, TokenizationError

TOKEN_SHARDS = ".arrow"
"""The suffix of shards of tokens; those of documents are Parquet."""
TRAINING_SPLIT = "train"
DEVELOPMENT_SPLIT = "dev"
SHARD_NAME = re.compile(r"(?P<split>[a-z]+)-(?P<index>\d{5})-of-(?P<total>\d{5})\.(?:parquet|arrow)")


def listed_shards(manifest: Manifest, suffix: str) -> dict[str, list[OutputFile]]:
    """The shards that a manifest names, by split (sorted) and within a split in order of their number; reads none.

    Raises CorpusError when there is none, or when a split lacks a shard or mixes two runs.
    """
    shards: dict[str, dict[int, OutputFile]] = {}
    totals: dict[str, set[int]] = {}
    for output in manifest.listed(suffix):
        match = SHARD_NAME.fullmatch(output.path.name)
        if match:
            shards.setdefault(match["split"], {})[int(match["index"])] = output
            totals.setdefault(match["split"], set()).add(int(match["total"]))
    if not shards:
        raise CorpusError(f"{manifest.path}: names no file like train-00000-of-00001{suffix}")
    for split, files in shards.items():
        if totals[split] != {len(files)} or sorted(files) != list(range(len(files))):
            raise CorpusError(f"{manifest.path}: the shards of split {split!r} are not complete: found {sorted(files)}")
    return {split: [shards[split][index] for index in sorted(shards[split])] for split in sorted(shards)}


def shards_by_split(manifest: Manifest, suffix: str = ".parquet") -> dict[str, list[Path]]:
    """The paths of `listed_shards`. Raises CorpusError as that does."""
    return {split: [file.path for file in files] for split, files in listed_shards(manifest, suffix).items()}


def shards_of(manifest: Manifest, splits: Iterable[str]) -> list[OutputFile]:
    """The shards of documents of these splits, in their order. Raises CorpusError for a split that there is not."""
    by_split = listed_shards(manifest, ".parquet")
    for split in splits:
        if split not in by_split:
            raise CorpusError(f"{manifest.path}: has no split {split!r}")
    return [shard for split in splits for shard in by_split[split]]


def watch_shards(manifest: Path) -> Callable[[], None]:
    """A function that raises TokenizationError naming a shard of tokens whose size or time has changed since this call.

    Shards are mapped into memory, so who writes into one changes what is being read. One that was deleted stays mapped.
    """
    shards = [
        output.path for files in listed_shards(read_manifest(manifest), TOKEN_SHARDS).values() for output in files
    ]

    def stamps() -> dict[Path, tuple[int, int]]:
        found = {path: path.stat() for path in shards if path.exists()}
        return {path: (status.st_size, status.st_mtime_ns) for path, status in found.items()}

    before = stamps()

    def check() -> None:
        for path, stamp in stamps().items():
            if stamp != before.get(path, stamp):
                raise TokenizationError(
                    f"{path}: was changed while it was being read; start again, which goes on from the last checkpoint "
                    "before that"
                )

    return check
