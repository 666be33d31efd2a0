"""Train Punkt parameters for English on public texts, with manual corrections; the workflow does not run this program.

NLTK's trainer (Kiss and Strunk, 2006) learns abbreviations, collocations, sentence starters and orthographic contexts
from the texts that a recipe lists. The parameter files, in NLTK's format, contain only these statistics, no text. Equal
texts produce byte-identical files: the trainer processes word types in sorted order, and the lines of the files are
sorted. The additions and removals in the recipe correct mistakes that the trainer makes on small corpora.
"""

import argparse
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import nltk
from nltk.tokenize.punkt import _ORTHO_LC, PunktParameters, PunktToken, PunktTrainer

from hatchery.artifacts.atomic import write_json, write_text
from hatchery.artifacts.checksums import digest, sha256_file
from hatchery.command import run_command
from hatchery.corpora.punkt import UntimedLanguage, UntimedToken
from hatchery.corpora.sentences import ABBREVIATIONS, COLLOCATIONS, MODEL_FOLDER, ORTHOGRAPHY, STARTERS, model_digest
from hatchery.errors import ConfigError, SourceError
from hatchery.settings.base import Settings
from hatchery.typed import build

# This pattern matches a word after a lower-case word and a space. The matched word is inside a sentence, so a capital
# at its beginning does not mark the beginning of a sentence.
_INSIDE_SENTENCE = re.compile(r"(?<=[a-z] )(?:([a-z]+)|([A-Z][a-z]*))(?![\w.-])")
_THRESHOLDS = (
    "ABBREV",
    "ABBREV_BACKOFF",
    "COLLOCATION",
    "IGNORE_ABBREV_PENALTY",
    "INCLUDE_ABBREV_COLLOCS",
    "INCLUDE_ALL_COLLOCS",
    "MIN_COLLOC_FREQ",
    "SENT_STARTER",
)


@dataclass(frozen=True)
class TrainingText(Settings):
    """A training corpus, which is a zip archive."""

    name: str
    """Name of the corpus; the option `--source NAME=path` states its path."""
    files: tuple[str, ...]
    """Shell patterns of the archive members that are read."""
    format: Literal["text", "brown"] = "text"
    """Format of the archive members: `text`, or `brown`, with one sentence per line as `word/tag`."""
    encoding: str = "utf-8"
    remove: str | None = None
    """String that is removed from the text, such as a marker at the beginning of each file."""
    hold_out_every: int | None = None
    """If n, every n-th file is held out for measurements; null holds out no file."""


@dataclass(frozen=True)
class Recipe(Settings):
    """Training texts of a sentence model, and corrections of its parameters.

    A list of words is one string, in which spaces separate the words.
    """

    texts: tuple[TrainingText, ...]
    abbreviations: dict[str, str] = field(default_factory=dict)
    """Abbreviations to add, without their last full stop, by name of a group of abbreviations."""
    initials: str = ""
    """Letters that are initials of names. Each letter (`j`) that is not in `not_abbreviations`, and each pair of
    letters (`j.r`), is added as an abbreviation.
    """
    before_numbers: str = ""
    """Words such as `No` in `No. 5`: a full stop after such a word does not end the sentence if a number follows."""
    not_abbreviations: str = ""
    """Words to remove from the abbreviations, which the trainer mistakes for abbreviations because the corpus is
    small.
    """
    minimum_count: int = 1
    """Minimum number of occurrences of a word type; the orthographic context of rarer word types is removed."""


class SortedTrainer(PunktTrainer):
    """NLTK's trainer with sorted word types. NLTK itself uses the order of a set, which depends on the hash seed."""

    def _unique_types(self, tokens: list[PunktToken]) -> list[str]:
        return sorted(super()._unique_types(tokens))


