"""Quality of Hatchery's sentence splitter on text that the splitter has not seen, compared with an untrained Punkt.

The texts are the development part of UD English-EWT, and the held-out files of Brown. Each text is split with its
capitals, and in lower case as in the reduced-vocabulary filter. Scores count only sentence ends inside paragraphs,
because the end of a paragraph always ends a sentence. The minimum F1 is 0.89 (EWT) and 0.94 (Brown) on text with
capitals. Usage: benchmarks/sentence_quality.py --treebank en_ewt-ud-dev.conllu --brown brown.zip; the exit code is 1
below a minimum.
"""

import argparse
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from train_sentence_splitter import brown_sentences, read_recipe, selected_members

from hatchery.corpora.sentences import MODEL_FOLDER, PunktModel, SentenceSplitter, pinned_splitter

LIMITS = {"EWT": 0.89, "Brown": 0.94}


_SENTENCES_PER_PARAGRAPH = 5


@dataclass(frozen=True)
class BoundaryScores:
    """Numbers of correct, wrong and missed sentence ends."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Share of the found sentence ends that are correct; 1 if the splitter found no end."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Share of the annotated sentence ends that the splitter found; 1 if no end is annotated."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0


def boundary_scores(split: Callable[[str], list[str]], paragraphs: Iterable[list[str]]) -> BoundaryScores:
    """Return the numbers of correct, wrong and missed sentence ends of `split`. A paragraph is a list of sentences;
    `split` receives these sentences joined by single spaces.

    The position of an end is the number of non-space characters before it.
    """
    right = wrong = missed = 0
    for sentences in paragraphs:
        marked, found = _ends(sentences), _ends(split(" ".join(sentences)))
        right += len(marked & found)
        wrong += len(found - marked)
        missed += len(marked - found)
    return BoundaryScores(right, wrong, missed)


def _ends(sentences: list[str]) -> set[int]:
    ends, characters = set(), 0
    for sentence in sentences:
        characters += len("".join(sentence.split()))
        ends.add(characters)
    return ends - {characters}


def conllu_paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the paragraphs of a CoNLL-U file as lists of sentences, from its `# text`, `# newpar` and `#
    newdoc` lines."""
    sentences: list[str] = []
    for line in text.split("\n"):
        if line.startswith(("# newdoc", "# newpar")) and sentences:
            yield sentences
            sentences = []
        elif line.startswith("# text = "):
            sentences.append(" ".join(line.removeprefix("# text = ").split()))
    if sentences:
        yield sentences


def brown_paragraphs(text: str) -> list[list[str]]:
    """Return groups of five sentences instead of paragraphs, which the tagged Brown corpus does not mark."""
    sentences = brown_sentences(text)
    return [sentences[i : i + _SENTENCES_PER_PARAGRAPH] for i in range(0, len(sentences), _SENTENCES_PER_PARAGRAPH)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--brown", type=Path, required=True)
    arguments = parser.parse_args()
    recipe = next(text for text in read_recipe(MODEL_FOLDER / "recipe.json").texts if text.name == "brown")
    with zipfile.ZipFile(arguments.brown) as archive:
        names = selected_members(archive, recipe)[1]
        brown = [p for name in names for p in brown_paragraphs(archive.read(name).decode(recipe.encoding))]
    texts = {"EWT": list(conllu_paragraphs(arguments.treebank.read_text(encoding="utf-8"))), "Brown": brown}
    untrained = PunktModel(frozenset(), frozenset(), frozenset(), {})
    splitters = {
        "untrained, as_published": SentenceSplitter(untrained, "as_published"),
        "untrained, corrected": SentenceSplitter(untrained),
        "ours, as_published": pinned_splitter("as_published"),
        "ours, corrected": pinned_splitter(),
    }
    kept = True
    print(
        "Each row is one splitter on one text; the scores are about the sentence ends inside paragraphs.\n"
        f"{'splitter':25}{'text':6} {'case':6} precision recall     F1"
    )
    for name, splitter in splitters.items():
        for text, paragraphs in texts.items():
            for case in ("cased", "lower"):
                cased = paragraphs if case == "cased" else [[s.lower() for s in p] for p in paragraphs]
                scores = boundary_scores(splitter.split, cased)
                print(f"{name:25}{text:6} {case:6} {scores.precision:9.4f} {scores.recall:6.4f} {scores.f1:6.4f}")
                kept &= name != "ours, corrected" or case != "cased" or scores.f1 >= LIMITS[text]
    print(
        f"minimum F1 of 'ours, corrected' on cased text: "
        f"{', '.join(f'{text} {least}' for text, least in LIMITS.items())}: "
        f"{'reached' if kept else 'MISSED'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
