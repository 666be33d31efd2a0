"""The stage `export_milestone`, which writes a manifest for an intermediate checkpoint.

With this manifest, evaluations can read the checkpoint as a model. The checkpoint's files are already in the folder of
the finished model, so nothing is copied or computed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import Manifest, stage_run
from hatchery.errors import ManifestError
from hatchery.job_spec import Paths
from hatchery.runner import Job
from hatchery.stage import ADDRESS, Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.jobs import Jobs
    from hatchery.workflow.outputs import Outputs


def milestone_settings(project: "Project", model: str, milestone: str) -> dict[str, object]:
    """Return the settings of the stage: the model, and `milestone`, the folder name of the checkpoint."""
    return {"model": model, "milestone": milestone}


def milestone_inputs(of: "Outputs", jobs: "Jobs", model: str) -> dict[str, Paths]:
    """Return the manifest of the pretraining, and the manifests of the pretraining's inputs. Every job that reads a
    model needs all these manifests.
    """
    return {"pretraining": of("pretrain"), **jobs.call_at(model).arguments}


@Stage(
    version=1,
    settings=milestone_settings,
    inputs=milestone_inputs,
    outputs={"output": "results/models/{model}/milestones/{milestone}/manifest.json"},
    wildcard_patterns=lambda project: {"model": ADDRESS},
    environment="sources",
    runs_on="local",
    memory_mb=500,
    minutes=10,
)
def export_milestone(
    job: Job,
    settings: Mapping[str, Any],
    pretraining: Manifest,
    tokens: Path,
    tokenizer: Path,
    initial_model: Path | None = None,
    counts: Path | None = None,
) -> None:
    """Write the manifest of an intermediate checkpoint: settings and inputs of the pretraining, and the number of steps
    before the checkpoint. The manifest of a word milestone also contains the number of words seen.

    Raises ManifestError if the pretraining ended before this milestone.
    """
    folder, measures = job.output.parent, pretraining.measures
    found = [output.path for output in pretraining.outputs if output.path.parent == folder]
    mark = measures.get("marks", {}).get(folder.name)
    if not found:
        raise ManifestError(
            f"{pretraining.path}: there is no model {folder.name}; the run was trained for {measures.get('steps')} "
            "steps"
        )
    steps = int(folder.name.rpartition("_")[2]) if mark is None else mark["step"]
    milestone = steps if mark is None else folder.name
    with stage_run(job.output, {**pretraining.settings, "milestone": milestone}, job.inputs) as run:
        for path in found:
            run.add_output(path)
        run.measures |= {"steps": steps, "parameters": measures["parameters"]}
        if mark is not None:
            run.measures["words_seen"] = mark["words"]
            if "word_count" in measures:
                run.measures["word_count"] = measures["word_count"]
