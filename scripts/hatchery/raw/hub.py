"""Downloads of data sets and models from the Hugging Face hub at a pinned commit.

From a data set, only the requested files or documents are downloaded, for example the first few thousand of C4's 365
million documents. Documents are read in constant memory. The position in the data set is saved after each shard. So an
interrupted run continues after the last finished shard, and the bytes of the shards do not depend on interruptions.

From a model, weights, configuration and tokenizer are downloaded, but no code. Weights in the format safetensors are
preferred to pickled weights.
"""

import itertools
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict

import pyarrow as pa
from datasets import IterableDataset, load_dataset
from datasets.exceptions import DatasetsError
from huggingface_hub import HfApi, hf_hub_download

from hatchery.artifacts.atomic import atomic_path, write_json
from hatchery.artifacts.parquet import TableWriter
from hatchery.errors import SourceError, first_line
from hatchery.progress import Progress
from hatchery.raw.fetched_folder import FetchedFolder
from hatchery.raw.settings import Hub, HubModel
from hatchery.typed import plain

DOCUMENTS_PER_SHARD = 50_000
# Lowest HTTP status code after which a further attempt may succeed: 429 means "too many requests", and 5xx are errors
# of the server. Lower codes mean that the file is missing or forbidden.
_TRY_LATER = 429

# Exceptions of the library `datasets` for a data set that is missing, unreachable or cannot be decoded. Network errors
# are subclasses of OSError.
_UNREADABLE = (DatasetsError, OSError, EOFError, ValueError, KeyError, RuntimeError, zlib.error, pa.ArrowException)


Kind = Literal["dataset", "model"]


class State(TypedDict):
    """Progress of the download of a split: number of written documents, whether the split is finished, the position in
    the data set, and number of shards.
    """

    documents: int
    finished: bool
    position: Any
    shards: int


def open_stream(hub: Hub, split: str) -> IterableDataset:
    """Return a split of a data set as a stream of documents from the network."""
    return load_dataset(hub.dataset, hub.config, split=split, revision=hub.revision, streaming=True)


def fetch_hub(hub: Hub, folder: Path, documents_per_shard: int = DOCUMENTS_PER_SHARD) -> Path:
    """Download the splits of a data set into `folder`, as `{split}-{index:05d}.parquet`, and return `folder`.

    If `hub.files` is set, the matching files of the repository are downloaded unchanged instead. The folder only
    appears when it is complete. Raises SourceError, which names data set, split and commit, if the data set cannot be
    read, if a column is missing, or if the disk is full; finished shards are kept for the next run.
    """
    target = FetchedFolder(folder, {"hub": plain(hub), "documents_per_shard": documents_per_shard})
    if target.is_complete():
        return folder
    work = target.start(keep=True)
    if hub.files:
        where = f"{hub.dataset} at {hub.revision}"
        _fetch_files(hub.dataset, "dataset", hub.revision, partial(_matching, hub.files, where), work, where)
        return target.publish()
    for split in hub.splits:
        where = f"{hub.dataset} ({hub.config or 'default'}, {split}) at {hub.revision}"
        try:
            _fetch_split(hub, split, work, documents_per_shard)
        except SourceError:
            raise
        except OSError as error:
            place = f": {error.filename}" if error.filename else ""
            raise SourceError(f"{where}{place}: {_reason(error)}; finished shards are kept") from error
        except _UNREADABLE as error:
            raise SourceError(f"{where}: {_reason(error)}; finished shards are kept") from error
    for split in hub.splits:
        _state_path(work, split).unlink()
    return target.publish()


def _reason(error: BaseException) -> str:
    """Return a text that states the cause of an error.

    If the hub's response has an HTTP status that allows a further attempt, the text states this status, because the
    library's message may omit the status.
    """
    cause: BaseException | None = error
    while cause is not None:
        answer = getattr(cause, "response", None)
        if (status := getattr(answer, "status_code", None)) is not None and status >= _TRY_LATER:
            reason = getattr(answer, "reason_phrase", "") or getattr(answer, "reason", "")
            return f"the hub answers {status} {reason}".rstrip() + "; run again later"
        cause = cause.__cause__ or cause.__context__
    return first_line(error)[:300]


def _fetch_split(hub: Hub, split: str, work: Path, documents_per_shard: int) -> None:
    state = _read_state(work, split)
    if state["finished"]:
        return
    stream = open_stream(hub, split)
    schema = _schema(stream, hub, split)
    expected = _expected(stream, hub, split)
    stream = stream.select_columns(list(hub.columns))
    if state["position"] is not None:
        stream.load_state_dict(state["position"])
    documents, shards = state["documents"], state["shards"]
    rows: Iterator[Mapping[str, object]] = iter(stream)
    with Progress(max(expected, documents), f"{hub.dataset} {split}", "documents", initial=documents) as progress:
        while not state["finished"]:
            wanted = documents_per_shard
            if hub.documents is not None:
                wanted = min(wanted, hub.documents - documents)
            path = work / f"{split}-{shards:05d}.parquet"
            written = _write_shard(path, schema, itertools.islice(rows, wanted), progress)
            documents, shards = documents + written, shards + 1
            if documents == 0:
                raise SourceError(f"{hub.dataset} ({split}) at {hub.revision}: has no documents")
            if written == 0:
                path.unlink()  # The shard is empty, because the split ended with the previous shard.
            finished = written < documents_per_shard or documents == hub.documents
            state = {"documents": documents, "finished": finished, "position": stream.state_dict(), "shards": shards}
            write_json(_state_path(work, split), state)


