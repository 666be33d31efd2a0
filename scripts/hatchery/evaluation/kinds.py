"""All kinds of evaluation, found by the records of their stages."""

from functools import cache

from hatchery.evaluation.evaluation import Evaluation
from hatchery.stage import stages


@cache
def evaluations() -> dict[str, Evaluation]:
    """The records of all kinds, in their order, by the names of the kinds."""
    found = {each.shared.folder: each.evaluation for each in stages().values() if each.shared and each.evaluation}
    return dict(sorted(found.items(), key=lambda kind: (kind[1].place, kind[0])))
