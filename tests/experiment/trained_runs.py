"""Which runs of an experiment are trained."""

from hatchery.experiment.project import Project


def trained(project: Project, experiment: str, chosen: str = "") -> list[str]:
    """The runs that are trained, of all sets or of one."""
    runs, sets = project.experiment(experiment).runs, project.expansion(experiment).sets()
    steps = {run: project.experiment(experiment).runs[run].pretraining.steps for run in runs}
    return [run for run in runs if steps[run] and chosen in ("", sets[run])]
