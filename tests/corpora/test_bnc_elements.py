"""A test per element of docs/papers/ltg-bert.md, "Elements of the BNC", on hand-made XML."""

import pytest
from bnc_cases import READINGS, convert

from hatchery.corpora.documents import Rejections


def s(*words: str) -> str:
    """Return a sentence; as in the BNC, the space after a word is inside the word's element."""
    text = " ".join(words)
    return "<s>" + "".join(f"<w>{word} </w>" for word in text.split(" ")[:-1]) + f"<w>{text.split(' ')[-1]}</w></s>"


def both(body: str, expected: str) -> None:
    """Check that both readings give `expected`."""
    for reading in READINGS:
        assert convert(body, reading) == expected, reading


def each(body: str, published: str, corrected: str) -> None:
    assert convert(body, "as_published") == published
    assert convert(body, "corrected") == corrected


# Characters inside a sentence.


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("<w>One </w><w>two</w><c>.</c>", "One two."),
        ("<w>One</w><w/><c>, </c><w>two</w>", "One, two"),
        ("stray<w>One </w>stray<w>two</w>stray", "One two"),
        ("<w>One <w>inner</w></w><w>two</w>", "One two"),
        ('<gap reason="name"/><w>said</w>', "[UNK] said"),
        ("<w>It </w><unclear><w>was</w></unclear><w>there</w>", "It [UNK] there"),
        ("<mw><w>of </w><w>course </w></mw><w>he</w>", "of course he"),
        ('<corr sic="recieve"><w>receive </w></corr><w>it</w>', "receive it"),
        ('<w>so </w><hi rend="it"><w>very </w></hi><w>good</w>', "so very good"),
        ("<trunc><w>spec </w></trunc><w>special</w>", "spec special"),
        ('<w>a </w><pause dur="3"/><w>b</w>', "a b"),
        ('<w>a </w><vocal desc="laugh"/><w>b</w>', "a b"),
        ('<w>a </w><event desc="door"/><w>b</w>', "a b"),
        ('<w>a </w><shift new="loud"/><w>b</w>', "a b"),
        ('<w>a </w><align with="x"/><w>b</w>', "a b"),
        ('<w>a </w><pb n="2"/><w>b</w>', "a b"),
        ("<w>a </w><note><w>noted </w></note><w>b</w>", "a noted b"),
        ("<foreign><hi><w>deep </w></hi></foreign><w>b</w>", "deep b"),
    ],
)
def test_characters_inside_a_sentence(inside: str, text: str) -> None:
    both(f"<wtext><p><s>{inside}</s></p></wtext>", text)


def test_empty_sentences_and_blocks_vanish() -> None:
    both(f"<wtext><p><s/><s><pause/></s>{s('One')}</p><p/><p><s><vocal/></s></p></wtext>", "One")


def test_a_line_break_inside_a_word_ends_the_sentence_as_published_only_which_is_inferred() -> None:
    each("<wtext><p><s><w>One\n</w><w>two</w></s></p></wtext>", "One\ntwo", "One two")


# Written texts.


def test_wtext_and_p() -> None:
    both(f"<wtext><p>{s('One.')}{s('Two.')}</p><p>{s('Three.')}</p></wtext>", "One.\nTwo.\n\nThree.")


def test_a_caption_in_first_place_of_the_text_is_lost_as_published_only() -> None:
    body = f'<wtext><p type="caption:title">{s("Cap")}</p><p>{s("One")}</p></wtext>'
    each(body, "One", "Cap\n\nOne")
    rejections = Rejections()
    convert(body, "as_published", rejections)
    assert rejections.counts == {"caption in first place left out": 1}
    assert rejections.samples == {"caption in first place left out": ["Cap"]}


def test_a_caption_elsewhere_and_one_without_a_colon_are_paragraphs() -> None:
    both(f'<wtext><p type="caption">{s("One")}</p><p type="caption:x">{s("Two")}</p></wtext>', "One\n\nTwo")


@pytest.mark.parametrize(
    ("attribute", "marks"), [("", "##"), (' level="1"', "##"), (' level="4"', "#####"), (' level="20"', "#" * 21)]
)
def test_a_division_has_one_hash_sign_more_than_its_level(attribute: str, marks: str) -> None:
    both(f"<wtext><div{attribute}><head>{s('Name')}</head></div></wtext>", f"{marks} Name")


