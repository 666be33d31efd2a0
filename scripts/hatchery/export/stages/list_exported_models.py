"""The stage `list_exported_models`: write a page that lists an experiment's exported models, from their manifests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.settings.base import Settings
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

CARD = "README.md"


@dataclass(frozen=True)
class ListingSettings(Settings):
    """Settings of the list of an experiment's exported models; `runs` are in the order of the experiment's file."""

    experiment: str
    description: str
    runs: tuple[str, ...]


def exports_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the list of exported models."""
    block = project.experiment(experiment)
    return {"experiment": experiment, "description": block.description, "runs": exported_runs(project, experiment)}


def exported_runs(project: "Project", experiment: str) -> list[str]:
    """Return the names of the runs that are exported: all runs except ensembles, which `transformers` cannot
    represent."""
    runs = project.experiment(experiment).runs
    return [run.name for run in project.seeded_runs(experiment) if not runs[run.model].pretraining.ensemble]


@Stage(
    version=1,
    settings=exports_settings,
    inputs=lambda of, project, experiment: {"model": of.each("export_model", run=exported_runs(project, experiment))},
    outputs={"output": "results/{experiment}/export/README.md"},
    environment="evaluation",
    runs_on="local",
    memory_mb=500,
    minutes=10,
)
def list_exported_models(settings: ListingSettings, model: Mapping[str, Path], output: Path) -> None:
    """Write the page that lists an experiment's exported models. `model` maps each run to the manifest of its exported
    model.

    Raises ConfigError if the runs in `model` differ from `settings.runs`, and ManifestError for a damaged manifest.
    """
    from hatchery.rendering.table import Cell, table
    from hatchery.rendering.templates import render

    if sorted(model) != sorted(settings.runs):
        raise ConfigError(
            f"model: got {', '.join(sorted(model))}, expected the runs of the settings: "
            f"{', '.join(sorted(settings.runs))}"
        )
    manifests = {run: read_manifest(model[run]) for run in settings.runs}
    names = list(dict.fromkeys(name for m in manifests.values() for name in m.measures["scores"]))
    rows = []
    for run, manifest in manifests.items():
        size = manifest.listed(".safetensors")[0].bytes
        scores = manifest.measures["scores"]
        rows.append(
            [
                Cell(run, link=f"{run}/{CARD}"),
                f"{manifest.measures['parameters']:,}",
                f"{size / 1e6:.1f}",
                manifest.measures["licence"],
                *(f"{scores[name]:.2f}" if name in scores else "-" for name in names),
            ]
        )
    shown = table(["model", "parameters", "weights (MB)", "licence", *names], rows, words=(0, 3))
    text = render(
        "exported_models.md.j2", experiment=settings.experiment, description=settings.description, table=shown
    )
    write_text(output, text)
