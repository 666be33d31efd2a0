"""One table as CSV, Markdown, HTML, LaTeX and terminal text: equal contents, escaped by the rules of each form."""

import csv
import io
import json
import re

import pytest
from markdown_it import MarkdownIt
from markupsafe import Markup

from hatchery.errors import ConfigError
from hatchery.rendering.escaping import breakable, latex_text, listed, markdown_text
from hatchery.rendering.table import (
    Cell,
    Column,
    Group,
    Row,
    Table,
    as_json,
    divided,
    from_json,
    latex_of_files,
    table,
)

SCORES = Table(
    [Column("model", words=True), Column("a | b"), Column("1_000 words of a long heading")],
    [
        Group([["base", Cell("51.5", "0.3", bold=True), "5-9"]]),
        Group([["elc", Cell("-", remark="0/5"), Cell("-1.0", comparable=False)]], heading="zero & one"),
    ],
    caption="What 100% say.",
    notes=("Not <b>bold</b>", "`Done`."),
)


def test_markdown_has_sides_groups_and_marks() -> None:
    assert SCORES.markdown().splitlines() == [
        r"| model | a \| b | 1_000 words of a long heading |",
        "| :-- | --: | --: |",
        "| base | **51.5** ± 0.3 | 5-9 |",
        "| **zero & one** |  |  |",
        "| elc | - (0/5) | -1.0† |",
    ]
    assert "<strong>51.5</strong>" in MarkdownIt("gfm-like", {"linkify": False}).render(SCORES.markdown())


def test_columns_line_up_in_the_file_where_that_is_asked_for() -> None:
    lines = table(["model", "time"], [["a", "8 h 13 min"], ["a longer name", "-"]]).markdown(aligned=True).splitlines()
    assert lines == [
        "| model         |       time |",
        "| :------------ | ---------: |",
        "| a             | 8 h 13 min |",
        "| a longer name |          - |",
    ]


def test_latex_has_the_same_numbers_and_no_command_that_was_not_meant() -> None:
    text = SCORES.latex("Paper, Table 1", "paper-1")
    assert r"\caption{What 100\% say (Paper, Table 1).}" in text
    assert r"base & \textbf{51.5} {\tiny $\pm$ 0.3} & 5--9 \\" in text
    assert r"elc & -- {\tiny (0/5)} & $-$1.0\textsuperscript{\dag} \\" in text
    assert r"\multicolumn{3}{l}{\textit{zero \& one}}" in text
    assert r"\shortstack[r]{1\_000 words of a \\ long heading}" in text
    assert r"Not \textless{}b\textgreater{}bold\textless{}/b\textgreater{}. Done." in text
    with pytest.raises(ConfigError, match="字, for which no LaTeX command is known"):
        table(["字"], []).latex("t", "t")
    assert table(["字"], [], caption="Two 字").latex_or_reason("t", "t").startswith("% Two ?: not written: ")
    assert table(["a"], [], caption="c").latex_or_reason("t", "t") == table(["a"], [], caption="c").latex("t", "t")


HOSTILE = r"\input{/etc/passwd}%$&~^_#"


def test_latex_has_no_command_in_any_part_of_a_cell_nor_at_the_beginning_of_a_row() -> None:
    rows = [[Cell(HOSTILE), Cell(HOSTILE, remark="4/5 & x")], ["*star", "1"], ["[x]", "2"]]
    text = table(["m", "n"], rows).latex("t", "t")
    assert r"\input{/etc" not in text and text.count(r"\textbackslash{}input\{/etc/passwd\}\%\$\&") == 2
    assert r"{\tiny (4/5 \& x)}" in text
    assert "{*star} & 1" in text and "{[x]} & 2" in text
    with pytest.raises(ConfigError, match="for which no LaTeX command is known"):
        table(["m"], [["\x1b[31m"]]).latex("t", "t")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & 5% of $3 {x}", r"a\_b \& 5\% of \$3 \{x\}"),
        ("~ ^ \\ #1", r"\textasciitilde{} \textasciicircum{} \textbackslash{} \#1"),
        ("1 ± 2 † “x”", r"1 $\pm$ 2 \dag{} ``x''"),
        ("één Ü ç ñ Å č", r"{\'{e}}{\'{e}}n {\"{U}} {\c{c}} {\~{n}} {\r{A}} {\v{c}}"),
    ],
)
def test_signs_have_their_commands(text: str, latex: str) -> None:
    assert latex_text(text) == latex


def test_markup_in_text_of_our_own_is_escaped() -> None:
    assert markdown_text("a|b *c* <d>\ne", foreign=False) == r"a\|b \*c\* \<d> e"


def test_code_that_would_end_its_span_or_its_cell_is_text_and_nothing_steers_a_terminal() -> None:
    rows = [[Cell("learning_rate", code=True)], [Cell("`<b>` | x", code=True)], ["\x1b[2Jname\u202e"]]
    assert table(["a"], rows).markdown().splitlines()[2:] == [
        "| `learning_rate` |",
        r"| \`\<b>\` \| x |",
        "| \ufffd[2Jname\ufffd |",
    ]


