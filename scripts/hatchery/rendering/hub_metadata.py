"""The front matter of the cards of models and data sets: metadata with keys and values of the Hugging Face hub."""

import json
from collections.abc import Iterable, Mapping

UNKNOWN_LICENCES = ("", "none", "not stated", "unknown")
POWERS_OF_TEN = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
"""Limits of the size categories in which the hub sorts data sets, in numbers of rows."""


def front_matter(entries: Mapping[str, object]) -> list[str]:
    """Return the front matter of a card, which is YAML between two lines `---`, as a list of lines without these two
    lines.

    Empty values are left out. Values are written as JSON, which is valid YAML.
    """
    return [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items() if value]


def licence_entries(licences: Iterable[str]) -> dict[str, object]:
    """Return the hub's licence entries for a model or data set that was made from sources with these licences."""
    licence = licence_id(licences)
    if licence != "other":
        return {"license": licence}
    return {"license": licence, "license_name": "terms-of-the-sources", "license_link": "README.md"}


def licence_id(licences: Iterable[str]) -> str:
    """Return the hub's identifier of the licence of a model or data set that was made from sources with these licences.

    The identifier is `unknown` if there are no licences, or if a licence is unknown (`is_unknown`). It is `apache-2.0`
    if all sources have this licence, for example if all data are generated. Otherwise it is `other`, because a program
    cannot decide which licence terms of the data apply to a model.
    """
    found = set(licences)
    if not found or any(map(is_unknown, found)):
        return "unknown"
    return "apache-2.0" if found == {"Apache-2.0"} else "other"


def is_unknown(licence: str) -> bool:
    """Return True if the text `licence` states that no licence is known, or that each document has its own licence."""
    text = licence.lower().strip()
    return text in UNKNOWN_LICENCES or text.startswith(("none;", "not stated", "that of each"))


def size_category(rows: int) -> str:
    """Return the hub's size category, such as `1K<n<10K`, of a data set with this number of rows."""
    if rows < 1_000:
        return "n<1K"
    place = min(len(str(rows)) - 4, len(POWERS_OF_TEN) - 1)
    below = POWERS_OF_TEN[place]
    return f"{below}<n<{POWERS_OF_TEN[place + 1]}" if place + 1 < len(POWERS_OF_TEN) else f"n>{below}"