def test_the_name_of_a_division_is_its_head_then_its_caption_then_its_type() -> None:
    both(f'<wtext><div type="part"><head>{s("Name")}</head><p>{s("x")}</p></div></wtext>', "## Name\n\nx")
    both(f'<wtext><div type="part"><p type="caption:a">{s("Cap")}</p><p>{s("x")}</p></div></wtext>', "## Cap\n\nx")
    both(f'<wtext><div type="part" n="3"><p>{s("x")}</p></div></wtext>', "## Part 3\n\nx")
    both(f'<wtext><div type="part"><pb/><p>{s("x")}</p></div></wtext>', "## Part\n\nx")
    both(f'<wtext><div n="7"><p>{s("x")}</p></div></wtext>', "## 7\n\nx")
    both(f'<wtext><div type="partB" n="3"><p>{s("x")}</p></div></wtext>', "## PartB 3\n\nx")
    assert convert("<wtext><div><head><s><w>a\n</w><w>b</w></s></head></div></wtext>", "corrected") == "## a b"


def test_a_division_without_any_name_is_a_line_of_hash_signs_as_published_only() -> None:
    each(f"<wtext><div><p>{s('x')}</p></div></wtext>", "##\n\nx", "x")


def test_dotted_numbers_join_those_of_the_divisions_around_that_have_one() -> None:
    inner = '<div level="4" n="9" type="d"/>'
    body = (
        f'<div level="1" n="1" type="a"><div level="2" n="b" type="b"><div level="3" type="c">{inner}</div></div></div>'
    )
    both(f"<wtext>{body}</wtext>", "## A 1\n\n### B 1.b\n\n#### C\n\n##### D 1.b.9")


def test_an_empty_number_below_a_numbered_division_leaves_its_full_stop_as_published_only() -> None:
    each('<wtext><div n="1" type="a"><div n=""/></div></wtext>', "## A 1\n\n## 1.", "## A 1")


def test_a_caption_in_second_place_of_a_division_is_a_paragraph() -> None:
    both(
        f'<wtext><div type="a"><p type="caption:x">{s("One")}</p><p type="caption:x">{s("Two")}</p></div></wtext>',
        "## One\n\nTwo",
    )


def test_second_heads_are_lost_as_published_only() -> None:
    one, two, three = (f"<head>{s(word)}</head>" for word in ("One", "Two", "Three"))
    body = f"<wtext><div>{one}{two}<p>{s('x')}</p>{three}</div></wtext>"
    each(body, "## One\n\nx", "## One\n\nTwo\n\nx\n\nThree")
    rejections = Rejections()
    convert(body, "as_published", rejections)
    assert rejections.counts == {"element <head> left out": 2}


def test_sentences_of_a_head_are_glued_as_published_only() -> None:
    each(f"<wtext><div><head>{s('one')}{s('two')}</head></div></wtext>", "## onetwo", "## one two")


def test_quote_marks_its_first_line_and_nests() -> None:
    both(f"<wtext><quote>{s('One.')}{s('Two.')}</quote></wtext>", "> One.\nTwo.")
    both(f"<wtext><quote><p>{s('a')}</p><quote>{s('b')}</quote></quote></wtext>", "> a\n\n> > b")


def test_a_quote_cuts_its_paragraph_into_three_blocks() -> None:
    both(f"<wtext><p>{s('a')}<quote>{s('b')}</quote>{s('c')}</p></wtext>", "a\n\n> b\n\nc")


def test_each_line_of_verse_is_a_block() -> None:
    both(f"<wtext><lg><lg><l>{s('a')}</l><l>{s('b')}{s('c')}</l></lg></lg><l>{s('d')}</l></wtext>", "a\n\nb\nc\n\nd")


def test_the_head_of_a_poem_is_lost_as_published_only() -> None:
    each(f"<wtext><lg><head>{s('Name')}</head><l>{s('a')}</l></lg></wtext>", "a", "Name\n\na")


