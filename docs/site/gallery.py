"""Draw every figure from generated results: `python docs/site/gallery.py FOLDER` writes FOLDER/figures.html.

The numbers are invented by the generator of the tests. The page shows the form of each figure, how to read it, and
the command that draws it for the smallest shipped experiment that has it.
"""

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / name) for name in ("scripts", "tests/views", "tests/analysis", "tests/evaluation")]

from shipped_workflow import Workflow  # noqa: E402
from test_shipped_figures import owner  # noqa: E402

from hatchery.artifacts.atomic import write_text  # noqa: E402
from hatchery.experiment.project import Project  # noqa: E402
from hatchery.rendering.templates import embedded_figure, render  # noqa: E402
from hatchery.views.figures.registry import declared_figures  # noqa: E402


def main(folder: Path) -> None:
    """Write the page; generated results are kept in `folder`/generated."""
    output, work = folder / "figures.html", folder / "generated"
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "config").exists():
        (work / "config").symlink_to(REPOSITORY / "config")
    os.chdir(work)
    workflow = Workflow(Project(work / "config"))
    figures = []
    for name, declared in declared_figures().items():
        experiment = owner(workflow, name)
        workflow.summarise(experiment)
        tables = workflow.jobs.call("draw_figure", experiment=experiment, figure=name).arguments["tables"]
        for path in map(Path, tables.values()):
            if path.parent.parent.name == "analyses":
                workflow.make("analyse", str(path), experiment=experiment, analysis=path.parent.name)
        drawing = workflow.make(
            "draw_figure", f"results/{experiment}/figures/{name}.svg", experiment=experiment, figure=name
        )
        shown = embedded_figure(drawing.absolute(), declared.caption, declared.paragraphs)
        figures.append((name, declared.title, f"snakemake results/{experiment}/figures/{name}.svg", shown))
        print(name, experiment, flush=True)
    write_text(output, render("gallery.html.j2", title="Hatchery: all figures", figures=figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
