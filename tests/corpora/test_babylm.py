"""The BabyLM normalisers: golden outputs, the changes of the corrected reading, and each defect that it fixes."""

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demo import layouts
from hatchery.corpora.babylm import Treatment
from hatchery.corpora.babylm.speech import _unescaped
from hatchery.corpora.documents import ReaderContext, Rejections
from hatchery.corpora.readers.babylm import NORMALISERS, BabylmCorpus, BabylmOptions, files, output_lines, read
from hatchery.corpora.sentences import split_sentences
from hatchery.corpora.text_files import Lines
from hatchery.raw.registration import open_source, register_source

CORPORA = sorted(NORMALISERS)
# Lines in which the corrected reading differs: the published output (-), and our output (+).
CORRECTIONS = {
    "aochildes": ['-"What is that cat\' s name?"', '+"What is that cat\'s name?"'],
    "bnc_spoken": ["-\"It' s what I' d call daft.\"", "+\"It's what I'd call daft.\""],
    "cbt": [
        "-_BOOK_TITLE_: Ada_Fern___The_Lantern_Boat.txt.out",
        "+",
        "-_BOOK_TITLE_: Ada_Fern___The_Second_Boat.txt.out",
        "+",
    ],
    "children_stories": [],
    "gutenberg": ["+lost line at the end also lost"],
    "open_subtitles": ['-"<i>Italic &amp; tag</i>"', '+"Italic & tag"'],
    "qed": ['-"<i>slanted</i>"', '-"<i>slanted</i> > done"', '+"slanted"', '+"slanted > done"'],
    "simple_wikipedia": [
        "+Torva",
        "+This line is waiting when the stub arrives.",
        "-5 < 6 &gt; 4 > 3",
        "+5 < 6 > 4 > 3",
        '+"Curly" spaces nbsp',
        "+",
        "+Final line that is lost",
        "+",
    ],
    "switchboard": ['+"Uh-huh."', "-", "-"],
    "wikipedia": [
        "-The tin bridge is a bridge over the river Ost.",
        "-It was built by Jane Mill, Carl & File:plan.png others.",
        "+The tin bridge is a bridge over the Ost.",
        "+It was built by Mill, Carl & others.",
        "-Text after A a picture. Two spaces.",
        "-",
        "-= Deep heading =",
        "+Text after C a picture. Two spaces.",
        "+with tail",
        "+= = = = Deep heading = = = =",
        "-",
        "-",
        "-= = = A = B = = =",
        "+A = B",
        "-Two links and more.",
        "+Two x and more.",
    ],
}


def normalised(
    corpus: BabylmCorpus, lines: list[str], corrected: bool, rejections: Rejections | None = None
) -> list[str]:
    return list(output_lines(corpus, lines, Treatment(corrected, rejections or Rejections())))


def test_every_corpus_says_what_its_corrected_reading_changes_in_the_golden_output() -> None:
    assert sorted(CORRECTIONS) == CORPORA


@pytest.mark.parametrize("corpus", CORPORA)
def test_as_published_gives_the_bytes_of_the_published_script(
    corpus: BabylmCorpus, golden_directory: Path, tmp_path: Path
) -> None:
    register_source("golden", golden_directory / "babylm" / f"{corpus}.in.txt", tmp_path / "golden.json")
    raw = list(Lines(open_source(tmp_path / "golden.json"), f"{corpus}.in.txt"))
    written = "".join(f"{line}\n" for line in normalised(corpus, raw, corrected=False))
    assert written.encode() == (golden_directory / "babylm" / f"{corpus}.out.txt").read_bytes()


@pytest.mark.parametrize("corpus", CORPORA)
def test_corrected_changes_the_listed_lines_of_the_golden_output_and_no_others(
    corpus: BabylmCorpus, golden_directory: Path
) -> None:
    raw, published = (
        (golden_directory / "babylm" / f"{corpus}.{end}.txt").read_bytes().decode().removesuffix("\n").split("\n")
        for end in ("in", "out")
    )
    difference = list(difflib.unified_diff(published, normalised(corpus, raw, corrected=True), lineterm="", n=0))
    assert [line for line in difference[2:] if not line.startswith("@@")] == CORRECTIONS[corpus]