def test_html_escapes_everything_but_markup_and_names_its_columns() -> None:
    rows = [Row([Cell("<i>", link='a"b', spoken="<s>", code=True), Markup("<em>x</em>")], anchor="r<1")]
    text = table(["m_n", "x"], rows, label="l").html()
    assert '<tr id="r&lt;1"><th scope="row"><a href="a&#34;b" title="&lt;s&gt;"><code>&lt;i&gt;</code></a></th>' in text
    assert "<td><em>x</em></td>" in text
    assert 'aria-label="l"' in text
    assert "<caption>" not in text
    assert "learning_<wbr>rate" in table(["k", "v"], [["learning_rate", "1"]], names=True).html()


def test_html_has_deviations_remarks_headings_of_groups_and_the_kind_of_each_column() -> None:
    text = SCORES.html()
    assert "<strong>51.5</strong> <small>± 0.3</small></td><td>5-9</td>" in text
    assert "- <small>(0/5)</small></td><td>-1.0†</td>" in text
    assert '<th colspan="3" scope="rowgroup" dir="auto">zero &amp; one</th>' in text.replace("\n", "")
    assert re.findall(r'<th scope="col" class="(\w+)">', text) == ["words", "number", "number"]
    assert "<caption>What 100% say.</caption>" in text and '<table class="' not in text
    worded = Table([Column("a", words=True)] * 2, [Group([["x", "y"]])], kind="scores").html()
    assert '<table class="scores">' in worded and '<td class="words">y</td>' in worded


def test_cells_of_tables_too_wide_for_a_phone_say_their_columns() -> None:
    assert '<td data-label="&lt;d&gt;">4</td>' in table(["a", "b", "c", "<d>"], ["1234"]).html()
    named = table(["a", "b", "c", breakable("x_y")], ["1234"]).html({str(breakable("x_y")): "#123456"})
    assert '<td data-label="x_y"><span class="swatch phone" style="background: #123456"' in named
    assert "data-label" not in table(["a", "b", "c"], ["123"]).html()


def test_markup_has_no_other_form_than_html() -> None:
    with pytest.raises(TypeError, match="can only be shown as HTML"):
        table(["a"], [[Markup("<b>x</b>")]]).markdown()


def test_csv_is_harmless_and_holds_the_texts_alone() -> None:
    found = list(csv.reader(io.StringIO(table(["a", "b"], [["=1+1", Cell("2", "1", bold=True)]]).csv())))
    assert found == [["a", "b"], ["'=1+1", "2"]]


def test_a_terminal_has_columns_of_given_widths() -> None:
    lines = table(["model", "score"], [["a_name_that_is_long", "51.5"]]).text([10, 8])
    assert lines == ["model        score", "a_name_t..    51.5"]
    # A number keeps the gap of two spaces before it.
    assert table(["m", "n"], [["a", "12345678"]]).text([3, 8])[1] == "a    1234.."


def test_a_table_that_was_written_as_json_is_read_back() -> None:
    read = from_json(json.loads(json.dumps(as_json(SCORES))))
    assert read.html() == SCORES.html()
    assert read.markdown() == SCORES.markdown()
    assert read.latex("t", "l") == SCORES.latex("t", "l")


def test_a_long_list_is_divided_into_parts_of_about_equal_size() -> None:
    assert [len(part) for part in divided(range(13), 6)] == [4, 5, 4]
    assert divided([], 6) == []


def test_a_latex_table_of_more_than_forty_rows_is_limited_in_height_and_has_small_notes() -> None:
    for rows, is_long in ((40, False), (41, True)):
        made = Table([Column("a", words=True)], [Group([["x"]] * rows)], caption="c", notes=("A note",))
        text = made.latex("t", "l")
        assert (r"0.75\textheight" in text) == is_long
        assert (r"{\linewidth}\tiny A note.\end{minipage}" in text) == is_long
        assert text.count("{") == text.count("}")


def test_a_latex_column_of_more_than_sixty_characters_shares_most_of_the_width() -> None:
    def sides(*lengths: int) -> str:
        text = table("abc"[: len(lengths)], [["x" * length for length in lengths]], words=2).latex("t", "l", wrap=True)
        return text.partition(r"\begin{tabular}")[2].splitlines()[0]

    assert sides(60, 61, 61) == r"{lp{0.80\linewidth}r}"
    assert sides(61, 61) == r"{p{0.40\linewidth}p{0.40\linewidth}}"


def test_a_document_of_tables_counts_them_as_the_paper_does() -> None:
    text = latex_of_files([("first", 3), ("second", 7)])
    body = text.partition(r"\begin{document}")[2].split()
    assert body == [
        *(r"\setcounter{table}{2}", r"\input{first.tex}", r"\clearpage"),
        *(r"\setcounter{table}{6}", r"\input{second.tex}", r"\clearpage", r"\end{document}"),
    ]


def test_records_name_the_group_and_negative_indices_of_columns_count_from_the_end() -> None:
    assert SCORES.records()[1] == {"group": "zero & one", "model": "elc", "a | b": "-", SCORES.headings[2]: "-1.0"}
    assert [column.words for column in table(["a", "b", "c"], [], words=(0, -1)).columns] == [True, False, True]
    assert table(["a"], [["x"]], caption="1. b").captioned_markdown().splitlines()[:3] == ["1\\. b", "", "| a |"]


def test_one_name_is_listed_alone_and_two_are_joined() -> None:
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
