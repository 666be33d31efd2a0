"""The rule by which one tokenizer is chosen: per type by the word-split ratio, across types by ESMS.

Source: reduced-vocabulary study, Section 3.3: of each type the size whose ratio is closest to that of the type's
pretrained reference, then the type with the highest ESMS. Ratios are compared as they are printed; the paper does not
say what happens in a tie, but of WordPiece 16,000 and 17,000, both printed as 1.17, it takes the smaller, and so do we.
"""

from collections.abc import Mapping
from dataclasses import replace

from hatchery.errors import ConfigError
from hatchery.tokenization.selection.settings import SweepSettings
from hatchery.tokenization.selection.table import Measures, SelectionRow

# Differences of printed decimals carry binary rounding errors, which must not break ties.
_DIGITS = 9


def closest_size(ratios: Mapping[int, float], reference: float, decimals: int | None) -> int:
    """The size whose ratio is closest to `reference`, both rounded to `decimals` (None: not); the smaller in a tie.

    `ratios` are word-split ratios by vocabulary size. Raises ConfigError when there is none.
    """
    if not ratios:
        raise ConfigError("sizes: there is no size to choose from")

    def rounded(value: float) -> float:
        return value if decimals is None else round(value, decimals)

    return min(ratios, key=lambda size: (round(abs(rounded(ratios[size]) - rounded(reference)), _DIGITS), size))


def best_type(scores: Mapping[str, float]) -> str:
    """The type with the highest ESMS among the chosen sizes, the first in a tie.

    Raises ConfigError when there is no type.
    """
    if not scores:
        raise ConfigError("types: there is no type to choose from")
    return max(scores, key=scores.__getitem__)


def chosen_rows(
    settings: SweepSettings,
    by_size: Mapping[tuple[str, int], Measures],
    by_reference: Mapping[str, Measures],
    reference_sizes: Mapping[str, int],
) -> list[SelectionRow]:
    """The rows of the table in the order of the settings, reference last within its type, with the choice marked."""
    selected: dict[str, int] = {}
    for candidate in settings.types:
        ratios = {size: by_size[candidate.name, size].word_split_ratio for size in candidate.sizes}
        reference = by_reference.get(candidate.name)
        target = candidate.reference_ratio if reference is None else reference.word_split_ratio
        # Without a reference there is only one size (checked before anything was trained).
        selected[candidate.name] = (
            candidate.sizes[0] if target is None else closest_size(ratios, target, settings.compared_decimals)
        )
    final = best_type({name: getattr(by_size[name, size], settings.choose_by) for name, size in selected.items()})
    rows = []
    for candidate in settings.types:
        row = SelectionRow(candidate.name, None, None, Measures(0.0), candidate.published_as)
        for size in candidate.sizes:
            chosen = selected[candidate.name] == size
            rows.append(
                replace(
                    row,
                    size=size,
                    vocabulary_size=size,
                    measures=by_size[candidate.name, size],
                    selected_within_type=chosen,
                    final_choice=chosen and candidate.name == final,
                )
            )
        if candidate.name in by_reference:
            size = reference_sizes[candidate.name]
            rows.append(replace(row, vocabulary_size=size, measures=by_reference[candidate.name]))
        elif candidate.reference_ratio is not None:
            rows.append(replace(row, measures=Measures(candidate.reference_ratio)))
    return rows