# Raw lines, lines as published, corrected lines. If neither a golden file nor docs/papers/elc-bert.md, "Treatment of
# the corpora", shows the output of the published script, the name says that the output is inferred.
MENDED = {
    "an apostrophe inside a word is no closing quote (aochildes)": (
        "aochildes",
        ["the cat’s hat don’t fit ."],
        ["\"The cat' s hat don' t fit.\""],
        ["\"The cat's hat don't fit.\""],
    ),
    "an apostrophe inside a word is no closing quote (bnc_spoken)": (
        "bnc_spoken",
        ["We’ll see."],
        ['"We\' ll see."'],
        ['"We\'ll see."'],
    ),
    "an apostrophe inside a word is no closing quote (cbt)": (
        "cbt",
        ["I ca n’t , he’s here ."],
        ["I ca n' t, he' s here."],
        ["I can't, he's here."],
    ),
    "nothing left becomes no pair of quotes (aochildes); as published inferred": (
        "aochildes",
        ["hi .", "&#32;"],
        ['"Hi."', '""'],
        ['"Hi."'],
    ),
    "nothing left becomes no pair of quotes (bnc_spoken); as published inferred": (
        "bnc_spoken",
        ["Hi.", "&#32;"],
        ['"Hi."', '""'],
        ['"Hi."'],
    ),
    "a book begins at its title line, which is no text": (
        "cbt",
        ["The end .", "_BOOK_TITLE_ : A.txt.out", "Once ."],
        ["The end.", "_BOOK_TITLE_: A.txt.out", "Once."],
        ["The end.", "", "Once."],
    ),
    "nothing left is no boundary (cbt); as published inferred": (
        "cbt",
        ["A .", "&#32;", "B ."],
        ["A.", "", "B."],
        ["A.", "B."],
    ),
    "nothing left is no boundary and no marker (children_stories); as published inferred": (
        "children_stories",
        ["A.", "&#32;", "    &#32;", "B."],
        ["A.", "", "[TAB]", "B."],
        ["A.", "B."],
    ),
    "the last paragraph of a file is kept": (
        "gutenberg",
        ["One", "two.", "", "Three", "four."],
        ["One two."],
        ["One two.", "Three four."],
    ),
    "nothing left ends no paragraph; as published inferred": (
        "gutenberg",
        ["One", "&#32;", "two.", ""],
        ["One", "two."],
        ["One two."],
    ),
    "a subtitle of a dash ends no film": (
        "open_subtitles",
        ["- Hello.", "-", "- Bye."],
        ['"Hello."', "", '"Bye."'],
        ['"Hello."', '"Bye."'],
    ),
    "tags of subtitles go and their entities are decoded (open_subtitles)": (
        "open_subtitles",
        ['<font color="red">Tea &amp; cake</font>', "2 <b and c> 3"],
        ['"<font color="red">Tea &amp; cake</font>"', '"2 <b and c> 3"'],
        ['"Tea & cake"', '"2 <b and c> 3"'],
    ),
    "a subtitle of a dash ends no document": (
        "qed",
        ["- Hello.", "- ", "- Bye."],
        ['"Hello."', "", '"Bye."'],
        ['"Hello."', '"Bye."'],
    ),
    "tags of subtitles go (qed)": ("qed", ["&lt;i&gt;Tea&lt;/i&gt;"], ['"<i>Tea</i>"'], ['"Tea"']),
    "the last line of a file is kept": ("simple_wikipedia", ["A", "Is a."], ["A"], ["A", "Is a.", ""]),
    "a stub sentence leaves the line above it in an article": (
        "simple_wikipedia",
        ["A", "One line.", "A is a town in B.", "Two lines.", ""],
        ["A", "Two lines.", ""],
        ["A", "One line.", "Two lines.", ""],
    ),
    "a stub sentence leaves the title of an article that goes on": (
        "simple_wikipedia",
        ["A", "A is a town in B.", "It is old.", ""],
        ["It is old.", ""],
        ["A", "It is old.", ""],
    ),
    "an article that ends in a stub sentence is still apart from the next": (
        "simple_wikipedia",
        ["A", "One.", "Two.", "A is a town in B.", "", "C", "Is c.", ""],
        ["A", "One.", "C", "Is c.", ""],
        ["A", "One.", "Two.", "", "C", "Is c.", ""],
    ),
    "a citation alone ends no article; as published inferred": (
        "simple_wikipedia",
        ["A", "[1]", "Is a.", ""],
        ["A", "", "Is a.", ""],
        ["A", "Is a.", ""],
    ),
    "entities are decoded to the last level": (
        "simple_wikipedia",
        ["1 < 2 &amp;amp;amp;gt; 0", ""],
        ["1 < 2 &amp;gt; 0", ""],
        ["1 < 2 > 0", ""],
    ),
    "a conversation may begin as the last one ended": (
        "switchboard",
        ["Bye.", "", "Bye."],
        ['"Bye."', ""],
        ['"Bye."', "", '"Bye."'],
    ),
    "an utterance of a dash ends no conversation": (
        "switchboard",
        ["Hi.", "-", "Bye."],
        ['"Hi."', "", '"Bye."'],
        ['"Hi."', '"Bye."'],
    ),
    "a link leaves the text that readers see": (
        "wikipedia",
        ["The [[Ost (river)|Ost]] and the [[Bay|]]."],
        ["The Ost (river) and the Bay."],
        ["The Ost and the Bay."],
    ),
    "links within links": (
        "wikipedia",
        ["A [[nested [[inner|shown]] tail]] b.", "[[a|b [c]] d [[e] f", "[[[g]] [[h|i]"],
        ["A nested [[inner tail]] b.", "a d [[e] f", "[g [[h|i]"],
        ["A nested shown tail b.", "[[a|b [c]] d [[e] f", "[g [[h|i]"],
    ),
    "abbreviations, runs of full stops and entities stay whole (aochildes)": (
        "aochildes",
        ["the U.S.A. is big .", "what....?", "caf&eacute;s ."],
        ['"The U. S. A. is big."', '"What... . ?"', '"Café s."'],
        ['"The U.S.A. is big."', '"What....?"', '"Cafés."'],
    ),
    "abbreviations, runs of full stops and entities stay whole (bnc_spoken)": (
        "bnc_spoken",
        ["’Tis the U.S.A.", "Wait....."],
        ['"\' Tis the U. S. A."', '"Wait... . ."'],
        ['"\'Tis the U.S.A."', '"Wait....."'],
    ),
    "abbreviations, runs of full stops and entities stay whole (cbt)": (
        "cbt",
        ["Wait..... ` U.S.A. '"],
        ["Wait... . . ` U. S. A. '"],
        ["Wait..... ` U.S.A. '"],
    ),
    "a file or category link leaves the text beside it": (
        "wikipedia",
        ["[[File:a.png|thumb|An [[old bridge|old]] one]] Text.", "A [[File:b.png]] b.", "[[Category:C]]"],
        ["A File:b.png b."],
        ["Text.", "A b."],
    ),
    "a deeper heading is no document": (
        "wikipedia",
        ["Text.", "= = = = Deep = = = =", "More."],
        ["Text.", "", "= Deep =", "More."],
        ["Text.", "= = = = Deep = = = =", "More."],
    ),
    "a title may hold an equals sign": (
        "wikipedia",
        ["Text.", "= = = E = mc = = ="],
        ["Text.", "", "= = = E = mc = = ="],
        ["Text.", "", "E = mc"],
    ),
    "a line reduced to nothing is no boundary": ("wikipedia", ["A.", "[12]", "B."], ["A.", "", "B."], ["A.", "B."]),
}