def _write_shard(path: Path, schema: pa.Schema, rows: Iterator[Mapping[str, object]], progress: Progress) -> int:
    with atomic_path(path) as partial, TableWriter(partial, schema) as writer:
        for row in rows:
            writer.write(row)
            progress.update()
    return writer.rows


def _schema(stream: IterableDataset, hub: Hub, split: str) -> pa.Schema:
    """Return the schema of the requested columns. If the split declares no columns, the types are those of the first
    row.
    """
    if stream.features is not None:
        declared = stream.features.arrow_schema
    else:
        declared = pa.Table.from_pylist(list(open_stream(hub, split).take(1))).schema
    for name in hub.columns:
        if name not in declared.names:
            raise SourceError(
                f"{hub.dataset} ({split}) at {hub.revision}: has no column {name!r}; "
                f"there are: {', '.join(declared.names)}"
            )
    return pa.schema([pa.field(name, declared.field(name).type) for name in hub.columns])


def _expected(stream: IterableDataset, hub: Hub, split: str) -> int:
    """Return the expected number of documents that will be downloaded from a split; 0 if the number is unknown."""
    info = (stream.info.splits or {}).get(split)
    n_examples = int(info.num_examples or 0) if info is not None else 0
    return min(n_examples or hub.documents or 0, hub.documents or n_examples)


def _state_path(work: Path, split: str) -> Path:
    return work / f".{split}.json"


def _read_state(work: Path, split: str) -> State:
    path = _state_path(work, split)
    if not path.exists():
        return {"documents": 0, "finished": False, "position": None, "shards": 0}
    state: State = json.loads(path.read_text(encoding="utf-8"))
    return state


DESCRIPTIONS = ("config.json", "generation_config.json")
TOKENIZER = ("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model")
WEIGHTS = (("model*.safetensors", "model*.safetensors.index.json"), ("pytorch_model*.bin", "pytorch_model*.index.json"))
"""File name patterns of weights; the preferred format is first. Large weights are divided into several files with an
index.
"""


def names_in(repository: str, kind: Kind, revision: str) -> list[str]:
    """Return the names of all files in a repository of the hub."""
    return list(HfApi().list_repo_files(repository, repo_type=kind, revision=revision))


def fetch_file(repository: str, kind: Kind, revision: str, name: str, folder: Path) -> None:
    """Download the file `name` of a repository of the hub into `folder`."""
    hf_hub_download(repository, name, repo_type=kind, revision=revision, local_dir=folder)


def _fetch_files(
    repository: str, kind: Kind, revision: str, choose: Callable[[list[str]], list[str]], work: Path, where: str
) -> None:
    """Download files of a repository into `work`. `choose` selects the files: this function receives the names of all
    files, and returns the names of the files to download.

    Raises SourceError, whose message begins with `where`, if a file cannot be downloaded.
    """
    try:
        for name in choose(names_in(repository, kind, revision)):
            fetch_file(repository, kind, revision, name, work)
    # The hub's library raises ValueError and RuntimeError; network errors are subclasses of OSError.
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(f"{where}: {_reason(error)}; finished files are kept") from error
    # Remove the metadata that the hub's library stores in this folder, because they are not part of the source.
    shutil.rmtree(work / ".cache", ignore_errors=True)


def _matching(patterns: tuple[str, ...], where: str, names: list[str]) -> list[str]:
    matching = [name for name in sorted(names) if any(fnmatch(name, pattern) for pattern in patterns)]
    if not matching:
        raise SourceError(f"{where}: no file matches {', '.join(patterns)}; there are: {', '.join(sorted(names)[:8])}")
    return matching


def fetch_hub_model(model: HubModel, folder: Path) -> Path:
    """Download the files of a model into `folder`, and return `folder`, which only appears when it is complete.

    Raises SourceError, which names repository and commit, if the repository cannot be read, or if it has no
    configuration or no weights.
    """
    target = FetchedFolder(folder, {"hub_model": asdict(model)})
    if target.is_complete():
        return folder
    work, where = target.start(keep=True), f"{model.repository} at {model.revision}"
    choose = partial(chosen_files, where=where)
    _fetch_files(model.repository, "model", model.revision, choose, work, where)
    return target.publish()


def chosen_files(names: list[str], where: str) -> list[str]:
    """Return those file names of a model's repository that are downloaded: configuration, tokenizer and weights.

    Raises SourceError if `names` does not contain config.json or weights.
    """

    def found(patterns: tuple[str, ...]) -> list[str]:
        return [name for name in sorted(names) if any(fnmatch(name, pattern) for pattern in patterns)]

    weights = next((files for form in WEIGHTS if (files := found(form))), [])
    if "config.json" not in names or not weights:
        raise SourceError(
            f"{where}: config.json or the weights are missing, expected a model of the library transformers"
        )
    return [*found(DESCRIPTIONS), *found(TOKENIZER), *weights]
