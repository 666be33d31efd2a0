"""Repair of whitespace, contractions and quotes in text whose tokens are separated by spaces, as in many corpora.

Source: docs/papers/ltg-bert.md, "Cleaning of text" (LTG-BERT's BNC converter), and docs/papers/elc-bert.md, "Cleaning
of text" (ELC-BERT's scripts for the BabyLM corpora). These two versions of the cleaning differ only in the fields of
`CleaningRules`. Each function works on one line or on several lines.
"""

import re
from dataclasses import dataclass

from hatchery.corpora.typography import normalise_punctuation, repair_encoding

# White space other than spaces and newlines.
_OTHER_SPACE = re.compile("[\t\r\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_SPACE_RUN = re.compile(r"[^\S\n]+")
_OPENING = frozenset("‘([{")
# This pattern finds the marks after which rules 1-6 could insert a space. The next character must be neither white
# space nor a quotation mark. Before a quotation mark, only rule 3 inserts a space, and only after three full stops, so
# other marks before quotation marks are skipped.
_MARK = re.compile(r"""[.?!…’,;)\]}%:](?=[^\s’'"]|(?<=\.\.\.)[’'"])""")
# Rule 7 removes a space after an opening bracket.
_AFTER_OPENING = re.compile(r"([(\[{]) ")
# Rule 8 removes a space before a punctuation mark. If `whole_abbreviations` is false, the rule keeps a space after
# three or more full stops, because rule 3 would insert this space again. Only at the beginning of a text, the rule also
# removes a space after exactly three full stops. The alternative with a tab is for four full stops, because the tab
# that represents rule 3's space is then before the last full stop.
_UNLESS_BEHIND_STOPS = r"(?:(?<!\.\.\. )(?<!\t\. )|(?<=^\.\.\. ))"
_BEFORE_MARK = {
    (brace, whole): re.compile(f" (?=[.;:?!…,’)\\]{'}' * brace}])" + ("" if whole else _UNLESS_BEHIND_STOPS))
    for brace in (False, True)
    for whole in (False, True)
}
# Rule 9 removes the space after a currency sign, and rule 10 removes the space before a percent sign.
_AFTER_CURRENCY = re.compile(r"([$£€]) (?=(\S))")
_BEFORE_PER_CENT = re.compile(r"(\S) (?=%)")
_APART = re.compile(" [nN]?'")
_CONTRACTIONS = ("n't", "'ll", "'re", "'ve", "'m", "'s", "'d")
# This pattern matches ’ that is not a closing quote. Such a ’ is in a contraction (also after a gap: `[UNK]’s`), at the
# beginning of a word (`’tis`, `’90s`, a contraction separated by a space), or after a single letter (o’clock, O’Brien,
# d’you, y’all, l’Oréal).
_CURLY_APOSTROPHE = re.compile(
    r"(?<=[\w\]])’(?=(?:s|t|d|m|ll|re|ve)\b)|(?<![^\s(\[{‘“])’(?=\w)|(?<=\b[odyl])’(?=\w)", re.IGNORECASE
)
# The cleaning removes a space before these characters (before `}` only if `space_before_brace` is true). If
# `whole_abbreviations` is true, the cleaning also inserts no space between a full stop and one of these characters.
_CLOSING = frozenset(".;:?!…,’)]}")


@dataclass(frozen=True)
class CleaningRules:
    """Options for the differences between the cleaning in LTG-BERT's BNC converter and in ELC-BERT's scripts for the
    BabyLM corpora, and for Hatchery's corrections of both.
    """

    contraction_ends: str = " "
    """Characters after a contraction. The contraction is joined to the previous word only if one of these characters
    follows.
    """
    space_before_brace: bool = False
    """True if a space before `}` is deleted."""
    straight_apostrophes: bool = False
    """True if ’ in or before a word is first replaced by a straight apostrophe; otherwise rule 2 takes it for a closing
    quote (`don' t`).
    """
    entities_first: bool = False
    """True if HTML entities are decoded first; otherwise rule 5 splits them after the semicolon (`café s`)."""
    whole_abbreviations: bool = False
    """True if `U.S.A.`, `....` and `...?` stay whole; otherwise rules 1 and 3 split them (`U. S. A.`, `... .`)."""


BNC_PUBLISHED_RULES = CleaningRules()
BNC_RULES = CleaningRules(
    contraction_ends=" ,.", straight_apostrophes=True, entities_first=True, whole_abbreviations=True
)
BABYLM_PUBLISHED_RULES = CleaningRules(contraction_ends=" ,.", space_before_brace=True)
BABYLM_RULES = CleaningRules(
    contraction_ends=" ,.",
    space_before_brace=True,
    straight_apostrophes=True,
    entities_first=True,
    whole_abbreviations=True,
)


def collapse_spaces(text: str) -> str:
    """Return the text with each run of white space within a line replaced by one space; newlines stay."""
    if "  " in text or _OTHER_SPACE.search(text):
        return _SPACE_RUN.sub(" ", text)
    return text


def repair_spaces(text: str, rules: CleaningRules = BNC_PUBLISHED_RULES) -> str:
    """Return the text after rules 1-10 of the whitespace repair (docs/papers/ltg-bert.md, "Cleaning of text").

    The published procedure scans from right to left and edits in place. Its decisions depend only on the original text,
    with one exception: rule 8 deletes a space after three full stops, and rule 3 then inserts the space again. Here,
    all insertions are made first, and all deletions afterwards, except deletions of spaces that rule 3 would insert
    again. The result is identical. Until the end, a tab represents an inserted space; the text contains no other tabs,
    because white space was collapsed before.
    """
    # Remove line breaks at the ends of the text only after the rules. The rules treat a contraction, or three full
    # stops, at the end of the text differently than before a line break.
    text = collapse_spaces(text).strip(" ")
    whole = rules.whole_abbreviations

    def spaced(match: re.Match[str]) -> str:
        start, end = match.span()
        before = text[start - 1] if start else ""
        mark, after = match.group(), text[end]
        if whole and mark == "." and (after in _CLOSING or _inside_abbreviation(text, start)):
            return mark
        return mark + "\t" if _wants_space(text, start, mark, before, after) else mark

    result = _MARK.sub(spaced, text)
    # Search for single characters first, which is many times faster than a search for two characters or for a pattern.
    if "(" in result or "[" in result or "{" in result:
        result = _AFTER_OPENING.sub(r"\1", result)
    result = _BEFORE_MARK[rules.space_before_brace, whole].sub("", result)
    if "%" in result:
        result = _BEFORE_PER_CENT.sub(lambda match: match[1] if match[1].isnumeric() else match[0], result)
    if "$" in result or "£" in result or "€" in result:
        result = _AFTER_CURRENCY.sub(lambda match: match[1] if match[2].isnumeric() else match[0], result)
    return result.replace("\t", " ")


def _wants_space(text: str, start: int, mark: str, before: str, after: str) -> bool:
    opens = after in _OPENING
    match mark:
        case ".":
            return after.isupper() or opens or (start > 2 and text[start - 2 : start] == ".." and after != " ")
        case ",":
            return after.isalpha() or opens
        case ":":
            return opens or (after.isalnum() and not (after.isnumeric() and before.isnumeric()))
        case _:
            return after.isalnum() or opens


def _inside_abbreviation(text: str, stop: int) -> bool:
    """Return whether the full stop at `stop` is between two single capitals, as in `U.S.A`."""
    left, right = text[max(stop - 2, 0) : stop], text[stop + 1 : stop + 3]
    return left[-1:].isupper() and not left[:-1].isalnum() and right[:1].isupper() and not right[1:].isalnum()


def join_contractions(text: str, ends: str = " ") -> str:
    """Return the text with each contraction joined to the previous word if a character of `ends` follows the
    contraction: "do n't go" becomes "don't go".
    """
    if "'" not in text or not _APART.search(text):
        return text
    for end in ends:
        for contraction in _CONTRACTIONS:
            text = text.replace(f" {contraction}{end}", f"{contraction}{end}")
            text = text.replace(f" {contraction.upper()}{end}", f"{contraction.upper()}{end}")
    return text


def repair_quotes(text: str) -> str:
    """Return the text with repaired spaces around ASCII double quotes, which count alternately as opening and closing
    quotes (docs/papers/ltg-bert.md, "Cleaning of text").

    The text is returned unchanged in three cases: its number of quotes is odd; two quotes are adjacent or separated by
    one space; or the number of changes is more than two, and also more than two thirds of the number of quotes. In the
    third case, the pairing of the quotes is probably wrong.
    """
    count = text.count('"')
    if count == 0 or count % 2 or '""' in text or '" "' in text:
        return text
    parts = text.split('"')
    changes = 0
    for index in range(count):
        left, right = parts[index], parts[index + 1]
        if index % 2 == 0:
            if left and not left.endswith(" "):
                parts[index], changes = left + " ", changes + 1
            if right.startswith(" "):
                parts[index + 1], changes = right[1:], changes + 1
        else:
            if left.endswith(" "):
                parts[index], changes = left[:-1], changes + 1
            if right[:1].isalnum():
                parts[index + 1], changes = " " + right, changes + 1
    return text if changes > 2 and changes > count * 2 / 3 else '"'.join(parts)


def clean(text: str, rules: CleaningRules) -> str:
    """Return the stripped text after the full cleaning, which repairs spaces, contractions, quotes, punctuation and
    encoding.

    Cleaning the result again may change the text around double quotes, brackets, long dashes and runs of full stops,
    where later rules create text that earlier rules match. All other text stays unchanged.
    """
    if rules.entities_first and "&" in text and "<" not in text:
        text = _without_entities(text)
    if rules.straight_apostrophes and "’" in text:
        text = _CURLY_APOSTROPHE.sub("'", text)
    text = repair_spaces(text, rules)
    text = join_contractions(text, rules.contraction_ends)
    text = repair_quotes(text)
    return repair_encoding(normalise_punctuation(text)).strip()


def _without_entities(text: str) -> str:
    from ftfy.fixes import unescape_html

    while (decoded := unescape_html(text)) != text:
        text = decoded
    return text


def clean_minimal(text: str) -> str:
    """Return the stripped text after the minimal cleaning, which is only `repair_encoding`. Seven of the ten BabyLM
    corpora are cleaned in this way.
    """
    return repair_encoding(text).strip()
