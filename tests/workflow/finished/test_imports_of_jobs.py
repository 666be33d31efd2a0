"""A job imports what its work needs, when it needs it: the start of a process is most of the time of a small one."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.stage import Stage
from hatchery.workflow.registry import STAGES

pytestmark = pytest.mark.slow

DRAWING = {"draw_figure", "describe_corpus"}
WITH_A_MODEL = {"export_model", "fill_sentences", "import_checkpoint", "write_cost"}
# What takes a fifth of a second or more, and which stages may import it; pyarrow imports pandas where that is there.
MAY_IMPORT: dict[str, Callable[[Stage], bool]] = {
    "torch": lambda stage: stage.sort in ("model", "pretraining") or stage.name in WITH_A_MODEL,
    "torch._dynamo": lambda stage: False,
    "torch._inductor": lambda stage: False,
    "sympy": lambda stage: False,
    "deepspeed": lambda stage: stage.sort == "pretraining",
    "transformers": lambda stage: stage.name == "import_model",
    "datasets": lambda stage: False,
    "polars": lambda stage: stage.environment == "analysis",
    "matplotlib": lambda stage: stage.name in DRAWING,
    "tokenizers": lambda stage: stage.environment in ("tokenization", "evaluation"),
    "scipy": lambda stage: stage.name in ("finetune", "finetune_tasks", "select_tokenizer", "analyse"),
    "sklearn": lambda stage: False,
    "nltk": lambda stage: False,
    "snakemake": lambda stage: False,
}
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", re.MULTILINE)


def test_no_job_imports_what_its_stage_has_no_use_for(second_project: Path) -> None:
    read, wrong = set(), []
    for stage in STAGES.values():
        for log in sorted((second_project / "logs" / stage.name).rglob("*.log")):
            imported = set(IMPORTED.findall(log.read_text(encoding="utf-8")))
            if imported:
                read.add(stage.name)
            wrong += [
                f"{stage.name}: {name}" for name, may in MAY_IMPORT.items() if name in imported and not may(stage)
            ]
    assert wrong == []
    # Modules are named there at all.
    assert {"convert_corpus", "pretrain", "finetune", "score_minimal_pairs", "summarise", "write_page"} <= read