def test_list_with_head_labels_and_items() -> None:
    items = f"<label><w>a</w><c>)</c></label><item>{s('x')}</item><item>{s('y')}{s('z')}</item>"
    both(f"<wtext><list><head>{s('Take')}</head>{items}</list></wtext>", "Take:\n\n- a) x\n\n- y\nz")


def test_a_list_head_that_ends_in_a_colon_gets_a_second_one_as_published_only() -> None:
    each(f"<wtext><list><head>{s('Take:')}</head></list></wtext>", "Take::", "Take:")


def test_an_empty_list_head_or_speaker_leaves_its_colon_as_published_only_which_is_inferred() -> None:
    each("<wtext><list><head/></list></wtext>", ":", "")
    each(f"<wtext><sp><speaker/><p>{s('x')}</p></sp></wtext>", ": 'x'", "'x'")


def test_a_label_belongs_to_the_next_item_only_and_is_counted_without_one() -> None:
    label = "<label><w>a</w></label>"
    body = f"<wtext><list>{label}<note/><item>{s('x')}</item>{label}{label}<item>{s('y')}</item>{label}</list></wtext>"
    for reading in READINGS:
        rejections = Rejections()
        assert convert(body, reading, rejections) == "- a x\n\n- a y"
        assert rejections.counts == {"<label> without text behind it left out": 2}


def test_an_empty_label_leaves_no_second_space_behind_the_mark() -> None:
    body = "<wtext><list><label/><item><s><c>!</c></s></item></list></wtext>"
    both(body, "- !")


def test_a_division_inside_an_item_quote_or_speech_keeps_what_stands_around_it_as_published_only() -> None:
    inner = '<div level="4" type="chapter"/>'
    each(f"<wtext><sp><p>{inner}</p></sp></wtext>", "'##### Chapter'\n\n''", "##### Chapter")
    each(f"<wtext><quote>{inner}</quote></wtext>", "> ##### Chapter\n\n>", "##### Chapter")
    each(f"<wtext><list><item>{inner}</item></list></wtext>", "- ##### Chapter\n\n-", "##### Chapter")
    full = f'<div level="2" type="chapter"><p>{s("a")}</p></div>'
    each(f"<wtext><quote>{full}</quote></wtext>", "> ### Chapter\n\n> a\n\n>", "### Chapter\n\n> a")
    speech = f"<sp><speaker>{s('BOB')}</speaker><p>{full}</p></sp>"
    each(f"<wtext>{speech}</wtext>", "BOB: '### Chapter'\n\nBOB: 'a'\n\nBOB: ''", "### Chapter\n\nBOB: 'a'")


def test_item_marks_accumulate_as_published_only() -> None:
    inner = f"<list><label><w>x</w></label><item>{s('inner')}</item><item>{s('two')}</item></list>"
    body = f"<wtext><list><label><w>iv</w></label><item>{s('before')}{inner}{s('after')}</item></list></wtext>"
    each(
        body,
        "- iv before\n\n- x - iv inner\n\n- - iv two\n\n- iv after",
        "- iv before\n\n- x inner\n\n- two\n\nafter",
    )


def test_the_mark_of_an_item_and_the_marks_of_quotes() -> None:
    item = f"<list><label><w>a</w></label><item>{s('x')}</item></list>"
    each(f"<wtext><quote>{item}</quote></wtext>", "- a > x", "> - a x")
    each(f"<wtext><list><item><quote>{s('x')}</quote></item></list></wtext>", "> - x", "- > x")


def test_a_paragraph_inside_an_item_is_part_of_it() -> None:
    both(f"<wtext><list><item><p>{s('x')}</p></item></list></wtext>", "- x")


def test_a_speech_has_its_speaker_and_quotation_marks() -> None:
    body = f"<sp><speaker><w>WIDOW</w></speaker><p>{s('One.')}{s('Two.')}</p><l>{s('three')}</l></sp>"
    both(f"<wtext>{body}</wtext>", "WIDOW: 'One.\nTwo.'\n\nWIDOW: 'three'")


def test_a_speech_without_speaker_has_quotation_marks_only() -> None:
    both(f"<wtext><sp><stage>{s('Enter.')}</stage><p>{s('One.')}</p></sp></wtext>", "Enter.\n\n'One.'")


