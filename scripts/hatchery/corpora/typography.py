"""Punctuation in a uniform spelling, and repair of characters that an earlier conversion damaged.

Source: docs/papers/ltg-bert.md, "Cleaning of text". The library ftfy repairs damaged characters. The rules of the Moses
punctuation normaliser for English are reimplemented here for speed. The library sacremoses runs about forty regular
expressions on every text; most of these expressions have no match. `normalise_punctuation` and `repair_encoding` return
the results of these libraries; tests compare the functions with the libraries on arbitrary text.
"""

import re

_NO_BREAK = "\u00a0"

_MANY_SPACES = re.compile("  +")
_BRACKET_THEN_MARK = re.compile(r"\) (?=[.!:?;,])")
_BEFORE_PER_CENT = re.compile(r"(?<=\d) %")
# Replace single quotes last, because two adjacent single quotes make a double quote.
_SPELLINGS = (("„", '"'), ("“", '"'), ("”", '"'), ("–", "-"), ("—", " - "))
_SINGLE_QUOTES = ("´", "‘", "‚", "’")
# Replacement rules for fixed strings, from steps 3 and 4 of the Moses normaliser, in the normaliser's order.
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
    """Return the stripped text with typographic quotes and dashes replaced by ASCII, closing quotes moved after full
    stops and commas, and spaces inside brackets removed.

    Equals `MosesPunctNormalizer(lang="en", penn=False).normalize` of sacremoses. A rule runs only if the text contains
    a character that the rule needs.
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
    # Search for a single character first, which is many times faster than a search for two characters.
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


# Non-ASCII characters that ftfy leaves unchanged if their neighbours are ASCII characters. Control characters, «, », Â
# and Ã are excluded, because ftfy treats them as mojibake even before a space.
SAFE_CHARACTERS = "¡¢£§©®°±·¿ÀÁÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôöøùúûüÿ²³¼½¾×÷–—…€"
CURLY_QUOTES = {"‘": "'", "’": "'", "“": '"', "”": '"'}
_NOT_ASCII = SAFE_CHARACTERS + "".join(CURLY_QUOTES)
_UNSAFE = re.compile(f"[^\t\n -%'-~{_NOT_ASCII}]")
# A text with two adjacent non-ASCII characters may contain mojibake, even if all its characters are in SAFE_CHARACTERS:
# the Latin-1 bytes of é££ are a Chinese character in UTF-8.
_SIDE_BY_SIDE = re.compile(f"[{_NOT_ASCII}]{{2}}")


def repair_encoding(text: str) -> str:
    """Return the text with the damage of an earlier conversion repaired, as by `ftfy.fix_text` with its defaults.

    The repair concerns mojibake, HTML entities (up to the first line with a `<`), curly quotes, ligatures, character
    widths, line breaks and control characters, and NFC is applied. The library is called only for text in which it
    could change more than quotes.
    """
    if _UNSAFE.search(text) or (not text.isascii() and _SIDE_BY_SIDE.search(text)):
        import ftfy

        return ftfy.fix_text(text)
    if not text.isascii():
        for curly, straight in CURLY_QUOTES.items():
            text = text.replace(curly, straight)
    return text


# A Portuguese word in capitals before a quotation mark (“IRMÃ”) can look like mojibake of a single letter (IRMÔ). If no
# other part of the text looks damaged, the text is not changed.
_CAPITAL_BEFORE_MARK = re.compile("(?<=[A-ZÀ-ÖØ-Þ])[ÂÃ](?=[”“’‘»«›‹…–—\u00a0 ])")


def repair_mojibake(text: str) -> str:
    """Return the text with wrong decodings repaired (`schÃ¶n` becomes `schön`), and without NUL characters.

    Quotes, ligatures, entities, widths and accents stay unchanged. C1 control characters, which are Windows-1252 marks
    decoded as Latin-1, become these marks.
    """
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    # Import ftfy here, because its import takes half of the readers' import time, and planning does not need it.
    from ftfy import TextFixerConfig, fix_text

    # These settings switch off all repairs of ftfy except the repair of wrong decodings.
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