def read_recipe(path: Path) -> Recipe:
    """Return the recipe that a JSON file contains. For an invalid recipe, raises ConfigError, which names file and
    key.
    """
    try:
        return build(Recipe, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, ConfigError) as error:
        raise ConfigError(f"{path}: cannot be read as a recipe of a sentence model: {error}") from error


def selected_members(archive: zipfile.ZipFile, text: TrainingText) -> tuple[list[str], list[str]]:
    """Return (archive members for training, held-out archive members), both sorted.

    Raises SourceError if no member matches the patterns.
    """
    names = sorted(n for n in archive.namelist() if any(fnmatchcase(n, pattern) for pattern in text.files))
    if not names:
        raise SourceError(f"{archive.filename}: no member matches {', '.join(text.files)}")
    held_out = names[text.hold_out_every - 1 :: text.hold_out_every] if text.hold_out_every else []
    return [name for name in names if name not in set(held_out)], held_out


def training_text(text: TrainingText, path: Path) -> str:
    """Return the training text of a corpus. If a file cannot be read, raises SourceError, which names the archive or
    the member.
    """
    contents = []
    try:
        with zipfile.ZipFile(path) as archive:
            for name in selected_members(archive, text)[0]:
                content = archive.read(name).decode(text.encoding)
                if text.format == "brown":
                    content = "\n".join(brown_sentences(content))
                contents.append(content.replace(text.remove, "") if text.remove else content)
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path}: the archive cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}:{name}: byte {error.start} is not {text.encoding}") from error
    return "\n\n".join(contents)


def train_parameters(text: str, recipe: Recipe) -> PunktParameters:
    """Return the parameters that are learned from `text`, with the additions and removals in the recipe.

    The result is deterministic.
    """
    # Use variants of NLTK's classes whose regular expressions have no time limit, because results must not depend on
    # the speed of the machine.
    trainer = SortedTrainer(lang_vars=UntimedLanguage(), token_cls=UntimedToken)
    trainer.train(text)
    parameters = trainer.get_params()
    counts = Counter[str]()
    for word_type, count in trainer._type_fdist.items():
        counts[word_type.rstrip(".") or word_type] += count
    parameters.sent_starters -= _names(text, parameters)
    parameters.abbrev_types = _abbreviations(parameters.abbrev_types, recipe)
    parameters.collocations |= {(word, "##number##") for word in recipe.before_numbers.split()}
    # Keep only word types that occur at least `minimum_count` times and that also occur in lower case. Punkt treats all
    # other types as unknown types.
    parameters.ortho_context = {
        word_type: flags
        for word_type, flags in parameters.ortho_context.items()
        if flags & _ORTHO_LC and counts[word_type.rstrip(".") or word_type] >= recipe.minimum_count
    }
    return parameters


def _names(text: str, parameters: PunktParameters) -> set[str]:
    # Return names of characters in novels, which must not be sentence starters, although they begin many sentences:
    # `Mr. Watson` would be split. Names are recognised by their capital; `I` always has a capital, but is no name.
    lower, capital = Counter[str](), Counter[str]()
    for match in _INSIDE_SENTENCE.finditer(text):
        if match[1]:
            lower[match[1]] += 1
        else:
            capital[match[2].lower()] += 1
    seen_lower = {word for word, flags in parameters.ortho_context.items() if flags & _ORTHO_LC}
    return {
        word
        for word in parameters.sent_starters
        if word != "i" and (capital[word] > lower[word] or word not in seen_lower)
    }


def _abbreviations(learned: set[str], recipe: Recipe) -> set[str]:
    letters = recipe.initials.split()
    added = {word for group in recipe.abbreviations.values() for word in group.split()}
    added |= {letter for letter in letters if letter not in recipe.not_abbreviations.split()}
    added |= {f"{first}.{second}" for first in letters for second in letters}
    # Remove ellipses with spaces, which the trainer also learns as abbreviations.
    words = {word for word in learned if any(character.isalpha() for character in word) and not re.search(r"\s", word)}
    return (words - set(recipe.not_abbreviations.split())) | added


