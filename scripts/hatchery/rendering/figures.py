"""What is known of a figure beside its drawing: a declaration in the figure's file (`FIGURE`), which all readers share.

Snakemake plans with the declarations, and Matplotlib takes half a second to load. So they can be read from the files
without running them, and all values of a declaration are literals.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEGINNING, END = "\nFIGURE = Declaration(\n", "\n)\n"


@dataclass(frozen=True)
class Declaration:
    """What everybody but the code that draws it needs to know of a figure; its name is that of its file.

    `title` stands in the file. `caption` is what pages say below the figure, and its text for those who cannot see it;
    sentences of `also` follow where they are true. `explanation` can be folded out below (paragraphs, in which `this`
    is code). `published` says that the figure marks published values. `needs` are the kinds of results that it draws;
    a figure without them is drawn by the stage that has its numbers, whose version counts. One
    that tells its models apart shows the first of many; `all_models` says that it shows all, `by_set` that it does
    so where its models are in sets of a grid, whose colours they have then.
    Raise the version when the code of the figure draws something else.
    """

    title: str
    caption: str
    needs: tuple[str, ...] = ()
    all_models: bool = False
    by_set: bool = False
    version: int = 1
    explanation: str = ""
    published: bool = False
    also: Mapping[str, str] = field(default_factory=dict)

    def caption_with(self, *true: str) -> str:
        """The caption with those of the sentences of `also` that are true."""
        return " ".join([self.caption, *(self.also[name] for name in true)])

    @property
    def told(self) -> str:
        """All that a page says of the figure."""
        return f"{self.caption}\n{self.explanation}"

    @property
    def paragraphs(self) -> list[str]:
        """The explanation by paragraphs."""
        return [" ".join(part.split()) for part in self.explanation.split("\n\n") if part.strip()]


def declaration_in(path: Path) -> Declaration | None:
    """The value of `FIGURE` in a file; None where it has none. Raises ValueError where it is not made of literals."""
    _, found, rest = path.read_text(encoding="utf-8").partition(BEGINNING)
    if not found:
        return None
    call = ast.parse(f"Declaration(\n{rest.partition(END)[0]}{END}", mode="eval").body
    assert isinstance(call, ast.Call)
    return Declaration(**{str(keyword.arg): _literal(keyword, path) for keyword in call.keywords})


def _literal(keyword: ast.keyword, path: Path) -> Any:
    try:
        return ast.literal_eval(keyword.value)
    except ValueError as error:
        raise ValueError(f"{path}: FIGURE: {keyword.arg}: expected a literal, got {ast.unparse(keyword)}") from error
