"""How well sentence ends are found on text that the model has not seen, beside Punkt without any training.

Text: the development part of UD English-EWT, and the files of Brown that the recipe holds out; cased, and in lower
case as the reduced-vocabulary filter splits. The limit: an F1 of 0.89 (EWT) and 0.94 (Brown) on cased text.
Usage: benchmarks/sentence_quality.py --treebank en_ewt-ud-dev.conllu --brown brown.zip; exit code 1 below the limit.
"""

import argparse
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.corpora.sentence_training import (
    boundary_scores,
    brown_paragraphs,
    conllu_paragraphs,
    read_recipe,
    selected_members,
)
from hatchery.corpora.sentences import MODEL_FOLDER, PunktModel, SentenceSplitter, pinned_splitter

LIMITS = {"EWT": 0.89, "Brown": 0.94}


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
    print(f"{'':25}{'text':6} {'case':6} precision recall     F1")
    for name, splitter in splitters.items():
        for text, paragraphs in texts.items():
            for case in ("cased", "lower"):
                cased = paragraphs if case == "cased" else [[s.lower() for s in p] for p in paragraphs]
                scores = boundary_scores(splitter.split, cased)
                print(f"{name:25}{text:6} {case:6} {scores.precision:9.4f} {scores.recall:6.4f} {scores.f1:6.4f}")
                kept &= name != "ours, corrected" or case != "cased" or scores.f1 >= LIMITS[text]
    print(f"limits {LIMITS}: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
