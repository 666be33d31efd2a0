"""Held-out text for a direct evaluation: documents in memory or in files, or a folder with a Hatchery corpus or token
shards.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hatchery.artifacts.manifests import MANIFEST, Manifest, read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.own_text import OwnText
from hatchery.evaluation.direct.data import as_frame, require_texts
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.perplexity.measure import asked_for_perplexity, score
from hatchery.evaluation.perplexity.scoring import HeldOutText, check_tokenizer
from hatchery.evaluation.pretrained import ModelOfOthers, ModelOfUser, OurModel
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.evaluation.surprisal.texts import plain_texts
from hatchery.tokenization.documents import TOKEN_SHARDS, TRAINING_SPLIT, read_batches, shards_by_split
from hatchery.tokenization.encoder import DocumentEncoder
from hatchery.tokenization.special_tokens import TEXT_MARKERS
from hatchery.tokenization.token_counts import count_by_source
from hatchery.tokenization.token_shards import TokenShards, write_shard
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.tokenization.trainer_settings import EncodedUnit

SPLIT = "test"
"""Name of the single split if the data has no splits."""
COLUMN = "text"
DEFAULT_LENGTH = 128
TEXT_FILES = "*.txt"
IN_MEMORY = "text"


def evaluate(request: Request) -> Answer:
    """Measure the perplexity of held-out text.

    The data are a list of documents, a table with a column `text`, a text file, or a folder of text files. A document
    has one sentence per line and a blank line between paragraphs. The data may also be a folder with a manifest: a
    Hatchery corpus or token shards. The key `splits` then lists the splits to measure, by default `dev`. Raises the
    errors of the stage `measure_perplexity`.
    """
    manifest = _manifest(request.data)
    defaults = {"splits": [SPLIT] if manifest is None else ["dev"], "sequence_length": DEFAULT_LENGTH}
    settings = request.built(PerplexitySettings, **defaults)
    asked = asked_for_perplexity(request.model, settings, request.device)
    counts = None
    splits: list[HeldOutText] = []
    if manifest is not None and manifest.listed(TOKEN_SHARDS):
        if isinstance(request.model, ModelOfOthers):
            raise EvaluationError(f"{manifest.path}: got token shards for an external model, expected text or a corpus")
        if Path(request.model.where).name == MANIFEST:
            check_tokenizer(read_manifest(request.model.where), manifest)
        splits = [TokenShards.open(manifest.path, split) for split in settings.splits]
        if settings.frequency_bin_nats is not None:
            counts = asked.objective.target_counts(TokenShards.open(manifest.path, TRAINING_SPLIT))
    else:
        if settings.frequency_bin_nats is not None:
            raise ConfigError(
                f"frequency_bin_nats: got {settings.frequency_bin_nats:g}, expected null, because the bins are "
                "determined by the training split of token shards, and this text is not in token shards"
            )
        for split in settings.splits:
            documents, where = _documents(request, manifest, split)
            if isinstance(asked.model, BaselineModel):
                splits.append(OwnText(asked.model, documents, split, where))
            else:
                assert not isinstance(request.model, ModelOfOthers)
                splits.append(encoded(request.model, documents, split, request.scratch / split))
    return Answer(score(asked, splits, settings, request.runtime, counts), settings)


def encoded(model: OurModel | ModelOfUser, documents: Iterator[list[str]], split: str, folder: Path) -> TokenShards:
    """Write documents to `folder` as token shards of a Hatchery model, encoded as in the stage `encode_corpus`, and
    return the shards. Each list of documents becomes one file; blank documents are omitted.
    """
    tokenizer = _reading_markers(model)
    units: EncodedUnit = "documents" if getattr(model.objective, "segments", "") == "blocks" else "sentences"
    encoder = DocumentEncoder(tokenizer, units)
    folder.mkdir(parents=True, exist_ok=True)
    paths, words = [], 0
    for number, texts in enumerate(documents):
        kept = [text for text in texts if text and not text.isspace()]
        table = encoder.encode([f"{number}/{index}" for index in range(len(kept))], kept)
        words += sum(counts.words for counts in count_by_source(table, [split] * len(kept), tokenizer.special).values())
        paths.append(folder / f"{split}-{number:05d}{TOKEN_SHARDS}")
        write_shard(paths[-1], table, tokenizer.vocabulary_size)
    measures = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "special_tokens": tokenizer.special.record(),
        "splits": {split: {"words": words}},
    }
    return TokenShards(Manifest(Path(IN_MEMORY), "encode_corpus", {}, {}, [], measures, ""), split, paths)


def _reading_markers(model: OurModel | ModelOfUser) -> Tokenizer:
    """Return the model's tokenizer, changed so that it encodes markers of document structure as special tokens, as the
    tokenization of corpora does. If the model's folder has no tokenizer file, return the tokenizer unchanged.
    """
    path = Path(model.where).with_name("tokenizer.json")
    if Path(model.where).is_dir():
        path = Path(model.where) / "tokenizer.json"
    return load_tokenizer(path, recognise=TEXT_MARKERS) if path.is_file() else model.tokenizer


def _manifest(data: object) -> Manifest | None:
    if not isinstance(data, str | Path):
        return None
    path = Path(data).expanduser()
    path = path if path.name == MANIFEST else path / MANIFEST
    if not path.is_file():
        return None
    found = read_manifest(path)
    found.verify()
    return found


def _documents(request: Request, manifest: Manifest | None, split: str) -> tuple[Iterator[list[str]], str]:
    """Return an iterator over lists that together contain all documents of a split, and the documents' location for
    messages. Raises EvaluationError for a missing split, and for a folder without text files.
    """
    if manifest is not None:
        if split not in (shards := shards_by_split(manifest)):
            raise EvaluationError(f"{manifest.path}: there is no split {split!r}; there are: {', '.join(shards)}")
        return (batch.texts for path in shards[split] for batch in read_batches(path)), str(manifest.path)
    if isinstance(request.data, str | Path) or request.data is None:
        source = request.source()
        names = source.names() if source.kind == "file" else source.names(TEXT_FILES)
        if not names:
            raise EvaluationError(f"{source.root}: no file matches {TEXT_FILES!r}")
        return ([source.read_bytes(name).decode("utf-8")] for name in names), str(source.root)
    if isinstance(request.data, Sequence) and all(not isinstance(one, dict) for one in request.data):
        return iter([plain_texts(request.data, "text")]), IN_MEMORY
    frame = as_frame(request.data)
    require_texts(frame, [COLUMN])
    return iter([frame[COLUMN].to_list()]), IN_MEMORY
