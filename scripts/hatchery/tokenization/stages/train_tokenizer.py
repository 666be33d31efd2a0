"""The stage `train_tokenizer`: a tokenizer trained on corpora, or imported from a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.job_spec import Paths
from hatchery.runner import Job, run_stage
from hatchery.settings.fields import ABSENT
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs


def tokenizer_settings(project: "Project", tokenizer: str) -> dict[str, object]:
    """Return the settings of a tokenizer that is trained or imported."""
    return project.tokenizer(tokenizer).training()


def tokenizer_inputs(of: "Outputs", tokenizer: str) -> dict[str, Paths]:
    """Return the manifests of a tokenizer's training corpora, or the file of an imported tokenizer."""
    block = of.project.tokenizer(tokenizer)
    if block.path is not ABSENT:
        return {"corpus": [str(Path(block.path).expanduser())]}
    return {"corpus": [of.corpus(corpus) for corpus in block.trained_on]}


@Stage(
    version=1,
    settings=tokenizer_settings,
    inputs=tokenizer_inputs,
    outputs={"output": "results/tokenizers/{tokenizer}/manifest.json"},
    environment="tokenization",
    runs_on="cpu",
    threads="tokenization",
    memory_mb=8000,
    minutes=120,
)
def train_tokenizer(job: Job, settings: Mapping[str, Any], corpus: Sequence[Path], threads: int | None = None) -> None:
    """Train a tokenizer on the corpora `corpus` (manifests), or import it from `corpus`, a tokenizer file."""
    from hatchery.tokenization.imported_tokenizer import import_tokenizer
    from hatchery.tokenization.tokenizer_file import use_threads
    from hatchery.tokenization.trainer import learn_tokenizer

    use_threads(threads)
    if settings.get("imported"):
        run_stage(import_tokenizer, settings, job.output, tokenizer_file=corpus[0])
    else:
        run_stage(learn_tokenizer, settings, job.output, corpus=corpus)
