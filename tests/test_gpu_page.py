"""docs/gpu.md lists every place of the code that asks what device it is on, and says of each whether it was tried."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = REPOSITORY / "scripts"
PAGE = REPOSITORY / "docs" / "gpu.md"
# What the code for one kind of device is told by.
ASKS = re.compile(
    r"\b(device|to)\.type\b|\bdevice_type\b|\btorch\.cuda\b|[\"']cuda[\"']|[\"']nccl[\"']|\bfused=|\bcan_look\("
    r"|\bautocast\(|\bis_compiling\(|\bpin_memory\b|\bnon_blocking\b"
)
LISTED = re.compile(r"^\| `([\w/]+\.py)` `([\w.<>]+)` \| .+ \| (.+) \|$", re.M)
VERDICT = re.compile(r"untried|tried on .+, \d{4}-\d\d-\d\d")


def code_lines(source: str) -> dict[int, str]:
    """The code of every line by its number; comments and strings of several words are no code."""
    lines: dict[int, str] = {}
    end = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string)
        if not is_text and token.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            space = " " if token.start[0] == end[0] and token.start[1] > end[1] else ""
            lines[token.start[0]] = lines.get(token.start[0], "") + space + token.string
        end = token.end
    return lines


def places(source: str) -> set[str]:
    """The innermost functions, methods and classes with a line that asks."""
    owners: dict[int, str] = {}

    def visit(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = above
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{above}.{child.name}".lstrip(".")
                owners.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), name))
            visit(child, name)

    visit(ast.parse(source), "")
    return {owners.get(number, "<module>") for number, line in code_lines(source).items() if ASKS.search(line)}


def in_the_code() -> set[tuple[str, str]]:
    found = set()
    for path in SCRIPTS.rglob("*.py"):
        root = SCRIPTS / "hatchery" if SCRIPTS / "hatchery" in path.parents else SCRIPTS
        for place in places(path.read_text(encoding="utf-8")):
            found.add((path.relative_to(root).as_posix(), place))
    return found


def test_every_branch_for_a_device_is_listed_as_tried_or_untried() -> None:
    rows = LISTED.findall(PAGE.read_text(encoding="utf-8"))
    listed = {(file, place) for file, place, _ in rows}
    assert len(rows) == len(listed), "docs/gpu.md lists a place twice"
    found = in_the_code()
    assert sorted(found - listed) == [], "docs/gpu.md does not list these places"
    assert sorted(listed - found) == [], "docs/gpu.md lists these places, which do not ask any more"
    assert [row for row in rows if not VERDICT.fullmatch(row[2])] == []


@pytest.mark.parametrize(
    "line",
    ['if tensor.device.type != "cpu":', "torch.cuda.synchronize()", "AdamW(groups, fused=True)", "x.pin_memory()"],
)
def test_a_branch_is_found_by_its_function_and_not_in_texts(line: str) -> None:
    source = f'"""It asks torch.cuda here."""\nclass A:\n    def b(self):\n        # torch.cuda\n        {line}'
    source += "\n            pass\n" if line.endswith(":") else "\n"
    assert places(source) == {"A.b"}
