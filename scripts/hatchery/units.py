"""Formats numbers in readable units, and parses durations in the notation of Slurm's commands.

The manual page of sbatch describes Slurm's notation of durations (`--time`).
"""

import math
import re
from collections.abc import Sequence

NONE = "-"


def count(value: float | None) -> str:
    """Return a number with thousands separators; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def power(value: str | float) -> str:
    """Return a number such as FLOPs in scientific notation: 7.72e19, 5.00e6; a dash for 0."""
    mantissa, _, exponent = f"{float(value):.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if float(value) else NONE


def scaled(value: float) -> str:
    """Return a number with three digits and a decimal prefix: 65.5 G, 13.1 M; a dash for 0."""
    return _with_unit(value, ("", "k", "M", "G", "T", "P")) if value else NONE


def size(value: float) -> str:
    """Return a number of bytes with three digits and a decimal unit: 1.18 GB; a dash for 0."""
    return _with_unit(value, ("B", "kB", "MB", "GB", "TB", "PB")) if value else NONE


def bits_per_byte(loss: float, per_byte: float) -> float:
    """Return the bits per byte of text, computed from the mean loss in nats per token.

    `per_byte` is the number of tokens of the text divided by its number of bytes.
    """
    return loss * per_byte / math.log(2)


def rough_duration(seconds: float) -> str:
    """Return an estimated time, rounded: 4 d 03 h, 8 h 13 min, 12 min, 34 s; a dash for 0."""
    if not seconds:
        return NONE
    if seconds < 59.5:
        return f"{seconds:.0f} s" if seconds >= 0.5 else "< 1 s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 60 * 100:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    whole = round(seconds / 3600)
    return f"{whole // 24} d {whole % 24:02d} h"


def hours(value: float) -> str:
    """Return a number of device hours: 1,203, 27.2, 0.04; a dash for 0."""
    if not value:
        return NONE
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def percent(share: float) -> str:
    """Return a fraction as a percentage: 10.7 %, 30 %."""
    return f"{100 * share:.3g} %"


def number(value: float) -> str:
    """Return a number with four significant digits; from 1,000 on, as an integer: 5.845, 345.5, 1,234, 0.0012."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _with_unit(value: float, units: Sequence[str]) -> str:
    exponent = 0
    # From 999.5 on, use the next unit, because the number would be rounded to 1000, which has four digits.
    while value >= 999.5 and exponent < len(units) - 1:
        value, exponent = value / 1000, exponent + 1
    digits = 0 if value >= 99.95 or exponent == 0 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[exponent]}".rstrip()


_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?")


def seconds_of(text: str) -> int | None:
    """Return the number of seconds of a duration in Slurm's notation; None for other text, such as UNLIMITED or
    INVALID.

    Examples are `30` (minutes), `30:59`, `2:00:00`, `1-12` (days and hours), and `1-02:03:04`.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    if match["days"] is None and match["third"] is None:
        return 60 * first + second
    return 86_400 * days + 3_600 * first + 60 * second + third
