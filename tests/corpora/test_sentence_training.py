"""Training the sentence model: one digest whatever the hash seed, the additions applied, quality on unseen text."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.sentence_quality import BoundaryScores, boundary_scores, brown_paragraphs, conllu_paragraphs
from hatchery.corpora.sentence_training import (
    Recipe,
    TrainingText,
    brown_sentences,
    read_recipe,
    selected_members,
    train_model,
    train_parameters,
)
from hatchery.corpora.sentences import MODEL_FOLDER, folder_splitter, model_digest, split_sentences
from hatchery.errors import ConfigError, SourceError

TEXT = "\n".join(
    f"Old Mr. {name} saw a town with Mr. Gray in town. Then it slept and then slept. Watson slept. It was no. {i}."
    for i in range(40)
    for name in ("Wren", "Crow", "Finch")
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w") as writer:
        for number in range(6):
            writer.writestr(f"text/{number}.txt", ".START " + TEXT)
    return path


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.json"
    text = {"name": "text", "files": ["text/*.txt"], "remove": ".START", "hold_out_every": 3}
    settings = {"texts": [text], "abbreviations": {"titles": "dr"}, "initials": "j r", "before_numbers": "fig"}
    path.write_text(json.dumps(settings))
    return path


def test_trainings_under_different_hash_seeds_give_one_digest(
    repository: Path, tmp_path: Path, archive: Path, recipe: Path
) -> None:
    command = [sys.executable, str(repository / "scripts" / "train_sentence_splitter.py"), "--recipe", str(recipe)]
    digests = set()
    for seed in ("0", "1", "random"):
        output = tmp_path / seed
        subprocess.run(
            [*command, "--source", f"text={archive}", "--output", str(output)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        digests.add((model_digest(output), (output / "model.json").read_text()))
    assert len(digests) == 1


def test_learned_and_added_abbreviations_are_used(tmp_path: Path, archive: Path, recipe: Path) -> None:
    train_model(recipe, {"text": archive}, tmp_path / "model")
    splitter = folder_splitter(tmp_path / "model")
    assert "mr" in splitter.model.abbreviations
    assert splitter.split("Dr. Wren met J. R. Gray today. Mr. Finch saw fig. 3 there.") == [
        "Dr. Wren met J. R. Gray today.",
        "Mr. Finch saw fig. 3 there.",
    ]


def test_names_are_no_sentence_starters_and_rare_words_are_left_out() -> None:
    text = TEXT + " and Watson ran" * 50
    kept = train_parameters(text, Recipe(texts=()))
    pruned = train_parameters(text, Recipe(texts=(), minimum_count=100, not_abbreviations="mr"))
    assert "watson" not in kept.sent_starters
    assert "then" in kept.sent_starters
    assert "mr" not in pruned.abbrev_types
    assert set(pruned.ortho_context) < set(kept.ortho_context)


def test_every_nth_member_is_held_out(archive: Path) -> None:
    text = TrainingText("text", ("text/*.txt",), hold_out_every=3)
    with zipfile.ZipFile(archive) as opened:
        assert selected_members(opened, text) == (
            ["text/0.txt", "text/1.txt", "text/3.txt", "text/4.txt"],
            ["text/2.txt", "text/5.txt"],
        )


def test_sources_and_recipe_that_do_not_fit_are_told(tmp_path: Path, archive: Path, recipe: Path) -> None:
    with pytest.raises(ConfigError, match="--source: got other, the recipe names text"):
        train_model(recipe, {"other": archive}, tmp_path / "model")
    with pytest.raises(SourceError, match=r"recipe\.json: the archive cannot be read"):
        train_model(recipe, {"text": recipe}, tmp_path / "model")
    recipe.write_text('{"texts": [], "colour": 1}')
    with pytest.raises(ConfigError, match=r"recipe\.json: .*colour"):
        read_recipe(recipe)
    assert not (tmp_path / "model").exists()


def test_marked_text_is_read_and_scored() -> None:
    assert brown_sentences("\n\n\tHe/pps said/vbd ``/`` Go/vb ''/'' ./.\n\n\tWhy/wrb ?/. ?/.\n") == [
        'He said "Go".',
        "Why?",
    ]
    text = "# newdoc\n# text = One  two.\n1\tOne\n\n# text = Three.\n\n# newpar\n# text = Four.\n"
    paragraphs = list(conllu_paragraphs(text))
    assert paragraphs == [["One two.", "Three."], ["Four."]]
    assert boundary_scores(lambda text: text.split(), paragraphs) == BoundaryScores(right=1, wrong=1, missed=0)
    assert boundary_scores(lambda text: [text], paragraphs) == BoundaryScores(right=0, wrong=0, missed=1)


def test_the_pinned_model_is_good_on_text_that_it_has_not_seen(real_data: Path) -> None:
    treebank = list(
        conllu_paragraphs((real_data / "ud_english_ewt" / "en_ewt-ud-dev.conllu").read_text(encoding="utf-8"))
    )
    text = next(text for text in read_recipe(MODEL_FOLDER / "recipe.json").texts if text.name == "brown")
    with zipfile.ZipFile(real_data / "nltk" / "brown.zip") as archive:
        held_out = selected_members(archive, text)[1]
        brown = [p for name in held_out for p in brown_paragraphs(archive.read(name).decode(text.encoding))]
    for paragraphs, f1 in ((treebank, 0.89), (brown, 0.94)):
        scores = boundary_scores(split_sentences, paragraphs)
        assert scores.f1 > f1
        assert scores.precision > 0.97
    for paragraphs, f1 in ((treebank, 0.88), (brown, 0.93)):
        lowered = [[sentence.lower() for sentence in paragraph] for paragraph in paragraphs]
        assert boundary_scores(split_sentences, lowered).f1 > f1


@pytest.mark.slow
def test_training_on_the_public_texts_gives_the_pinned_files(real_data: Path, tmp_path: Path) -> None:
    recipe = MODEL_FOLDER / "recipe.json"
    archives = {text.name: real_data / "nltk" / f"{text.name}.zip" for text in read_recipe(recipe).texts}
    train_model(recipe, archives, tmp_path)
    for name in (path.name for path in tmp_path.iterdir()):
        assert (tmp_path / name).read_bytes() == (MODEL_FOLDER / name).read_bytes()
