"""A neutral section: what the text of a paper says, and what its own tables and logs say; no number of ours."""

from dataclasses import dataclass
from typing import Literal

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Study
from hatchery.rendering.table import table


@dataclass(frozen=True, kw_only=True)
class PublishedClaimsSettings(AnalysisSettings):
    """Whose claims."""

    paper: Literal["reduced_vocabulary"] = "reduced_vocabulary"
    """The paper: tables below config/published/."""


def analyse(settings: PublishedClaimsSettings, study: Study) -> Findings:
    """The claims of the paper that its tables contradict. Raises EvaluationError."""
    from hatchery.analysis.published_claims import claims
    from hatchery.analysis.published_curves import read_published_curves
    from hatchery.analysis.published_values import read_numbers

    numbers = read_numbers(study.files[f"values/{settings.paper}"])
    found = claims(numbers, read_published_curves(study.files[f"curves/{settings.paper}"]))
    rows = [{"said": claim.said, "where": claim.where, "found": claim.found} for claim in found]
    header = ("the text says", "where", "the tables and logs say")
    shown = table(header, [list(row.values()) for row in rows], words=3, stacked=True, caption="Text and tables")
    notes = [
        "Computed from the published values and the logs of January 2023 in the history of the authors' repository.",
    ]
    return Findings(rows, [shown], notes)


def _published(settings: PublishedClaimsSettings) -> list[str]:
    return [f"values/{settings.paper}", f"curves/{settings.paper}", f"curves/{settings.paper}_runs"]


ANALYSIS = Analysis(
    title="Where the paper's text and its tables differ",
    version=1,
    settings=PublishedClaimsSettings,
    run=analyse,
    needs=(),
    published=_published,
)
