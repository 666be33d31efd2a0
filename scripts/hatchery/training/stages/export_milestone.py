"""The stage `export_milestone`: the manifest of a model of inside a training, by which it is evaluated like any other.

Its files lie beside the finished model, whose manifest vouches for them; nothing is copied or computed.
"""

from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, stage_run
from hatchery.errors import ManifestError
from hatchery.runner import Job
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def milestone_settings(project: "Project", model: str, milestone: str) -> dict[str, object]:
    """Which of the models of a training it is; `milestone` is the name of its folder."""
    return {"model": model, "milestone": milestone}


@Stage(
    version=1,
    settings=milestone_settings,
    inputs=lambda model: {"pretraining": f"results/models/{model}/manifest.json"},
    environment="sources",
    runs_on="local",
    memory_mb=500,
    minutes=10,
)
def export_milestone(job: Job, settings: dict[str, object], pretraining: Manifest) -> None:
    """Write the manifest: settings and inputs of the training, and the number of its steps.

    Raises ManifestError where the training has no such model, because it ended earlier.
    """
    folder, steps = job.output.parent, int(job.output.parent.name.rpartition("_")[2])
    found = [output.path for output in pretraining.outputs if output.path.parent == folder]
    if not found:
        trained = pretraining.measures.get("steps")
        raise ManifestError(f"{pretraining.path}: there is no model after {steps} steps; it was trained for {trained}")
    with stage_run(job.output, {**pretraining.settings, "milestone": steps}, job.inputs) as run:
        run.inputs |= pretraining.inputs
        for path in found:
            run.add_output(path)
        run.measures |= {"steps": steps, "parameters": pretraining.measures["parameters"]}
