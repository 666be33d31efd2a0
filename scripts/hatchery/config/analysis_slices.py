"""What the stages that read results depend on: tables, figures, pages, exported models. See `stages.py`."""

from collections.abc import Mapping
from typing import Any

from hatchery.analysis.figures.registry import declared_figures
from hatchery.config.paper_tables import paper_tables
from hatchery.config.project import Project
from hatchery.config.terms import raw_inputs
from hatchery.errors import ConfigError

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""


def _cells(project: Project, experiment: str) -> list[dict[str, Any]]:
    labels = project.labels(experiment)
    return [
        {"cell": cell.name, "run": cell.run, "seed": cell.seed, **_label(labels, cell.run)}
        for cell in project.cells(experiment)
    ]


def _label(labels: Mapping[str, str], run: str) -> dict[str, str]:
    """Only where there is one, so that the tables of experiments without sweeps stay as they are."""
    return {"label": labels[run]} if run in labels else {}


def summary_slice(project: Project, experiment: str) -> dict[str, Any]:
    """The table of an experiment."""
    block = project.experiment(experiment)
    return {
        "experiment": experiment,
        "cells": _cells(project, experiment),
        "suites": block["minimal_pairs"],
        "tasks": list(block["finetuning"]["tasks"]),
        "perplexity": bool(block["perplexity"]["splits"]),
        "baselines": block["baselines"],
        "published": block["published"],
    }


def drawn_cells(project: Project, experiment: str) -> set[str]:
    """The cells of the models that figures show: the first of the experiment, at most MOST_DRAWN."""
    drawn = list(dict.fromkeys(cell.run for cell in project.cells(experiment)))[:MOST_DRAWN]
    return {cell.name for cell in project.cells(experiment) if cell.run in drawn}


def figure_slice(project: Project, experiment: str, figure: str) -> dict[str, Any]:
    """A figure of an experiment, with the models that fit, and with the published values if it shows such."""
    block, declared, drawn = (
        project.experiment(experiment),
        declared_figures()[figure],
        drawn_cells(project, experiment),
    )
    cells = _cells(project, experiment)
    left_out = len({cell["run"] for cell in cells if cell["cell"] not in drawn})
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "cells": [cell for cell in cells if cell["cell"] in drawn],
        "style": block["figures"],
        **({"left_out": left_out} if left_out else {}),
        **({"published": block["published"]} if declared.published else {}),
    }


def probed_models_slice(project: Project, experiment: str) -> dict[str, Any]:
    """The table of what the layers contribute to the probes of an experiment."""
    return {"experiment": experiment, "cells": _cells(project, experiment)}


def tables_slice(project: Project, experiment: str) -> dict[str, Any]:
    """The tables in the layout of a paper. Raises ConfigError for an experiment that repeats none."""
    block = project.experiment(experiment)
    chosen = paper_tables(project, experiment)
    if chosen is None:
        raise ConfigError(
            f"results/{experiment}/paper_tables: the experiment repeats no paper: it has neither `published` nor"
            " `paper_tables`"
        )
    return {
        "experiment": experiment,
        "cells": _cells(project, experiment),
        "tasks": list(block["finetuning"]["tasks"]),
        "baselines": block["baselines"],
        **chosen,
    }


def page_slice(project: Project, experiment: str) -> dict[str, Any]:
    """The page of an experiment."""
    return {
        "experiment": experiment,
        "description": project.experiment(experiment)["description"],
        "cells": _cells(project, experiment),
    }


def run_card_slice(project: Project, experiment: str, cell: str) -> dict[str, Any]:
    """The card of one pretraining run."""
    block = project.experiment(experiment)
    chosen = project.cell(experiment, cell)
    return {
        "experiment": experiment,
        "cell": cell,
        "run": chosen.run,
        "seed": chosen.seed,
        **_label(project.labels(experiment), chosen.run),
        "model_description": project.block("model", block["runs"][chosen.run]["model"])["description"],
        "style": block["figures"],
    }


def provenance_slice(project: Project, experiment: str) -> dict[str, Any]:
    """The page that leads from every number to its files. Raises ConfigError for an unknown experiment."""
    project.experiment(experiment)
    return {"experiment": experiment}


def export_slice(project: Project, experiment: str, cell: str) -> dict[str, Any]:
    """A model as a folder for the `transformers` library."""
    block = project.experiment(experiment)
    chosen = project.cell(experiment, cell)
    run = block["runs"][chosen.run]
    corpus = project.block("corpus", block["corpus"])
    sources = {source["name"]: source for source in raw_inputs(project, block["corpus"])}
    return {
        "experiment": experiment,
        "description": block["description"],
        "cell": cell,
        "run": chosen.run,
        "seed": chosen.seed,
        "seeds": run["seeds"],
        "model": run["model"],
        "model_description": project.block("model", run["model"])["description"],
        "corpus": block["corpus"],
        "corpus_description": corpus["description"],
        "languages": corpus["languages"],
        **_label(project.labels(experiment), chosen.run),
        "sources": [{**sources[name], "dataset": _hub_dataset(project, name)} for name in sorted(sources)],
    }


def filled_sentences_slice(project: Project, experiment: str, cell: str) -> dict[str, Any]:
    """What a model writes into gaps: model and corpus alone. Raises ConfigError for an unknown model."""
    project.cell(experiment, cell)
    return {}


def _hub_dataset(project: Project, source: str) -> str | None:
    """The data set of the hub that a raw input comes from; None for embedded ones and where the user gives a path."""
    data = project.config["data"].get(source, {"path": None, "hub": None})
    return None if data["hub"] is None or data["path"] is not None else data["hub"]["dataset"]


def exports_slice(project: Project, experiment: str) -> dict[str, Any]:
    """The list of exported models."""
    names = [cell.name for cell in project.cells(experiment)]
    return {"experiment": experiment, "description": project.experiment(experiment)["description"], "cells": names}
