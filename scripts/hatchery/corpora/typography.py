"""Punctuation in one spelling, and characters that an earlier conversion damaged.

Source: the rule list of the Moses punctuation normaliser as described in LTG-BERT's reference section 1.6 (d), written
anew, and a small repair of encodings (section 1.6 e): mojibake of UTF-8 read as Windows-1252, HTML entities, curly
quotes, ligatures, full-width forms, control characters, NFC.
"""

import html
import re
import unicodedata

_NO_BREAK = "\u00a0"

# Step 1 of the normaliser: brackets, per cent signs, colons.
_BRACKETS = (
    (re.compile(r"\("), " ("),
    (re.compile(r"\)"), ") "),
    (re.compile(r" +"), " "),
    (re.compile(r"\) ([.!:?;,])"), r")\1"),
    (re.compile(r"\( "), "("),
    (re.compile(r" \)"), ")"),
    (re.compile(r"(\d) %"), r"\1%"),
    (re.compile(r" ([:;])"), r"\1"),
)
_HAS_BRACKETS = re.compile(r"[()%:;]|  ")
# Steps 2 and 3: quotes, dashes, dots.
_CHARACTERS = str.maketrans(
    {"„": '"', "“": '"', "”": '"', "–": "-", "—": " - ", "´": "'", "‘": "'", "’": "'", "‚": "'"}
)
_GUILLEMETS = re.compile(rf"«{_NO_BREAK}|«|{_NO_BREAK}»|»")
_NO_BREAK_BEFORE_MARK = re.compile(rf"{_NO_BREAK}([%:?!;])")
_NO_BREAK_AFTER_COMMA = re.compile(rf",{_NO_BREAK}")
_QUOTE_BEFORE_STOP = re.compile(r'"([,.]+)')
_NO_BREAK_IN_NUMBER = re.compile(rf"(\d){_NO_BREAK}(\d)")
_NEEDS_NORMALISING = re.compile(rf"[()%:;„“”–—´‘’‚…«»{_NO_BREAK}\r]|  |''|\"[,.]")


def normalise_punctuation(text: str) -> str:
    """Typographic quotes and dashes as ASCII, quotes after full stops, no spaces inside brackets; stripped."""
    if not _NEEDS_NORMALISING.search(text):
        return text.strip()
    text = text.replace("\r", "")
    if _HAS_BRACKETS.search(text):
        for pattern, replacement in _BRACKETS:
            text = pattern.sub(replacement, text)
    text = text.replace("´´", '"').translate(_CHARACTERS)
    text = text.replace("''", '"').replace("…", "...")
    if text.isascii():
        return _QUOTE_BEFORE_STOP.sub(r'\1"', re.sub(r" +", " ", text)).strip()
    text = _GUILLEMETS.sub('"', text)
    text = _NO_BREAK_BEFORE_MARK.sub(r"\1", text)
    text = _NO_BREAK_AFTER_COMMA.sub(", ", text)
    text = re.sub(r" +", " ", text)
    text = _QUOTE_BEFORE_STOP.sub(r'\1"', text)
    return _NO_BREAK_IN_NUMBER.sub(r"\1.\2", text).strip()


# UTF-8 bytes of two to four, each shown as the Windows-1252 character of its value.
_LEADS = "".join(map(chr, range(0xC2, 0xF5)))
_TAILS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xC0))
_MOJIBAKE = re.compile(f"[{_LEADS}][{re.escape(_TAILS)}]{{1,3}}")
_FOLDED = str.maketrans(
    {
        **{"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'},
        **{ligature: unicodedata.normalize("NFKC", ligature) for ligature in "Ĳĳŉﬀﬁﬂﬃﬄﬅﬆ"},
        **{chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFF5F)},
        "\u3000": " ",
        "\u2028": "\n",
        "\u2029": "\n",
        "\u0085": "\n",
        **{chr(code): None for code in (*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0xFEFF)},
    }
)
_ENTITY = re.compile(r"&#?\w{1,32};")
_TERMINAL_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FOLDABLE = re.compile(f"[{re.escape(''.join(map(chr, _FOLDED)))}]")


def _decode_mojibake(match: re.Match[str]) -> str:
    raw = b"".join(
        bytes([ord(character)]) if ord(character) < 0x100 else character.encode("cp1252") for character in match.group()
    )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return match.group()


def repair_encoding(text: str) -> str:
    """Mend what an earlier conversion damaged; ASCII text without entities comes back unchanged.

    Entities are unescaped repeatedly, but never on a line that holds a literal `<`, where they may be meant.
    """
    if text.isascii() and "&" not in text and text.isprintable():
        return text
    if "&" in text:
        text = "\n".join(line if "<" in line else _unescape(line) for line in text.split("\n"))
    if not text.isascii():
        text = _MOJIBAKE.sub(_decode_mojibake, text)
    if _FOLDABLE.search(text):
        text = _TERMINAL_ESCAPE.sub("", text)
        text = text.translate(_FOLDED)
    return unicodedata.normalize("NFC", text)


def _unescape(line: str) -> str:
    # Only entities that end in a semicolon; the HTML rules would also read `&notanentity;` as `¬anentity;`.
    while (plain := _ENTITY.sub(lambda match: _entity(match.group()), line)) != line:
        line = plain
    return line


def _entity(entity: str) -> str:
    plain = html.unescape(entity)
    return entity if plain.endswith(";") and len(plain) > 1 else plain
