"""Sentences by Punkt: against NLTK, in both readings, by our own model, and the training of this model."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktSentenceTokenizer
from train_sentence_splitter import (
    Recipe,
    TrainingText,
    brown_sentences,
    read_recipe,
    selected_members,
    train_model,
    train_parameters,
)

from benchmarks.sentence_quality import BoundaryScores, boundary_scores, brown_paragraphs, conllu_paragraphs
from hatchery.corpora.sentences import (
    MODEL_DIGEST,
    MODEL_FOLDER,
    PARAMETER_FILES,
    as_they_stand,
    folder_splitter,
    model_digest,
    open_splitter,
    pinned_splitter,
    split_sentences,
)
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource

PLAIN_PIECES = """The dog ran. Mr. J. I Finch "Well!" why? ... 3.14 No. 5 (Yes.) e.g. 1. p.m. U.S. They etc. ." ?! !!! "
.) ' » ” É. -- .-- .,"""
PIECES = [*PLAIN_PIECES.split(), ". . ."]
GLUE = st.sampled_from(["", " ", " ", " ", "\n", "\u00a0"])
PROSE = st.lists(st.tuples(st.sampled_from(PIECES), GLUE), max_size=20).map(
    lambda pairs: "".join(piece + glue for piece, glue in pairs)
)
ANY_TEXT = st.one_of(PROSE, st.text(max_size=80), st.text(alphabet=" .!?\"')a.B1-,\n\u2019\ud800", max_size=60))


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("The dog ran. It fell! Why? Nobody knows...", ["The dog ran.", "It fell!", "Why?", "Nobody knows..."]),
        ("Mr. Finch met Dr. J. R. Alder. They spoke.", ["Mr. Finch met Dr. J. R. Alder.", "They spoke."]),
        ("A. B. Cox and J.R. Alder met Mrs. Watson.", ["A. B. Cox and J.R. Alder met Mrs. Watson."]),
        ("See No. 5 and vol. 3. Then stop.", ["See No. 5 and vol. 3.", "Then stop."]),
        ("No. Mary left.", ["No.", "Mary left."]),
        ("She came at 5 p.m. The dog ran.", ["She came at 5 p.m.", "The dog ran."]),
        ("She lives in the U.S. with us.", ["She lives in the U.S. with us."]),
        ("So did I. Then we left.", ["So did I.", "Then we left."]),
        ("It cost 3.50 and more. 7 were left.", ["It cost 3.50 and more.", "7 were left."]),
        ("wait... what is it? you know", ["wait... what is it?", "you know"]),
        ("  spread \n over lines.   Next.  ", ["spread over lines.", "Next."]),
        ("the end . The start .", ["the end .", "The start ."]),
        ("one word", ["one word"]),
        ("Stop!!", ["Stop!!"]),
        (" \n", []),
        ("", []),
    ],
)
def test_boundaries(paragraph: str, sentences: list[str]) -> None:
    assert split_sentences(paragraph) == sentences


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ('"Come in," he said. "Sit down."', ['"Come in," he said.', '"Sit down."']),
        ('He said "Stop!" Then he ran.', ['He said "Stop!"', "Then he ran."]),
        ("‘Go.’ She went. “Now.” They left.", ["‘Go.’", "She went.", "“Now.”", "They left."]),
        ("(He left.) She stayed.", ["(He left.)", "She stayed."]),
    ],
)
def test_closing_quotes_and_brackets_stay_with_their_sentence(paragraph: str, sentences: list[str]) -> None:
    assert split_sentences(paragraph) == sentences


@given(ANY_TEXT)
def test_sentences_joined_are_the_paragraph(paragraph: str) -> None:
    sentences = split_sentences(paragraph)
    assert " ".join(sentences) == " ".join(paragraph.split())
    assert all(sentences)


@given(ANY_TEXT)
def test_splitting_a_sentence_again_changes_nothing(paragraph: str) -> None:
    for sentence in split_sentences(paragraph):
        assert split_sentences(sentence) == [sentence]


@given(ANY_TEXT)
def test_as_published_cuts_as_the_library_does(paragraph: str) -> None:
    ours = pinned_splitter("as_published")
    bare = PunktSentenceTokenizer(ours.model.parameters())
    assert ours.split(paragraph) == [" ".join(s.split()) for s in bare.tokenize(paragraph) if s.strip()]


def test_as_published_cuts_where_there_is_no_white_space_and_corrected_does_not() -> None:
    paragraph = 'He said "No."And left!!'
    assert pinned_splitter("as_published").split(paragraph) == ['He said "No.', '"And left!', "!"]
    assert split_sentences(paragraph) == [paragraph]


@pytest.mark.parametrize(
    "paragraph",
    [
        "word " * 200_000,
        "a. " * 100_000,
        "." * 500_000 + " B",
        'a."' + '"' * 500_000,
        "!" * 200_000,
        "x" * 500_000 + ". B",
        "a?)" * 200_000,
    ],
    ids=["no stop", "stops", "dots", "quotes", "exclamations", "one word", "marks in one word"],
)
def test_long_monotonous_paragraphs_are_split_in_linear_time(paragraph: str) -> None:
    started = time.process_time()
    sentences = split_sentences(paragraph)
    assert " ".join(sentences) == " ".join(paragraph.split())
    # A step of quadratic time would take minutes.
    assert time.process_time() - started < 20