@pytest.mark.parametrize("defect", MENDED)
def test_corrected_mends(defect: str) -> None:
    corpus, raw, published, corrected = MENDED[defect]
    assert normalised(corpus, raw, corrected=False) == published
    assert normalised(corpus, raw, corrected=True) == corrected


@settings(max_examples=1000)
@given(st.text(alphabet="[[]]|a b", max_size=30))
def test_published_links_equal_a_plain_replacement_of_targets_up_to_the_first_bar_or_bracket(line: str) -> None:
    line = " ".join(line.split())
    replaced = re.sub(r"\[\[([^|\]]*)(?:\|[^\]]*)?\]\]", r"\1", line)
    assert normalised("wikipedia", [line], corrected=False) == ([replaced] if line else [])


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_newline_that_the_cleaning_brings_splits_the_line_as_published_and_is_a_space_when_corrected(
    corpus: BabylmCorpus,
) -> None:
    raw = ["One &#10; two.", "", ""]
    published, corrected = (normalised(corpus, raw, corrected=corrected) for corrected in (False, True))
    assert any("One two." in line for line in corrected)
    assert not any("two" in line for line in published if "One" in line)
    assert any("two." in line for line in published)


@pytest.mark.parametrize("corrected", [False, True])
def test_aochildes_skips_empty_lines_at_which_the_published_script_stops(corrected: bool) -> None:
    assert normalised("aochildes", ["hi .", "", "bye ."], corrected) == ['"Hi."', '"Bye."']


