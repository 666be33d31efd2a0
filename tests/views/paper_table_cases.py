"""Names for the tests of the papers' tables."""

from collections.abc import Mapping

from hatchery.views.score_table import PaperTable

STRICT = ("elc_bert", "strict")
Drawn = Mapping[tuple[str, str], Mapping[str, PaperTable]]
"""Tables by paper and track, and then by number."""
