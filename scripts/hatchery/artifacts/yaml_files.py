"""A YAML reader that follows YAML 1.2 and refuses duplicate keys: `1e-3` is a number, and `no` is text.

In two points the reader differs from YAML 1.2: `True`, `.inf`, `0o7` and `0x7` are text, and an integer that begins
with 0 is an error.

PyYAML follows YAML 1.1, in which `1e-3` is text, `no` is a boolean and `12:30` is the number 750. If a mapping contains
a key twice, PyYAML silently uses the second value. Each of these rules of PyYAML can change a training run unnoticed.
"""

import math
import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser
from yaml.events import AliasEvent
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from hatchery.errors import ConfigError, first_line

DEEPEST = 50
"""Maximum depth of nesting. Configuration files have about ten levels; without a limit, a deeply nested file would
raise RecursionError.
"""
MOST_REPEATED = 100_000
"""Maximum number of values that all aliases of a file together may repeat. Without a limit, ten nested lines with ten
aliases each would become ten billion values.
"""
LONGEST_NUMBER = 18
"""Maximum number of characters of an integer, so that it fits into 64 bits."""


class _Rules(Composer, SafeConstructor, Resolver):
    """Rules for safe loading with the scalar types that the module's docstring describes.

    Duplicate keys, too deep nesting, and aliases that repeat too many values are errors.
    """

    def __init__(self) -> None:
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._depth = self._values = self._repeated = 0
        # Number of values below each node, including the values that aliases below the node repeat.
        self._sizes: dict[Any, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node. Raises ComposerError if the nesting is too deep, or if aliases repeat too many
        values.
        """
        self._depth += 1
        mark, before, is_alias = self.peek_event().start_mark, self._values, self.check_event(AliasEvent)
        if self._depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"nested more than {DEEPEST} levels deep", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._values += self._sizes.get(node, 1) if is_alias else 1
        if is_alias:
            self._repeated += self._values - before
        else:
            self._sizes[node] = self._values - before
        if self._repeated > MOST_REPEATED:
            problem = (
                f"aliases repeat more than {MOST_REPEATED:,} values; use fewer aliases, or anchors with fewer values"
            )
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return node


_Rules.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in ("tag:yaml.org,2002:null",)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Rules.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Rules.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Rules.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


def _construct_integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    if len(text) > LONGEST_NUMBER:
        raise yaml.constructor.ConstructorError(
            None, None, f"a number of {len(text)} digits, expected at most {LONGEST_NUMBER}", node.start_mark
        )
    if len(digits := text.lstrip("+-")) > 1 and digits[0] == "0":
        problem = f"a number that begins with 0, which YAML 1.1 reads as octal: {text}; write {int(text)}"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return int(text)


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node)
    if not math.isfinite(value := float(text)):
        problem = f"the number {text[:20]} is too large, expected at most 1.8e308"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return value


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} is not text; put quotation marks around the key", key_node.start_mark
            )
        if blank := _blank(key):
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key.strip()!r} contains {blank}", key_node.start_mark
            )
        if key in mapping:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} occurs twice", key_node.start_mark)
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


def _construct_text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    text: str = loader.construct_scalar(node)
    # Unusual space characters are allowed inside unquoted text, such as a description, because authors write them on
    # purpose. At the ends of the text, or after a key and a colon, they are an error: YAML would read key and colon as
    # part of the text.
    after_key = re.match(r"[\w.-]+:(.)", text)
    if not node.style and (blank := _blank(text[:1] + text[-1:] + (after_key[1] if after_key else ""))):
        raise yaml.constructor.ConstructorError(
            None,
            None,
            f"the value {text.strip()!r} contains {blank}, or put quotation marks around the value",
            node.start_mark,
        )
    return text


def _blank(text: str) -> str:
    """Return a message about the first character of `text` that looks like a space but is not a space in YAML.

    Empty if `text` has no such character.
    """
    found = next((c for c in text if (c.isspace() and not c.isascii()) or c in "\u200b\ufeff"), None)
    if found is None:
        return ""
    name = unicodedata.name(found, "a blank").lower()
    return f"U+{ord(found):04X} ({name}) instead of a space; write a normal space"


def _blank_before(text: str, mark: Any) -> str:
    """Return a message about the first line with a character that looks like a space but is not a space in YAML.

    Only lines up to the line of `mark` are searched. Empty if no line has such a character.
    """
    lines = text.split("\n")[: mark.line + 1] if mark else []
    return next((f"; line {n} has {blank}" for n, line in enumerate(lines, 1) if (blank := _blank(line))), "")


_Rules.add_constructor("tag:yaml.org,2002:str", _construct_text)
_Rules.add_constructor("tag:yaml.org,2002:int", _construct_integer)
_Rules.add_constructor("tag:yaml.org,2002:float", _construct_float)
_Rules.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


class _Loader(_Rules, CParser):
    """Parser that uses libyaml. PyYAML's wheels contain libyaml, which is five times as fast as PyYAML's Python
    parser.
    """

    def __init__(self, stream: str) -> None:
        CParser.__init__(self, stream)
        _Rules.__init__(self)


class _Explainer(_Rules, Reader, Scanner, Parser):
    """PyYAML's parser in Python. Its error messages are more precise: they name the character and the unexpected
    token.
    """

    def __init__(self, stream: str) -> None:
        Reader.__init__(self, stream)
        Scanner.__init__(self)
        Parser.__init__(self)
        _Rules.__init__(self)


def _loaded(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        return yaml.load(text, Loader=_Explainer)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Return the content of a YAML file whose top level is a mapping; an empty file is an empty mapping.

    Raises ConfigError, which names file, line and problem.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}") from error
    value = yaml_value(text, str(path))
    if value is None:
        return {}
    if not isinstance(value, dict):
        cause = f"; it has {blank}" if isinstance(value, str) and (blank := _blank(value)) else ""
        raise ConfigError(f"{path}: expected keys with values at the top level, got {type(value).__name__}{cause}")
    return value


def yaml_value(text: str, where: str) -> Any:
    """Return the value of a YAML text. Raises ConfigError, which states `where` (for example a file), line and
    problem.
    """
    try:
        return _loaded(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}" if mark else where
        # If a second YAML document begins in the text, PyYAML divides its message into two texts, which are joined
        # here.
        problem = f"{error.context}, {error.problem}" if str(error.problem).startswith("but ") else error.problem
        cause = "" if isinstance(error, yaml.constructor.ConstructorError) else _blank_before(text, mark)
        raise ConfigError(f"{place}: {problem or error.context}{cause}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not YAML: {first_line(error)}") from error
