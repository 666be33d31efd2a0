"""The stage `measure_perplexity`: measure the perplexity of one pretrained model on held-out splits of a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.evaluation.evaluation import ONCE, Evaluation
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.evaluation.settings import EvaluationRuntime, PerplexitySettings
from hatchery.job_spec import Paths
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs


def perplexity_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of perplexity: splits, sequence length and prediction targets."""
    block = project.experiment(experiment)
    return {
        **keys_of(block.perplexity),
        "sequence_length": block.perplexity.sequence_length or block.pretraining.sequence_length,
    }


def held_out_text(of: "Outputs", experiment: str, run: str) -> dict[str, Paths]:
    """Return the manifest of the corpus as token shards, which contain the held-out splits. For an external model,
    which has its own tokenizer, return the manifest of the corpus as text.
    """
    block = of.project.experiment(experiment)
    if run in block.baselines:
        return {"corpus": of.corpus(block.corpus)}
    return {"tokens": of("encode_corpus", corpus=block.corpus, tokenizer=block.tokenizer)}


@Stage(
    version=1,
    settings=perplexity_settings,
    inputs=held_out_text,
    shared=StoredByDigest("perplexity"),
    evaluation=Evaluation(
        place=10,
        title="Perplexity on held-out text",
        asked=lambda experiment, run: ONCE if experiment.perplexity.splits else (),
        rows=perplexity_rows,
        direct="hatchery.evaluation.perplexity.held_out:evaluate",
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=240,
    runtime=("device", "tokens_per_batch", "compile"),
)
def measure_perplexity(
    settings: PerplexitySettings,
    runtime: EvaluationRuntime,
    model: Path,
    tokens: Path | None,
    corpus: Manifest | None,
    run: StageRun,
) -> None:
    """Measure the perplexity of the model of the manifest `model` on the token shards of the manifest `tokens`.

    An external model is measured on the documents of a `corpus`, which its own tokenizer encodes. Raises
    EvaluationError for shards of another tokenizer, a split without text and a model whose loss is not finite, and the
    errors of the model and token loaders.
    """
    from hatchery.evaluation.perplexity.measure import measure

    measure(settings, runtime, model, tokens, corpus, run)
