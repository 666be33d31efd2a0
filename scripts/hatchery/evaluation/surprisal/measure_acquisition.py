"""Compare the word learning of one run, measured at its checkpoints, with children's word learning.

As in BabyLM's pipeline (docs/papers/babylm-2026.md, "Age of acquisition"), the results are `surprisal.json` and
`aoa_score.json`. In addition, `ages.csv` lists the words with known ages of acquisition of both model and children.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.artifacts.atomic import json_text
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.direct.numerics import kept_numerics
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.minimal_pairs.sentence_model import TokenizedModel
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.scores import Scores
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.age_of_acquisition import Learning, acquisition, added_pieces, surprisals_behind
from hatchery.evaluation.surprisal.human_data import Children, Contexts, read_children, read_contexts
from hatchery.evaluation.surprisal.settings import AcquisitionSettings, MarkedAcquisition
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source

SURPRISALS_FILE, SCORE_FILE = "surprisal.json", "aoa_score.json"


def measure(
    settings: MarkedAcquisition,
    runtime: EvaluationRuntime,
    checkpoints: Mapping[str, Path],
    source: Path,
    run: StageRun,
) -> None:
    """Write the surprisals and the score of a run, computed from its checkpoints; see the stage
    `measure_acquisition`."""
    opened, device = open_source(source), prepare_device(runtime.device, runtime.threads)
    children, contexts = read_norms(opened, settings, settings.children, settings.contexts)

    def models() -> Iterator[tuple[str, TokenizedModel | BaselineModel]]:
        for name, path in checkpoints.items():
            yield name, load_sentence_model(path, device, settings.scoring, template=True)

    score(models(), children, contexts, settings, runtime).write(run)


def evaluate(request: Request) -> Answer:
    """Score the checkpoints of one run on words that children learn. Raises the errors of the stage
    `measure_acquisition`.

    The data are a folder with two files: the table of children's words, and the contexts of the words. The files have
    the names of BabyLM's files, or names that match the patterns in the settings.
    """
    checkpoints, settings = request.checkpoints, request.built(AcquisitionSettings)
    marked = MarkedAcquisition(**vars(settings), words=dict(checkpoints.words))
    source = request.source()
    patterns = (_pattern(source, pattern) for pattern in (settings.children, settings.contexts))
    children, contexts = read_norms(source, settings, *patterns)

    def models() -> Iterator[tuple[str, TokenizedModel | BaselineModel]]:
        for name, model in checkpoints:
            with kept_numerics(model):
                yield name, model.asked(request.device, settings.scoring, template=True)

    return Answer(score(models(), children, contexts, marked, request.runtime), marked)


def read_norms(
    source: RawSource, settings: AcquisitionSettings, children: str, contexts: str
) -> tuple[Children, Contexts]:
    """Return the table of children's words and the contexts of the words.

    Raises EvaluationError for a file that is not in BabyLM's format, and if the two files have no word in common.
    """
    known = read_children(source, children)
    asked = read_contexts(source, contexts, shortest=2 if settings.spaces else 1)
    if not known.keys() & asked.keys():
        spelled = " and ".join(f"{next(iter(words))!r}" for words in (known, asked))
        raise EvaluationError(
            f"{source.one_name(children)}: none of the {len(known):,} words in this file has a context in "
            f"{source.one_name(contexts)}, expected equal spellings: the files begin with {spelled}"
        )
    return known, asked


def _pattern(source: RawSource, pattern: str) -> str:
    """Return `pattern` if it matches a file of the source. Otherwise, return a pattern without the folders in
    `pattern`. The new pattern also matches if the source is a subfolder of BabyLM's folder.
    """
    return pattern if source.names(pattern) else f"*{pattern.rpartition('/')[2].lstrip('*')}"


def score(
    models: Iterable[tuple[str, TokenizedModel | BaselineModel]],
    children: Children,
    contexts: Contexts,
    settings: MarkedAcquisition,
    runtime: EvaluationRuntime,
) -> Scores:
    """Score the checkpoints of one run. `models` yields the name and model of each checkpoint; only one model is in
    memory at a time.

    The table ages.csv contains the words for which the model's age and the children's age of acquisition are known.
    `texts` in the result contains the files of BabyLM's pipeline.
    """
    asked = [(word, index, context) for word, own in contexts.items() for index, context in enumerate(own)]
    rows: list[dict[str, Any]] = []
    by_word: dict[str, dict[int, list[float]]] = {}
    pieces: dict[str, int] = {}
    vocabulary_size = done = 0
    with Progress(len(settings.words), "age of acquisition", "checkpoints") as progress:
        for name, model in models:
            found = surprisals_behind(
                model,
                [(context, word) for word, _, context in asked],
                settings.scoring,
                runtime.tokens_per_batch,
                settings.spaces,
            )
            pieces = pieces or {
                word: added_pieces(model.tokenizer.backend, word, settings.spaces) for word, _, _ in asked
            }
            vocabulary_size = model.tokenizer.backend.get_vocab_size(with_added_tokens=False)
            for (word, index, context), value in zip(asked, found, strict=True):
                by_word.setdefault(word, {}).setdefault(settings.words[name], []).append(value)
                rows.append(
                    {
                        "step": name,
                        "word_count": settings.words[name],
                        "target_word": word,
                        "context_id": index,
                        "context": context,
                        "surprisal": value,
                    }
                )
            done += 1
            progress.update()
    learnt = {word: Learning(surprisals, pieces[word]) for word, surprisals in by_word.items()}
    found_ages = acquisition(children, learnt, vocabulary_size, "2025" if settings.edition == 2025 else "2026")
    metadata = {"use_bos_only": False, "total_steps": done, "completed_steps": done}
    texts = {
        SURPRISALS_FILE: json.dumps({"metadata": metadata, "results": rows}) + "\n",
        SCORE_FILE: json_text({"aoa": found_ages.score}),
    }
    ages = [(word, *both) for word, both in found_ages.ages.items()]
    facts = {
        "aoa": found_ages.score,
        "p": found_ages.p,
        "words": len(found_ages.ages),
        "asked_words": len(learnt),
        "checkpoints": done,
        "edition": settings.edition,
    }
    table = pl.DataFrame(ages, schema=["word", "child_months", "model_log10_words"], orient="row")
    return Scores({"ages.csv": table}, facts, texts)
