"""The stage `sample_corpus`: draw a corpus of a given size from another corpus."""

from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.corpora.settings import SampleSettings
from hatchery.job_spec import Paths
from hatchery.settings.fields import ABSENT
from hatchery.stage import Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs


def sample_settings(project: "Project", corpus: str) -> dict[str, object]:
    """Return the settings of the stage `sample_corpus` for a corpus."""
    block = project.corpus(corpus)
    languages = {} if block.sample.languages is ABSENT else block.sample.languages
    parts = {name: {"sources": part.sources, "bytes": part.bytes} for name, part in languages.items()}
    kept = keys_of(block.sample, only=SampleSettings)
    return {**kept, "documents_per_shard": block.documents_per_shard, "parts": parts or None}


def sample_inputs(of: "Outputs", corpus: str) -> dict[str, Paths]:
    """Return the manifest of the corpus from which the sample is drawn. If another corpus sets the size of the sample,
    also return the manifest of this other corpus."""
    sample = of.part(corpus, "sample")
    named = {"corpus": sample.corpus, "size_of": sample.size_of}
    return {key: of.corpus(name) for key, name in named.items() if name is not ABSENT}


@Stage(
    version=1,
    settings=sample_settings,
    inputs=sample_inputs,
    outputs={"output": "results/samples/{corpus}/manifest.json"},
    input_names={"size_of": "size of"},
    environment="corpora",
    runs_on="cpu",
    memory_mb=4000,
    minutes=240,
)
def sample_corpus(settings: SampleSettings, corpus: Manifest, size_of: Manifest | None, run: StageRun) -> None:
    """Write the sample's shards and tables into `run.folder`. The corpus is read twice, or three times if
    `settings.split` is set; memory holds a few numbers per document.

    Raises ConfigError if the sample's size is not set exactly once or a source is missing, CorpusError if the corpus is
    too small, and ManifestError for a damaged shard.
    """
    from hatchery.corpora.sampling import draw_sample

    draw_sample(settings, corpus, size_of, run)