def test_unknown_words_are_not_remembered() -> None:
    splitter = folder_splitter(MODEL_FOLDER)
    contexts = splitter.punkt._punkt._params.ortho_context
    before = len(contexts)
    splitter.split("He met Mr. Qwertzuiop. Mr. Asdfghjkl came.")
    assert len(contexts) == before


def test_a_splitter_can_be_sent_to_another_process() -> None:
    paragraph = 'Mr. Finch ran. "Why?" Nobody knows!!'
    for reading in ("as_published", "corrected"):
        splitter = pinned_splitter(reading)
        assert pickle.loads(pickle.dumps(splitter)).split(paragraph) == splitter.split(paragraph)


def test_nltk_is_not_imported_before_a_mark_must_be_decided(repository: Path) -> None:
    program = (
        "import sys; from hatchery.corpora.sentences import open_splitter; "
        "open_splitter(None).split('No mark inside.'); sys.exit('nltk' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=repository / "scripts").returncode == 0


def test_the_pinned_model_is_the_one_that_the_code_names() -> None:
    assert model_digest(MODEL_FOLDER) == MODEL_DIGEST


@pytest.mark.parametrize("prefix", ["", "english/", "punkt_tab/english/"])
def test_a_source_with_punkt_parameters_is_opened(source_of: Callable[..., RawSource], prefix: str) -> None:
    files = {prefix + name: (MODEL_FOLDER / name).read_bytes() for name in PARAMETER_FILES}
    if prefix:
        # The published archive contains many languages.
        files |= {"punkt_tab/german/" + name: b"" for name in PARAMETER_FILES}
    splitter = open_splitter(source_of(**files))
    assert splitter.model == pinned_splitter().model
    assert open_splitter(None).split("Mr. Finch ran. He fell.") == splitter.split("Mr. Finch ran. He fell.")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("collocations.tab", b"one\ttwo\nthree\n", "collocations.tab: line 2: expected 2 fields, got 'three'"),
        ("sent_starters.txt", None, "no file sent_starters.txt; expected the Punkt parameters"),
    ],
)
def test_a_damaged_model_is_told_by_file_and_place(
    source_of: Callable[..., RawSource], name: str, content: bytes | None, problem: str
) -> None:
    files = {file: (MODEL_FOLDER / file).read_bytes() for file in PARAMETER_FILES}
    files |= {name: content} if content is not None else {}
    if content is None:
        del files[name]
    with pytest.raises(SourceError, match=problem.replace("(", r"\(")) as caught:
        open_splitter(source_of(**files))
    assert "\n" not in str(caught.value)


def test_a_missing_model_folder_is_told(tmp_path: Path) -> None:
    shutil.copytree(MODEL_FOLDER, tmp_path / "model")
    (tmp_path / "model" / "collocations.tab").unlink()
    with pytest.raises(SourceError, match=r"collocations\.tab: the sentence model cannot be read"):
        folder_splitter(tmp_path / "model")


@settings(max_examples=300)
@given(text=ANY_TEXT)
def test_sentences_as_they_stand_are_the_text_but_for_the_spaces_between_them(text: str) -> None:
    text = text.strip()
    rest = text
    for sentence in as_they_stand(split_sentences(text), text):
        assert rest.startswith(sentence)
        rest = rest[len(sentence) :].lstrip()
    assert rest == ""


def test_sentences_keep_their_white_space_and_a_no_break_space_cuts_nothing() -> None:
    text = "He  ran.\tShe\u00a0fell. It was\u00a0\u00a0late.\u00a0They slept."
    assert as_they_stand(split_sentences(text), text) == [
        "He  ran.",
        "She\u00a0fell.",
        "It was\u00a0\u00a0late.\u00a0They slept.",
    ]


def test_a_model_of_another_language_is_taken_from_its_folder_and_never_guessed(
    source_of: Callable[..., RawSource],
) -> None:
    english = {
        f"punkt_tab/english/{name.replace('.', '__')}": (MODEL_FOLDER / name).read_bytes() for name in PARAMETER_FILES
    }
    german = {f"punkt_tab/german/{name.replace('.', '__')}": b"" for name in PARAMETER_FILES}
    german["punkt_tab/german/abbrev_types__txt"] = b"hrn\nusw\n"
    source = source_of(**english, **german)
    text = "Er sah Hrn. Fink usw. Dann ging er. Mr. Finch blieb."
    assert open_splitter(source, language="german").split(text) == [
        "Er sah Hrn. Fink usw. Dann ging er.",
        "Mr.",
        "Finch blieb.",
    ]
    assert open_splitter(source).split("Mr. Finch ran. He fell.") == ["Mr. Finch ran.", "He fell."]
    with pytest.raises(SourceError, match="but not exactly one of them is in a folder `dutch`"):
        open_splitter(source, language="dutch")
    with pytest.raises(SourceError, match="Hatchery contains an English model only"):
        open_splitter(None, language="german")


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


@pytest.mark.slow
def test_trainings_under_different_hash_seeds_give_one_digest(
    repository: Path, tmp_path: Path, archive: Path, recipe: Path
) -> None:
    command = [sys.executable, str(repository / "scripts" / "train_sentence_splitter.py"), "--recipe", str(recipe)]
    digests = set()
    for seed in ("0", "1"):
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
    with pytest.raises(ConfigError, match="--source: got other, expected the corpora of the recipe: text"):
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