def save_parameters(parameters: PunktParameters, folder: Path) -> dict[str, int]:
    """Write the four parameter files in NLTK's format, with sorted lines, and return the number of lines of each
    file.
    """
    tables = {
        COLLOCATIONS: ["\t".join(pair) for pair in parameters.collocations],
        STARTERS: list(parameters.sent_starters),
        ABBREVIATIONS: list(parameters.abbrev_types),
        ORTHOGRAPHY: [f"{word_type}\t{flags}" for word_type, flags in parameters.ortho_context.items()],
    }
    for name, lines in tables.items():
        write_text(folder / name, "".join(f"{line}\n" for line in sorted(lines)))
    return {name: len(lines) for name, lines in tables.items()}


def train_model(recipe_path: Path, sources: Mapping[str, Path], folder: Path) -> None:
    """Train by a recipe, and write the parameters and `model.json` (inputs, settings, counts, digest) into `folder`.

    Raises ConfigError if the names of `sources` differ from the names in the recipe, and SourceError if a source cannot
    be read.
    """
    recipe = read_recipe(recipe_path)
    names = [text.name for text in recipe.texts]
    if set(names) != set(sources):
        raise ConfigError(
            f"--source: got {', '.join(sorted(sources))}, expected the corpora of the recipe: "
            f"{', '.join(sorted(names))}"
        )
    text = "\n\n".join(training_text(text, sources[text.name]) for text in recipe.texts)
    entries = save_parameters(train_parameters(text, recipe), folder)
    card = {
        "sources": {
            name: {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
            for name, path in sorted(sources.items())
        },
        "recipe": digest(json.loads(recipe_path.read_text(encoding="utf-8"))),
        "nltk": nltk.__version__,
        "thresholds": {name: getattr(PunktTrainer, name) for name in _THRESHOLDS},
        "characters": len(text),
        "entries": entries,
        "digest": model_digest(folder),
    }
    write_json(folder / "model.json", card)


_CLOSING = frozenset((*".,;:?!)]}", "''"))
_OPENING = frozenset((*"([{$", "``"))
_QUOTES = {"``": '"', "''": '"'}


def brown_sentences(text: str) -> list[str]:
    """Return the sentences of a file of the tagged Brown corpus as ordinary text.

    Quotation marks are straight, and there is no space before punctuation marks.
    """
    return [_running_text(line.split()) for line in text.split("\n") if line.strip()]


def _running_text(tagged: list[str]) -> str:
    text, last = "", ""
    for pair in tagged:
        token = pair.rpartition("/")[0]
        # Leave out the second token, because the corpus contains each of these punctuation marks twice, as two tokens.
        if token in ("?", "!", ";", ":") and token == last:
            last = ""
            continue
        glued = not text or last in _OPENING or token in _CLOSING
        text += ("" if glued else " ") + _QUOTES.get(token, token)
        last = token
    return text


def main(arguments: argparse.Namespace) -> None:
    """Train a model of sentence splitting by the recipe (option `--recipe`), and write the parameter files."""
    train_model(arguments.recipe, dict(arguments.source or ()), arguments.output)


def named(pair: str) -> tuple[str, Path]:
    """Return name and path of an argument `NAME=PATH`. Raises ArgumentTypeError if the argument has another form."""
    name, separator, path = pair.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"expected NAME=PATH, got {pair!r}")
    return name, Path(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--recipe",
        type=Path,
        default=MODEL_FOLDER / "recipe.json",
        help="recipe of the model: names of the texts, and corrections",
    )
    parser.add_argument(
        "--source",
        nargs="+",
        action="extend",
        type=named,
        metavar="NAME=PATH",
        help="zip archive of the corpus NAME; the file of --recipe lists all names; repeat the option for each corpus",
    )
    parser.add_argument("--output", type=Path, default=MODEL_FOLDER, help="folder of the parameter files")
    run_command(main, parser)