def test_a_stage_direction_in_a_speech_has_the_name_and_no_quotation_marks() -> None:
    body = f"<sp><speaker><w>A</w></speaker><stage>{s('Exit.')}</stage><pb/><gap/></sp>"
    both(f"<wtext>{body}</wtext>", "A: Exit.")


def test_a_speaker_with_a_colon_gets_a_second_one_as_published_only() -> None:
    each(f"<wtext><sp><speaker><w>A :</w></speaker><p>{s('x')}</p></sp></wtext>", "A:: 'x'", "A: 'x'")


def test_a_quote_inside_a_speech_and_a_speech_inside_a_quote() -> None:
    speaker = "<speaker><w>A</w></speaker>"
    both(f"<wtext><sp>{speaker}<p>{s('a')}<quote>{s('b')}</quote></p></sp></wtext>", "A: 'a'\n\n> A: 'b'")
    both(f"<wtext><quote><sp>{speaker}<p>{s('a')}</p></sp></quote></wtext>", "> A: 'a'")
    both(f"<wtext><quote><sp>{speaker}<stage>{s('a')}</stage></sp></quote></wtext>", "> A: a")


def test_a_speech_inside_the_item_of_a_list_stands_behind_its_mark() -> None:
    speech = f"<sp><speaker><w>A</w></speaker><p>{s('a')}</p></sp>"
    both(f"<wtext><list><item>{speech}</item></list></wtext>", "- A: 'a'")
    labelled = f"<list><label><w>x</w></label><item>{speech}</item></list>"
    both(f"<wtext>{labelled}</wtext>", "- x A: 'a'")
    each(f"<wtext><quote>{labelled}</quote></wtext>", "- x > A: 'a'", "> - x A: 'a'")


def test_a_stage_direction_in_a_paragraph_of_a_speech_is_lost_as_published_only() -> None:
    stage = f"<stage>{s('Exit.')}</stage>"
    inside = f"<sp><speaker><w>A</w></speaker><p>{s('One.')}{stage}{s('Two.')}</p></sp>"
    body = f"<wtext>{inside}</wtext>"
    each(body, "A: 'One.'\n\nA: 'Two.'", "A: 'One.'\n\nA: Exit.\n\nA: 'Two.'")
    rejections = Rejections()
    convert(body, "as_published", rejections)
    assert rejections.samples == {"stage direction in a paragraph of a speech left out": ["Exit."]}
    rejections = Rejections()
    convert(body, "corrected", rejections)
    assert not rejections.counts
    verse = f"<sp><speaker><w>A</w></speaker><l>{s('One')}{stage}</l></sp>"
    assert convert(f"<wtext><quote>{verse}</quote></wtext>", "corrected") == "> A: 'One'\n\n> A: Exit."
    assert convert(f"<wtext><sp><p>{stage}</p></sp></wtext>", "corrected") == "Exit."


def test_a_speaker_who_says_nothing_is_counted() -> None:
    rejections = Rejections()
    assert convert("<wtext><sp><speaker><w>A</w></speaker><p/></sp></wtext>", "corrected", rejections) == ""
    assert rejections.counts == {"<speaker> without text behind it left out": 1}


@pytest.mark.parametrize(
    "place", ["<wtext>{}</wtext>", "<wtext><p>{}</p></wtext>", "<wtext><div type='a'>{}</div></wtext>"]
)
def test_a_stage_direction_outside_a_speech_is_left_out_and_counted(place: str) -> None:
    for reading in READINGS:
        rejections = Rejections()
        convert(place.format(f"<stage>{s('Curtain.')}</stage>"), reading, rejections)
        assert rejections.samples == {"stage direction outside a speech left out": ["Curtain."]}


@pytest.mark.parametrize("tag", ["note", "bibl", "pb", "gap"])
@pytest.mark.parametrize("place", ["<p>{}</p>", "<list>{}</list>", "<sp>{}</sp>", "<div type='a'>{}</div>", "{}"])
def test_notes_references_page_breaks_and_gaps_between_sentences_are_left_out(tag: str, place: str) -> None:
    for reading in READINGS:
        rejections = Rejections()
        inside = place.format(f"<{tag}>{s('lost')}{s('words')}</{tag}>")
        page = convert(f"<wtext>{inside}</wtext>", reading, rejections)
        assert page == ("## A" if "div" in place else "")
        assert rejections.samples == {f"element <{tag}> left out": ["lost words"]}
        rejections = Rejections()
        convert("<wtext>" + place.format(f"<{tag}/>") + "</wtext>", reading, rejections)
        assert not rejections.counts


