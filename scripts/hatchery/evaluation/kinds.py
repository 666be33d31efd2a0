"""All kinds of evaluation, collected from the records of their stages."""

from functools import cache

from hatchery.evaluation.evaluation import Evaluation
from hatchery.stage import function_of, has_record, record_of, stage_files


@cache
def evaluations() -> dict[str, Evaluation]:
    """Return all kinds of evaluation by name, sorted by `Evaluation.place`."""
    # Import only stages of the package `evaluation`. Jobs call this function, and most of their environments cannot
    # import the stages of other packages.
    names = [name for name, path in stage_files().items() if path.parents[1].name == "evaluation"]
    records = [record_of(function) for name in names if has_record(function := function_of(name))]
    found = {each.shared.folder: each.evaluation for each in records if each.shared and each.evaluation}
    return dict(sorted(found.items(), key=lambda kind: (kind[1].place, kind[0])))
