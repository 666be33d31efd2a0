"""The corpora of speech: subtitles of films and videos, speech to children, conversations."""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm import (
    Treatment,
    collapse,
    quoted_speech,
    single_boundaries,
    unescape_once,
    without_dash,
)


def open_subtitles(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of OpenSubtitles: one subtitle per line, with a blank line between films.

    Removes leading dashes and repeated lines, writes only one of several successive blank lines, and puts quotation
    marks around speech.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". The dash is removed after the cleaning (in QED, before
    the cleaning). A line that equals the last line before a document boundary is not removed as a repeated line.

    Corrected:
    - a subtitle that is only a dash, or is empty after cleaning, is dropped; in the published script, this subtitle
      becomes a document boundary;
    - tags such as <i> are removed, and then the entities of the line are decoded (`<i>Tea &amp; cake</i>`); the
      cleaning decodes no entities in a line with a `<`.
    """

    def subtitles() -> Iterator[str]:
        for line in map(collapse, lines):
            text = without_dash(treatment.subtitle(line))
            if not line or treatment.keeps(text, line):
                yield quoted_speech(text) if text else ""

    return treatment.without_repeats(single_boundaries(subtitles()))


def qed(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of QED: subtitles of educational videos, with escaped entities and timing lines.

    Removes leading dashes, decodes entities, puts quotation marks around speech, and drops repeated lines, timing
    lines, lines with escaped markup, and lines that end with a colon and contain no letter.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". The dash is removed before the cleaning (in
    OpenSubtitles, after the cleaning). The published script has a test that drops lines with escaped markup, but most
    markup is already decoded before this test. A line that equals the last line before a document boundary is not
    removed as a repeated line.

    Corrected:
    - a subtitle that is only a dash, or is empty after cleaning, is dropped; in the published script, this subtitle
      ends the document;
    - tags such as <i> are removed, and then the entities of the line are decoded; the cleaning decodes no entities in a
      line with a `<`.
    """

    def subtitles() -> Iterator[str]:
        for line in map(collapse, lines):
            text = treatment.subtitle(without_dash(line))
            if not text:
                if not line or treatment.keeps(text, line):
                    yield ""
                continue
            text, has_markup = _unescaped(text)
            if has_markup:
                treatment.leave_out("escaped markup", line)
            elif "->" in text:
                treatment.leave_out("timing of a subtitle", line)
            elif text.endswith(":") and not any(map(str.isalpha, text)):
                treatment.leave_out("label without a letter", line)
            else:
                yield quoted_speech(text)

    return treatment.without_repeats(single_boundaries(subtitles()))


def _unescaped(text: str) -> tuple[str, bool]:
    """Return the text with up to three levels of entities decoded, and whether the text contains escaped markup. The
    text contains escaped markup if both `&lt` and `&gt` occur in the original text, or in the text after the decoding
    of a level. The decoding stops at escaped markup.
    """
    for _ in range(3):
        if _has_markup(text):
            return text, True
        text = unescape_once(text)
    return text, _has_markup(text)


def _has_markup(text: str) -> bool:
    return "&lt" in text and "&gt" in text


def aochildes(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of AO-CHILDES: utterances of people who speak to a child, one per line, without
    document boundaries.

    Capitalises each line, cleans it fully, adds quotation marks, and removes repeated lines.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". Empty lines are skipped; the published script would
    stop at an empty line with an error, but the release has no empty line.

    Corrected:
    - ’ inside or before a word is an apostrophe, not a closing quote (`cat's`, not `cat' s`);
    - `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
    - an utterance that is empty after cleaning is dropped; the published script writes a pair of quotes (inferred from
      the order of its steps).
    """

    def utterances() -> Iterator[str]:
        for line in map(str.strip, lines):
            if line:
                text = treatment.full(line[:1].upper() + line[1:])
                if treatment.keeps(text, line):
                    yield f'"{text}"'

    return treatment.without_repeats(utterances())


def bnc_spoken(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the spoken part of the BNC in BabyLM's release: one sentence per line, with a blank
    line after each conversation.

    Capitalises each line, cleans it fully and adds quotation marks; removes repeated lines and the lines `.`, `!` and
    `?`.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - ’ inside or before a word is an apostrophe, not a closing quote (`It's`, not `It' s`);
    - `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
    - a line that is empty after cleaning is dropped; the published script writes a pair of quotes (inferred from the
      order of its steps).
    """

    def turns() -> Iterator[str]:
        for line in map(str.strip, lines):
            if not line:
                yield ""
            elif line in (".", "!", "?"):
                treatment.leave_out("only a mark", line)
            else:
                text = treatment.full(line[:1].upper() + line[1:])
                if treatment.keeps(text, line):
                    yield f'"{text}"'

    return treatment.without_repeats(turns())


def switchboard(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the Switchboard Dialog Act Corpus: one utterance per line.

    Removes leading dashes and repeated lines, and adds quotation marks.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". The dash is removed before the cleaning. Several
    document boundaries (blank lines) in a row stay in the output.

    Corrected:
    - a line counts as repeated only within its conversation; the published script loses the first line of a
      conversation if this line equals the last line of the previous conversation;
    - an utterance that is only a dash, or is empty after cleaning, is dropped; in the published script, this utterance
      is a document boundary.
    """

    def utterances() -> Iterator[str]:
        for line in map(collapse, lines):
            text = treatment.minimal(without_dash(line))
            if not line or treatment.keeps(text, line):
                yield f'"{text}"' if text else ""

    return treatment.without_repeats(utterances(), across_boundaries=not treatment.corrected)
