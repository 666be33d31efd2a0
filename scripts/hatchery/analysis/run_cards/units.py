"""Numbers in units that people grasp."""


def flops(value: str | float) -> str:
    """1.23e18; a dash for nothing."""
    mantissa, _, exponent = f"{float(value):.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if float(value) else "-"


def duration(seconds: float) -> str:
    """Two units that matter: 4 d 3 h, 8 h 13 min, 12 min 5 s, 34 s."""
    if seconds < 0.05:
        return "< 0.1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02d} h"


def mebibytes(value: object) -> str:
    """Memory in MiB or GiB."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "not recorded"
    return f"{value / 1024:,.1f} GiB" if value >= 10_000 else f"{value:,.0f} MiB"


def number(value: float) -> str:
    """Four digits that matter, never more than are useful: 5.845, 345.5, 1,234, 0.0012."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def share(value: float) -> str:
    """A share of 1 in percent."""
    return f"{100 * value:.3g} %"
