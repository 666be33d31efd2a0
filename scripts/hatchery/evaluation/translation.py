"""One model translates test sets of raw text; BLEU and chrF of each, and the translations.

Writes scores.csv, `<test>.txt` with a translation per line, `<test>.reference.txt` with what it is compared with, and
the manifest; `beams.csv` where a beam is chosen, by BLEU of validation text, as Section 4.1 of "A Natural Bias for
Language Generation Models" says. The text of the test sets is segmented with the model's own tokenizer, also that of
other corpora, and the references are compared as they were written.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun, read_manifest
from hatchery.errors import ConfigError, CorpusError, EvaluationError
from hatchery.evaluation.runtime import load_pretrained, prepare_device
from hatchery.evaluation.settings import (
    BEAM,
    REFERENCE_LINES,
    TRANSLATED_LINES,
    EvaluationRuntime,
    HeldOutPairs,
    TranslationTests,
)
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.progress import Progress
from hatchery.sanitize import csv_text
from hatchery.tokenization.documents import read_batches, shards_by_split
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.metrics import BLEU, CorpusScore, scores
from hatchery.translation.settings import SearchSettings
from hatchery.translation.translate import translate

SCORES_FILE = "scores.csv"
BEAMS_FILE, BEAM_COLUMNS = "beams.csv", ("beam", "metric", "score", "chosen")
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
    """Translate the test sets and score them; see the stage `translate_tests`."""
    if sorted(corpus) != sorted(settings.tests):
        raise ConfigError(f"corpus: got {', '.join(corpus)}, expected one for each of {', '.join(settings.tests)}")
    trained = pretrain_settings(read_manifest(model).settings)
    objective = trained.objective
    network, tokenizer = load_pretrained(model, translates=True)
    if not isinstance(network, TranslationModel) or not isinstance(objective, TranslationSettings):
        raise EvaluationError(f"{model}: this model does not translate: it was not trained with task translation")
    pairs = {name: read_pairs(corpus[name], test, objective.direction) for name, test in settings.tests.items()}
    device = prepare_device(runtime.device, runtime.threads)
    network.to(device).eval()
    rows: list[tuple[Any, ...]] = []

    def translated(name: str, search: SearchSettings) -> tuple[list[str], dict[str, CorpusScore]]:
        (sources, references), longest = pairs[name], trained.sequence_length
        with Progress(len(sources), f"translate {name}", "sentences") as progress:
            lines = translate(
                network, tokenizer, sources, search, longest, device, runtime.tokens_per_batch, progress.update
            )
        return lines, scores(lines, references)

    search, known = objective.search, dict[str, tuple[list[str], dict[str, CorpusScore]]]()
    if settings.beams is not None:
        decides = settings.beams.test
        tried = {size: translated(decides, replace(search, beam=size)) for size in settings.beams.sizes}
        beam = best_beam({size: found[BLEU].value for size, (_, found) in tried.items()})
        search, known[decides] = replace(search, beam=beam), tried[beam]
        table = [
            (size, metric, round(score.value, _DECIMALS), int(size == beam))
            for size, (_, found) in tried.items()
            for metric, score in found.items()
        ]
        write_text(run.add_output(run.folder / BEAMS_FILE), csv_text(BEAM_COLUMNS, table))
        run.measures[BEAM] = beam
    for name, (sources, references) in pairs.items():
        translations, found = known.get(name) or translated(name, search)
        for ending, lines in ((TRANSLATED_LINES, translations), (REFERENCE_LINES, references)):
            path = run.add_output(run.folder / f"{name}{ending}")
            write_text(path, "".join(f"{line}\n" for line in lines))
        test = settings.tests[name]
        for metric, score in found.items():
            value = round(score.value, _DECIMALS)
            rows.append((name, test.corpus, test.split, len(sources), metric, value, score.signature))
        run.measures[name] = {"pairs": len(sources)}
    write_text(run.add_output(run.folder / SCORES_FILE), csv_text(COLUMNS, rows))
    run.volatile["device"] = str(device)


def best_beam(scored: Mapping[int, float]) -> int:
    """The size of the beam with the highest BLEU; of equal ones the smallest."""
    return max(scored, key=lambda size: (scored[size], -size))


def read_pairs(corpus: Path, test: HeldOutPairs, direction: str) -> tuple[list[str], list[str]]:
    """Sources and references of a test set, as they were written. Raises CorpusError where there are none."""
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
            f"{manifest.path}: the split {test.split!r} holds no pairs of sentences; expected a corpus whose sources "
            "have the reader parallel_text"
        )
    first, second = [pair[0] for pair in sides], [pair[1] for pair in sides]
    return (first, second) if direction == "forward" else (second, first)
