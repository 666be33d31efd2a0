"""Tagged text ("word/TAG word/TAG") as ordinary text: the words, with spaces where they belong.

Source: the conventions of the Brown corpus (Francis and Kucera 1979) as distributed with NLTK. The tag follows the last
slash of a token, so a word may hold slashes itself.
"""

import re

_LEFT = re.compile(r" +([.,;:?!)\]}]+|''|%)(?= |$)")
_RIGHT = re.compile(r"(^| )([(\[{$]|``) +")


def tagged_sentence(line: str) -> str:
    """The sentence of one line: no tags, no space before marks or inside brackets and quotes, quotes as `"`."""
    words = " ".join(token.rsplit("/", 1)[0] for token in line.split())
    # Doubled final marks ("? ?", "; ;") are an artefact of how the corpus was tagged.
    words = re.sub(r"(^| )([?!;:]) \2(?= |$)", r"\1\2", words)
    words = _LEFT.sub(r"\1", words)
    words = _LEFT.sub(r"\1", words)
    return _RIGHT.sub(r"\1\2", words).replace("``", '"').replace("''", '"')
