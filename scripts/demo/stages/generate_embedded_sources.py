"""The stage `generate_embedded_sources`: write all generated demo data in the formats of the real data."""

from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import StageRun
from hatchery.raw.settings import EmbeddedSettings
from hatchery.stage import Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def embedded_settings(project: "Project") -> dict[str, object]:
    """Return the sizes of the generated data, and the random seed."""
    return keys_of(project.config.embedded)


@Stage(
    version=4,
    settings=embedded_settings,
    outputs={"output": "resources/embedded/manifest.json"},
    environment="sources",
    runs_on="cpu",
    memory_mb=1000,
    minutes=10,
)
def generate_embedded_sources(settings: EmbeddedSettings, run: StageRun) -> None:
    """Write all demo data into subfolders of `run.folder`; the subfolders of an earlier run are replaced."""
    from demo.generate import generate

    generate(settings, run)
