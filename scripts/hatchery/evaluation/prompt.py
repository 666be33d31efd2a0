"""The answers of `make try` to one line that the user typed: texts, with bars for probabilities or surprisals.

If the line contains a gap, the model fills it. If the line contains two sentences with BETWEEN between them, the model
compares the probabilities of the sentences. Any other line is continued, or, if the model cannot continue text,
returned with the surprisal of every word.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import MANIFEST, RESULTS
from hatchery.errors import ConfigError
from hatchery.evaluation.sentences_file import GAP
from hatchery.sanitize import visible
from hatchery.settings.problems import alternatives, nearest
from hatchery.stage import MODELS

if TYPE_CHECKING:
    from hatchery.evaluation.asked_model import AskedModel

BAR = 30
BETWEEN = "|"
DRAWS = 2

# Each line of the help text must fit into a terminal of 80 columns.
HELP = """\
A masked or hybrid model fills the gap in a line (The dog ____ the cat.). If a
line has no gap, a causal or hybrid model that Hatchery trained continues the
line, and any other model shows the surprisal of every word. If a line has two
sentences with | between them, the model compares the sentences. The number or
the name of a model selects this model for the next lines. Ctrl-D quits."""


def finished_models(experiment: str, results: Path = Path(RESULTS)) -> dict[str, Path]:
    """Return the folders of an experiment's finished models by name: first pretrained models, then imported models.

    Raises ConfigError if the experiment has no finished model. The error lists the experiments with finished models,
    and suggests the experiment with the most similar name.
    """
    folders = [path for folder in MODELS for path in sorted((results / experiment / folder).glob(f"*/{MANIFEST}"))]
    if not folders:
        others = sorted(
            {path.parents[2].name for folder in MODELS for path in results.glob(f"*/{folder}/*/{MANIFEST}")}
        )
        raise ConfigError(
            f"{results / experiment}: there is no finished model; run: make run EXPERIMENT={experiment}"
            f"{alternatives(experiment, others) if others else ''}"
        )
    return {path.parent.name: path.parent for path in folders}


def chosen_model(word: str, names: Sequence[str]) -> str | None:
    """Return the name of the model that the line `word` selects: by the model's name with or without the seed, or by
    its number in the list. Return None if the line is a text.

    Raises ConfigError for a number without a model, and for an unknown word with `_` or `-` that is similar to a name;
    the error then suggests the most similar name.
    """
    if word in names:
        return word
    if word.isascii() and word.isdigit():
        if 1 <= int(word) <= len(names):
            return names[int(word) - 1]
        raise ConfigError(f"got {word}, expected the number (1 to {len(names)}) or the name of a model, or a text")
    models = {name.rpartition("-s")[0] or name: name for name in reversed(names)}
    if word in models:
        return models[word]
    # Names of models contain `_` or `-`. Words of texts rarely contain these characters.
    is_like_a_name = " " not in word and any(mark in word for mark in "_-") and GAP not in word
    if is_like_a_name and (hint := nearest(word, [*names, *models])):
        raise ConfigError(f"no model is called {word!r}{hint}")
    return None


def answer(model: "AskedModel", line: str) -> Iterator[str]:
    """Yield the lines of the model's answer to `line`, the text that the user typed at the prompt. Raises HatcheryError
    for a question that the model cannot answer.
    """
    from hatchery.evaluation.asked_model import GAPS

    if BETWEEN in line:
        if GAPS.search(line):
            raise ConfigError(f"got {GAP} in a comparison of two sentences; write a word in place of {GAP}")
        yield from _compared(model, [part.strip() for part in line.split(BETWEEN)])
    elif GAPS.search(line):
        if not model.fills_gaps:
            does = "continues the text" if model.continues else "shows the surprisal of every word"
            raise ConfigError(
                f"this model predicts from left to right and cannot fill {GAP}; write the beginning of a text, and "
                f"the model {does}"
            )
        rows = model.fill(line).rows(named=True)
        several = rows[-1]["gap"] > 1
        for row in rows:
            if several and row["rank"] == 1:
                yield f"gap {row['gap']}"
            yield _line(visible(row["text"]), f"{100 * row['probability']:5.1f} %", row["probability"])
    elif model.continues:
        yield f"{line} {visible(model.continuation(line))}"
        yield from (f"{line} {visible(model.continuation(line, seed))}   (drawn)" for seed in range(1, DRAWS + 1))
    else:
        yield from _words(model, line)


def _words(model: "AskedModel", line: str) -> Iterator[str]:
    rows = model.surprisals([line]).rows(named=True)
    most = max((row["surprisal"] or 0.0 for row in rows), default=0.0)
    for row in rows:
        bits = row["surprisal"]
        yield _line(visible(row["word"]), "" if bits is None else f"{bits:5.1f} bits", (bits or 0.0) / (most or 1.0))


def _compared(model: "AskedModel", sentences: Sequence[str]) -> Iterator[str]:
    if len(sentences) != 2:
        raise ConfigError(f"got {len(sentences)} sentences, expected two with one {BETWEEN} between them")
    bits = [-score / math.log(2) for score in model.scores(sentences)["score"]]
    for sentence, own in zip(sentences, bits, strict=True):
        # The sentence may be longer than a line of the terminal, so print it last.
        yield f"  {own:6.1f} bits  {_bar(own / max(*bits, 1e-9)):<{BAR}}  {visible(sentence)}"
    difference = abs(bits[0] - bits[1])
    which = "first" if bits[0] < bits[1] else "second"
    yield "  equally probable" if not difference else f"  the {which} is more probable, by {difference:.1f} bits"


def _line(words: str, number: str, share: float) -> str:
    return f"  {words:<22}  {number:>10}  {_bar(share)}".rstrip()


def _bar(share: float) -> str:
    block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
    return block * round(BAR * share)
