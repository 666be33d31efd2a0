"""Translate test sets of raw text with one model, and score the translations by BLEU and chrF.

`score` computes the result from a model, sentence pairs and settings. The stage opens the model and the pairs, and
writes three files: scores.csv, `<test>.txt` with a translation per line, and `<test>.reference.txt` with the
references. If BLEU on validation text selects the beam size (Section 4.1 of "A Natural Bias for Language Generation
Models"), the stage also writes `beams.csv`. The model's own tokenizer encodes all test sets, even test sets from
corpora on which the tokenizer was not trained. The references are compared as written in the corpus, not as encoded and
decoded by the tokenizer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import torch

from hatchery.artifacts.manifests import MANIFEST, StageRun, read_manifest
from hatchery.errors import ConfigError, CorpusError, EvaluationError
from hatchery.evaluation.direct.data import as_frame, require_texts
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.pretrained import OurModel, Pretrained
from hatchery.evaluation.runtime import open_trained, prepare_device
from hatchery.evaluation.scores import Scores, Table
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.translation_settings import (
    BEAM,
    REFERENCE_LINES,
    TRANSLATED_LINES,
    HeldOutPairs,
    TranslationTests,
)
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.progress import Progress
from hatchery.tokenization.documents import read_batches, shards_by_split
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.metrics import BLEU, CorpusScore, scores
from hatchery.translation.settings import SearchSettings
from hatchery.translation.translate import translate
from hatchery.typed import build

SCORES_FILE = "scores.csv"
BEAMS_FILE, BEAM_COLUMNS = "beams.csv", ("beam", "metric", "score", "chosen")
TEST, PAIRS, PAIR_COLUMNS = "test", "pairs", ("source", "reference")
"""Names for sentence pairs in memory: name of the test set, name of the corpus, and columns of a table of pairs."""
COLUMNS = ("test", "corpus", "split", "pairs", "metric", "score", "signature")
_DOCUMENTS_PER_BATCH = 1000
_DECIMALS = 6


def translate_all(
    settings: TranslationTests,
    runtime: EvaluationRuntime,
    model: Path,
    corpus: Mapping[str, Path],
    run: StageRun,
) -> None:
    """Translate the test sets and score the translations; see the stage `translate_tests`."""
    if sorted(corpus) != sorted(settings.tests):
        raise ConfigError(
            f"corpus: got {', '.join(corpus)}, expected a corpus for each of the test sets {', '.join(settings.tests)}"
        )
    device = prepare_device(runtime.device, runtime.threads)
    translator = translator_of(open_trained(read_manifest(model)), device)
    pairs = {name: read_pairs(corpus[name], test, translator.direction) for name, test in settings.tests.items()}
    score(translator, pairs, settings, runtime).write(run)


@dataclass(frozen=True)
class Translator:
    """A translation model in evaluation mode on `device`, with its search settings. If a beam size is chosen for the
    test sets, it replaces the beam size in `search`.

    `longest` is the sequence length in training, in tokens; `direction` is the direction in which the model was trained
    to translate.
    """

    network: TranslationModel
    tokenizer: Tokenizer
    search: SearchSettings
    longest: int
    direction: str
    device: torch.device


def translator_of(opened: Pretrained, device: torch.device) -> Translator:
    """Return a translation model with its search settings. Raises EvaluationError for a model that was not trained to
    translate, and for a model without the manifest of its training.
    """
    is_ours = isinstance(opened, OurModel) and Path(opened.where).name == MANIFEST
    objective, network = opened.objective, opened.network
    if not is_ours or not isinstance(network, TranslationModel) or not isinstance(objective, TranslationSettings):
        raise EvaluationError(
            f"{opened.where}: got a model that was not trained with task translation, expected a translation model"
        )
    assert isinstance(opened, OurModel)
    longest = pretrain_settings(read_manifest(opened.where).settings).sequence_length
    network.to(device).eval()
    return Translator(network, opened.tokenizer, objective.search, longest, objective.direction, device)


def score(
    translator: Translator,
    pairs: Mapping[str, tuple[list[str], list[str]]],
    settings: TranslationTests,
    runtime: EvaluationRuntime,
) -> Scores:
    """Translate the source sentences of each test set, and score the translations against the references.

    `pairs` maps each test set to its source sentences and references. The result contains the table scores.csv, with
    scores from 0 to 100, and text files with the translations and the references. If `settings.beams` is set, the beam
    size is selected by BLEU, and the result also contains the table beams.csv.
    """
    rows: list[tuple[Any, ...]] = []

    def translated(name: str, search: SearchSettings) -> tuple[list[str], dict[str, CorpusScore]]:
        sources, references = pairs[name]
        with Progress(len(sources), f"translate {name}", "sentences") as progress:
            lines = translate(
                translator.network,
                translator.tokenizer,
                sources,
                search,
                translator.longest,
                translator.device,
                runtime.tokens_per_batch,
                progress.update,
            )
        return lines, scores(lines, references)

    tables, texts, facts = dict[str, Table](), dict[str, str](), dict[str, Any]()
    search, known = translator.search, dict[str, tuple[list[str], dict[str, CorpusScore]]]()
    if settings.beams is not None:
        decides = settings.beams.test
        tried = {size: translated(decides, replace(search, beam=size)) for size in settings.beams.sizes}
        beam = best_beam({size: found[BLEU].value for size, (_, found) in tried.items()})
        search, known[decides] = replace(search, beam=beam), tried[beam]
        table = [
            (size, metric, round(one.value, _DECIMALS), int(size == beam))
            for size, (_, found) in tried.items()
            for metric, one in found.items()
        ]
        tables[BEAMS_FILE] = pl.DataFrame(table, schema=list(BEAM_COLUMNS), orient="row")
        facts[BEAM] = beam
    for name, (sources, references) in pairs.items():
        translations, found = known.get(name) or translated(name, search)
        for ending, lines in ((TRANSLATED_LINES, translations), (REFERENCE_LINES, references)):
            texts[f"{name}{ending}"] = "".join(f"{line}\n" for line in lines)
        test = settings.tests[name]
        for metric, one in found.items():
            value = round(one.value, _DECIMALS)
            rows.append((name, test.corpus, test.split, len(sources), metric, value, one.signature))
        facts[name] = {"pairs": len(sources)}
    tables[SCORES_FILE] = pl.DataFrame(rows, schema=list(COLUMNS), orient="row")
    return Scores(tables, facts, texts, {"device": str(translator.device)})


def evaluate(request: Request) -> Answer:
    """Score a model on sentence pairs: a list of (source, reference), a table with these columns, or the folder of a
    Hatchery corpus.

    The key `split` names the split of the corpus, by default `test`. Raises the errors of the stage `translate_tests`.
    """
    split = str(request.settings.get("split", "test"))
    known = {key: value for key, value in request.settings.items() if key != "split"}
    tests = {TEST: {"corpus": PAIRS, "split": split}}
    settings = build(TranslationTests, {"tests": tests, **known}, request.name)
    translator = translator_of(request.model, request.device)
    if isinstance(request.data, str | Path):
        folder = Path(request.data).expanduser()
        manifest = folder if folder.name == MANIFEST else folder / MANIFEST
        read_manifest(manifest).verify()
        pairs = read_pairs(manifest, settings.tests[TEST], translator.direction)
    else:
        given = request.data if request.data is not None else []
        is_list = isinstance(given, list) and all(isinstance(pair, list | tuple) for pair in given)
        frame = pl.DataFrame(given, schema=list(PAIR_COLUMNS), orient="row") if is_list else as_frame(given)
        require_texts(frame, PAIR_COLUMNS)
        if frame.is_empty():
            raise ConfigError("data: got no pairs, expected pairs (sentence to translate, reference translation)")
        pairs = frame[PAIR_COLUMNS[0]].to_list(), frame[PAIR_COLUMNS[1]].to_list()
    return Answer(score(translator, {TEST: pairs}, settings, request.runtime), settings)


def best_beam(scored: Mapping[int, float]) -> int:
    """Return the beam size with the highest BLEU. If several sizes have the highest BLEU, return the smallest of these
    sizes.
    """
    return max(scored, key=lambda size: (scored[size], -size))


def read_pairs(corpus: Path, test: HeldOutPairs, direction: str) -> tuple[list[str], list[str]]:
    """Return source sentences and references of a test set, spelled as in the corpus. If `direction` is "forward", the
    sources are in the corpus's first language, otherwise in its second. Raises CorpusError if the split is missing or
    empty, or contains a document that is not a pair.
    """
    manifest = read_manifest(corpus)
    shards = shards_by_split(manifest)
    if test.split not in shards:
        raise CorpusError(f"{manifest.path}: has no split {test.split!r}; there are: {', '.join(shards)}")
    sides: list[list[str]] = []
    for shard in shards[test.split]:
        for batch in read_batches(shard, _DOCUMENTS_PER_BATCH):
            sides += [text.split("\n") for text in batch.texts]
    if not sides or any(len(pair) != 2 for pair in sides):
        raise CorpusError(
            f"{manifest.path}: the split {test.split!r} contains no sentence pairs; expected a corpus whose sources "
            "have the reader parallel_text"
        )
    first, second = [pair[0] for pair in sides], [pair[1] for pair in sides]
    return (first, second) if direction == "forward" else (second, first)
