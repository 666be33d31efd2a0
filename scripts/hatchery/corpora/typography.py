"""Punctuation in one spelling, and characters that an earlier conversion damaged.

Source: docs/papers/ltg-bert.md, "Cleaning of text". Repair is the ftfy library's. The Moses punctuation normaliser for
English is our own copy of its rules: the library runs some forty regular expressions over every block, most of which
find nothing. Both promise what the libraries give, which tests compare on arbitrary text.
"""

import re

_NO_BREAK = "\u00a0"

_MANY_SPACES = re.compile("  +")
_BRACKET_THEN_MARK = re.compile(r"\) (?=[.!:?;,])")
_BEFORE_PER_CENT = re.compile(r"(?<=\d) %")
# The single quotes come after the others: two of them side by side make a double one.
_SPELLINGS = (("„", '"'), ("“", '"'), ("”", '"'), ("–", "-"), ("—", " - "))
_SINGLE_QUOTES = ("´", "‘", "‚", "’")
# Literal rules of steps 3 and 4, in their order.
_GUILLEMETS = tuple(rule.replace("_", _NO_BREAK) for mark in ("_«_ «_ «", "_»_ _» »") for rule in mark.split(" "))
_NO_BREAK_RULES = tuple(
    (rule.replace("_", _NO_BREAK), replacement)
    for rule, replacement in (
        ("_%", "%"),
        ("nº_", "nº "),
        ("_:", ":"),
        ("_ºC", " ºC"),
        ("_cm", " cm"),
        ("_?", "?"),
        ("_!", "!"),
        ("_;", ";"),
        (",_", ", "),
    )
)
_QUOTE_BEFORE_STOP = re.compile(r'"([,.]+)')
_NO_BREAK_IN_NUMBER = re.compile(rf"(\d){_NO_BREAK}(\d)")


def normalise_punctuation(text: str) -> str:
    """Typographic quotes and dashes as ASCII, quotes after full stops, no spaces inside brackets; stripped.

    The same as `MosesPunctNormalizer(lang="en", penn=False).normalize` of sacremoses. Every rule is asked for by a
    character that it needs before it runs.
    """
    text = _space_brackets(text.replace("\r", ""))
    if not text.isascii():
        text = _plain_characters(text)
    elif "'" in text:
        text = text.replace("''", '"')
    if '"' in text:
        text = _QUOTE_BEFORE_STOP.sub(r'\1"', text)
    if _NO_BREAK in text:
        text = _NO_BREAK_IN_NUMBER.sub(r"\1.\2", text)
    return text.strip()


def _space_brackets(text: str) -> str:
    opens, closes = "(" in text, ")" in text
    if opens:
        text = text.replace("(", " (")
    if closes:
        text = text.replace(")", ") ")
    text = _single_spaces(text)
    if closes:
        text = _BRACKET_THEN_MARK.sub(")", text)
    if opens:
        text = text.replace("( ", "(")
    if closes:
        text = text.replace(" )", ")")
    # Looking for one character is many times faster than looking for two.
    if "%" in text:
        text = _BEFORE_PER_CENT.sub("%", text)
    if ":" in text:
        text = text.replace(" :", ":")
    return text.replace(" ;", ";") if ";" in text else text


def _plain_characters(text: str) -> str:
    for typographic, plain in _SPELLINGS:
        text = text.replace(typographic, plain)
    text = _single_spaces(text)
    for quote in _SINGLE_QUOTES:
        text = text.replace(quote, "'")
    text = text.replace("''", '"').replace("…", "...")
    if text.isascii():
        return text
    if "«" in text or "»" in text:
        for guillemet in _GUILLEMETS:
            text = text.replace(guillemet, '"')
    if _NO_BREAK in text:
        for rule, replacement in _NO_BREAK_RULES:
            text = text.replace(rule, replacement)
        text = _single_spaces(text)
    return text


def _single_spaces(text: str) -> str:
    return _MANY_SPACES.sub(" ", text) if "  " in text else text


# Characters beyond ASCII that ftfy leaves alone when ASCII stands around them. Not among them: control characters, « »,
# and Â and Ã, which it takes for mojibake even before a space.
SAFE_CHARACTERS = "¡¢£§©®°±·¿ÀÁÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôöøùúûüÿ²³¼½¾×÷–—…€"
CURLY_QUOTES = {"‘": "'", "’": "'", "“": '"', "”": '"'}
_NOT_ASCII = SAFE_CHARACTERS + "".join(CURLY_QUOTES)
_UNSAFE = re.compile(f"[^\t\n -%'-~{_NOT_ASCII}]")
# Two of them side by side may be mojibake: é££ is a Chinese character in UTF-8.
_SIDE_BY_SIDE = re.compile(f"[{_NOT_ASCII}]{{2}}")


def repair_encoding(text: str) -> str:
    """Mend what an earlier conversion damaged: `ftfy.fix_text` with its defaults.

    Mojibake, HTML entities (not from the first line with a `<` on), curly quotes, ligatures, widths, line breaks,
    control characters, NFC. The library is asked only where it could do more than straighten quotes.
    """
    if _UNSAFE.search(text) or (not text.isascii() and _SIDE_BY_SIDE.search(text)):
        import ftfy

        return ftfy.fix_text(text)
    if not text.isascii():
        for curly, straight in CURLY_QUOTES.items():
            text = text.replace(curly, straight)
    return text


# The end of a Portuguese word in capitals with its quotation mark (“IRMÃ”) looks like one letter in a wrong decoding
# (IRMÔ). Where nothing else in the text does, it is what it says.
_CAPITAL_BEFORE_MARK = re.compile("(?<=[A-ZÀ-ÖØ-Þ])[ÂÃ](?=[”“’‘»«›‹…–—\u00a0 ])")


def repair_mojibake(text: str) -> str:
    """Text that was decoded with a wrong encoding (`schÃ¶n`) as it was written, without NUL; all else stays.

    Quotes, ligatures, entities, widths and accents are as they were. C1 control characters, which stand for the marks
    of Windows in what was taken for Latin-1, become these marks.
    """
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    # Half of what it takes to import the readers, which whoever plans does, too.
    from ftfy import TextFixerConfig, fix_text

    # Of all that the library offers, what undoes a wrong decoding and nothing else.
    config = TextFixerConfig(
        unescape_html=False,
        remove_terminal_escapes=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        uncurl_quotes=False,
        fix_line_breaks=False,
        fix_surrogates=False,
        remove_control_chars=False,
        normalization=None,
        explain=False,
    )
    repaired = fix_text(text, config)
    if repaired != text and (plain := _CAPITAL_BEFORE_MARK.sub("A", text)) != text:
        return text if fix_text(plain, config) == plain else repaired
    return repaired