def test_a_page_break_cuts_its_paragraph() -> None:
    both(f"<wtext><p>{s('a')}<pb/>{s('b')}</p></wtext>", "a\n\nb")


def test_lists_verse_and_speeches_inside_a_paragraph_are_blocks() -> None:
    body = f"<lg><l>{s('b')}</l></lg><list><item>{s('c')}</item></list><sp><p>{s('d')}</p></sp>"
    both(f"<wtext><p>{s('a')}{body}{s('e')}</p></wtext>", "a\n\nb\n\n- c\n\n'd'\n\ne")


def test_a_block_is_cleaned_as_a_whole() -> None:
    both("<wtext><p>" + s('He " said') + s('yes "') + "</p></wtext>", 'He "said\nyes"')


# Spoken texts.


def test_line_breaks_at_the_ends_of_a_block_count_while_it_is_cleaned_as_published_only() -> None:
    each("<wtext><p><s><w>B </w><w>'ll </w><w>\n</w></s></p></wtext>", "B'll", "B 'll")
    each("<wtext><p><s><w>\n</w><c>... .</c></s></p></wtext>", "... .", "....")


def test_a_turn_has_the_name_of_its_speaker_and_its_sentences_in_quotation_marks() -> None:
    both(f'<stext><u who="P1">{s("One.")}{s("Two.")}</u></stext>', "Ada: 'One.\nTwo.'")


def test_an_unlisted_speaker_gets_a_drawn_name() -> None:
    both(f'<stext><u who="P9">{s("One.")}</u></stext>', "Drawn: 'One.'")


def test_spoken_divisions_have_their_own_number_only() -> None:
    inner = f'<div level="2" n="2" type="part"><u who="P1">{s("a")}</u></div>'
    both(f'<stext><div n="010101">{inner}</div></stext>', "## 010101\n\n### Part 2\n\nAda: 'a'")
    both(f"<stext><div><head>{s('Name')}</head></div></stext>", "## Name")


def test_a_head_of_a_spoken_text_at_which_the_published_converter_stops_is_read_on() -> None:
    both(f"<stext><div><head>{s('a')}</head><u who='P1'>{s('x')}</u></div></stext>", "## a\n\nAda: 'x'")


def test_second_heads_of_spoken_divisions_are_left_out_in_the_published_reading_as_in_written_texts() -> None:
    each(f"<stext><div><head>{s('a')}</head><head>{s('b')}</head></div></stext>", "## a", "## a\n\nb")


@pytest.mark.parametrize("tag", ["event", "pause", "shift", "trunc", "unclear", "vocal", "align", "gap"])
def test_what_is_not_a_sentence_in_a_conversation_is_dropped(tag: str) -> None:
    for place in ("<stext>{}</stext>", '<stext><u who="P1">{}</u></stext>', '<stext><div type="a">{}</div></stext>'):
        for reading in READINGS:
            rejections = Rejections()
            page = convert(place.format(f"<{tag}><w>lost</w></{tag}>"), reading, rejections)
            assert page in ("", "## A")
            assert rejections.samples[f"element <{tag}> left out"] == ["lost"]


def test_an_event_inside_a_turn_does_not_cut_it() -> None:
    both(f'<stext><u who="P1">{s("a")}<event/>{s("b")}</u></stext>', "Ada: 'a\nb'")


@pytest.mark.parametrize(
    ("inside", "kept"), [("<c>...</c>", ""), ("", ""), ("<unclear/>", "Ada: '[UNK]'"), ("<w>7</w>", "Ada: '7'")]
)
def test_a_turn_is_kept_when_it_has_a_letter_or_digit(inside: str, kept: str) -> None:
    for reading in READINGS:
        rejections = Rejections()
        assert convert(f'<stext><u who="P1"><s>{inside}</s></u></stext>', reading, rejections) == kept
        assert rejections.counts["turn without a letter or digit left out"] == (inside == "<c>...</c>")