@pytest.mark.parametrize("corrected", [False, True])
def test_the_dash_goes_before_the_cleaning_in_qed_and_after_it_in_open_subtitles(corrected: bool) -> None:
    assert normalised("qed", ["&#45; Hi."], corrected) == ['"- Hi."']
    assert normalised("open_subtitles", ["&#45; Hi."], corrected) == ['"Hi."']


@pytest.mark.parametrize("corpus", ["aochildes", "bnc_spoken"])
def test_the_capital_comes_before_the_cleaning(corpus: BabylmCorpus) -> None:
    assert normalised(corpus, ["&#97; dog ."], corrected=False) == ['"a dog."']


def test_what_is_left_out_is_counted_by_reason_with_samples() -> None:
    rejections = Rejections()
    normalised("simple_wikipedia", ["A", "A is a town in B.", "", "C", "Is c."], corrected=False, rejections=rejections)
    assert rejections.counts == {"stub about a place": 1, "line above a stub": 1, "last line of the file": 1}
    assert rejections.samples["last line of the file"] == ["Is c."]


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
@pytest.mark.parametrize("corpus", sorted(layouts.CORPORA))
def test_embedded_corpus_becomes_clean_documents_of_both_splits(
    corpus: BabylmCorpus, reading: str, embedded_folder: Path, tmp_path: Path
) -> None:
    register_source("babylm", embedded_folder / "babylm", tmp_path / "babylm.json")
    source = open_source(tmp_path / "babylm.json")
    options = BabylmOptions(corpus, lines_per_document=50, reading=reading)  # type: ignore[arg-type]
    context = ReaderContext("x", options, Rejections(), split_sentences)
    documents = [document for file in files(source, options) for document in read(source, file, context)]
    assert {document.split for document in documents} == {"train", "dev"}
    assert len({document.doc_id for document in documents}) == len(documents)
    rubbish = ["[[", "&amp;", "&gt;", "``", "''", "-->", " n't", " .", "[1]"]
    for document in documents:
        assert document.text
        assert "\n\n\n" not in document.text
        for mark in rubbish if reading == "as_published" else [*rubbish, "_BOOK_TITLE_"]:
            assert mark not in document.text


def test_three_levels_of_entities_are_decoded() -> None:
    assert _unescaped("a &amp;amp;amp; b") == ("a & b", False)
