"""The stage `group_sequences`: grouping of selected texts to a corpus of sequences."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.corpora.settings import SequenceKeys, SequenceSettings
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs


def sequences_settings(project: "Project", corpus: str) -> dict[str, object]:
    """Return the settings of the stage `group_sequences` for a corpus."""
    block = project.corpus(corpus)
    return {**keys_of(block.sequences, only=SequenceKeys), "documents_per_shard": block.documents_per_shard}


def sequences_inputs(of: "Outputs", corpus: str) -> dict[str, Paths]:
    """Return the manifests of the text selections to group and, if set, of the corpus whose development and test
    sequences are reused.
    """
    block = of.part(corpus, "sequences")
    other = [] if block.held_out_from is None else [of.corpus(block.held_out_from)]
    return {"selection": of.each("select_text", selection=block.selections), "held_out": other}


@Stage(
    version=1,
    settings=sequences_settings,
    inputs=sequences_inputs,
    outputs={"output": "results/sequences/{corpus}/manifest.json"},
    input_names={"held_out": "held out"},
    environment="corpora",
    runs_on="cpu",
    memory_mb=4000,
    minutes=240,
)
def group_sequences(
    settings: SequenceSettings, selection: Mapping[str, Manifest], held_out: Manifest | None, run: StageRun
) -> None:
    """Write shards, tables and `selections.csv` of a corpus of sequences into `run.folder`.

    `selection` are the manifests of the selections by name; `held_out` is the corpus whose development and test
    sequences are used. Raises ConfigError for selections that do not fit the settings. Raises CorpusError if a
    selection has fewer texts than its quota, or if no sequence is left for training. Raises ManifestError for damaged
    inputs, and EvaluationError for damaged counts or samples of a selection.
    """
    from hatchery.corpora.sequences import group

    group(settings, selection, held_out, run)
