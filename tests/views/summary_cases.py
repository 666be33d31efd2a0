"""The summary of an experiment in its four forms, for tests."""

from pathlib import Path
from typing import Any

from hatchery.runner import run_stage
from hatchery.views.stages.summarise import summarise

PUBLISHED = (
    "paper,table,track,row,suite,task,metric,value,spread,spread_kind,runs,comparable,note\n"
    "elc_bert,1,,published,finetuning,cola,accuracy_percent,60.0,1.5,deviation_over_runs,5,yes,printed in bold\n"
    "elc_bert,2,,published,blimp,agreement,accuracy_percent,73.0,,,,yes,\n"
    "elc_bert,2,,published,blimp,binding,accuracy_percent,73.0,,,,yes,\n"
)
CHOICE = {"paper": "elc_bert", "rows": {"plain": "published"}}
NAMES = ("summary.csv", "summary.parquet", "summary.md", "summary.txt")


def write(
    experiment: Any,
    folder: Path,
    published: Path | None = None,
    backwards: bool = False,
    objectives: dict[str, str] | None = None,
) -> list[Path]:
    if backwards:
        for kind in ("pretraining", "minimal_pairs", "finetuning", "perplexity"):
            setattr(experiment, kind, dict(reversed(getattr(experiment, kind).items())))
    paths = [folder / name for name in NAMES]
    settings = experiment.summary_settings(None if published is None else CHOICE)
    settings |= {"objectives": objectives} if objectives else {}
    csv_path, parquet, markdown, text = paths
    run_stage(
        summarise,
        settings,
        csv_path,
        measurements=experiment.collected(),
        published=[published] if published else [],
        parquet=parquet,
        markdown=markdown,
        text=text,
    )
    return paths
