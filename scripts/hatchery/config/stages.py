"""What each stage of the workflow depends on: one slice of resolved settings per stage, as canonical JSON.

The slice is the only thing of the configuration that Snakemake sees of a job, so a stage reruns exactly when its
slice changes. It holds the stage's declared version: raise it when the meaning of a stage's code changes, so that
results of the old code are made anew (`stage_code.json` and its test remind of it).
"""

import json
from collections.abc import Callable
from typing import Any

from hatchery.config import analysis_slices as analysis
from hatchery.config import continuation
from hatchery.config.block_bodies import task_body, tokenizer_body, without
from hatchery.config.finetuning_jobs import task_batch
from hatchery.config.overrides import pretraining_of
from hatchery.config.planned_device import planned_device
from hatchery.config.project import Project
from hatchery.config.schema import validate, with_defaults
from hatchery.config.terms import KEYS, raw_inputs
from hatchery.errors import ConfigError
from hatchery.storage.checksums import canonical_json

VERSIONS = {
    "generate_embedded_sources": 3,
    "register_source": 2,
    "build_vocabulary": 1,
    "select_text": 1,
    "convert_corpus": 3,
    "sample_corpus": 1,
    "group_sequences": 1,
    "describe_corpus": 3,
    "train_tokenizer": 2,
    "encode_corpus": 2,
    "select_tokenizer": 1,
    "write_cost": 2,
    "pretrain": 1,
    "score_minimal_pairs": 3,
    "measure_perplexity": 1,
    "finetune": 3,
    "finetune_tasks": 2,
    "summarise": 2,
    # What all figures share; each has a version of its own, in its file.
    "draw_figure": 1,
    "tabulate_layer_contributions": 1,
    "write_tables": 2,
    "write_page": 5,
    "write_run_card": 3,
    "write_provenance": 3,
    "export_model": 2,
    "fill_sentences": 1,
    "list_exported_models": 1,
}

# Heads that `finetuning.head_options` of an experiment speaks of.
SEQUENCE_HEADS = ("sequence_classification", "regression", "multiple_choice")


def stage_settings(project: Project, stage: str, **wildcards: str) -> str:
    """Canonical JSON of everything in the configuration that the job of `stage` with these wildcards depends on.

    Raises ConfigError for a broken or unknown block.
    """
    body = SLICES[stage](project, **wildcards)
    return canonical_json({"stage": stage, "stage_version": VERSIONS[stage], **body})


def _embedded(project: Project) -> dict[str, Any]:
    return dict(project.config["embedded"])


def _source(project: Project, source: str) -> dict[str, Any]:
    if source.startswith("embedded_"):
        return {"name": source, "path": f"resources/embedded/{source.removeprefix('embedded_')}"}
    data = project.config["data"].get(source)
    if data is None:
        raise ConfigError(f"{project.folder / 'config.yaml'}: data: there is no source {source!r}")
    return {"name": source, **without(data, *KEYS)}


def _corpus(project: Project, corpus: str) -> dict[str, Any]:
    block = project.block("corpus", corpus)
    sources = [without(source, "data", "embedded") for source in block["sources"]]
    return {**without(block, "description", "languages", "card_tokenizer"), "sources": sources}


def _sample(project: Project, corpus: str) -> dict[str, Any]:
    block = project.block("corpus", corpus)
    return {**without(block["sample"], "corpus", "size_of"), "documents_per_shard": block["documents_per_shard"]}


def _sequences(project: Project, corpus: str) -> dict[str, Any]:
    block = project.block("corpus", corpus)
    return {**without(block["sequences"], "held_out_from"), "documents_per_shard": block["documents_per_shard"]}


def _card(project: Project, corpus: str) -> dict[str, Any]:
    sources = {source["name"]: source for source in raw_inputs(project, corpus)}
    return {
        "corpus": corpus,
        "description": project.block("corpus", corpus)["description"],
        "sources": [sources[name] for name in sorted(sources)],
    }


def _vocabulary(project: Project, vocabulary: str) -> dict[str, Any]:
    block = project.block("vocabulary", vocabulary)
    return without(block, "description", "data", "embedded", "dictionary", "released")


def _selection(project: Project, selection: str) -> dict[str, Any]:
    block = project.block("selection", selection)
    return {"name": selection, **without(block, "description", "data", "embedded", "vocabulary")}


def _tokenizer(project: Project, tokenizer: str) -> dict[str, Any]:
    return tokenizer_body(project.block("tokenizer", tokenizer))


def _tokenizer_sweep(project: Project, sweep: str) -> dict[str, Any]:
    block = project.block("tokenizer_sweep", sweep)
    types = []
    for name, entry in block["types"].items():
        where = f"{project.folder / 'tokenizer_sweeps' / sweep}.yaml: types.{name}.definition"
        taken = {"corpus": block["corpus"], "vocabulary_size": entry["sizes"][0]}
        if twice := sorted(taken.keys() & entry["definition"].keys()):
            raise ConfigError(f"{where}: {twice[0]}: the sweep itself says it")
        definition = tokenizer_body(validate({**entry["definition"], **taken}, "tokenizer", where))
        rest = without(entry, "definition", "reference")
        types.append({"name": name, "definition": without(definition, "vocabulary_size"), **rest})
    body = without(block, "description", "corpus", "types", "morphemes_data", "published")
    return {"name": sweep, **body, "types": types}


def _tokens(project: Project, corpus: str, tokenizer: str) -> dict[str, Any]:
    return {}


def _pretraining(project: Project, experiment: str, cell: str) -> dict[str, Any]:
    block = project.experiment(experiment)
    chosen = project.cell(experiment, cell)
    model = without(project.model_of(experiment, chosen.run), "description")
    pretraining = with_defaults(pretraining_of(block, chosen.run), "experiment", "pretraining")
    return {**continuation.settings_of(pretraining), "model": model, "seed": chosen.seed}


def _cost(project: Project, experiment: str) -> dict[str, Any]:
    block, compute, cluster = project.experiment(experiment), project.config["compute"], project.config["cluster"]
    embedded = project.config["embedded"]
    names = [cell.name for cell in project.cells(experiment)]
    suites = []
    for name in block["minimal_pairs"]:
        suite = project.block("suite", name)
        limit = embedded["pairs_per_paradigm"] if "embedded" in suite else None
        suites.append({"name": name, "pairs_per_paradigm": suite["pairs_per_paradigm"] or limit})
    tasks = []
    for name in block["finetuning"]["tasks"]:
        task, protocol = project.block("task", name), project.protocol_of(experiment, name)
        # Only two of the generated tasks are as long as that.
        key = "examples_per_task" if name in ("demo_acceptability", "demo_entailment") else "examples_per_suite_task"
        limit = embedded[key] if "embedded" in task else None
        runs = len(protocol["seeds"]) * len(protocol["learning_rates"])
        chosen = {key: protocol[key] for key in ("epochs", "max_length", "development_fraction")}
        tasks.append({"name": name, "examples": task["train_limit"] or limit, "seeds": runs, **chosen})
    return {
        "experiment": experiment,
        "vocabulary_size": project.block("tokenizer", block["tokenizer"])["vocabulary_size"],
        "plan": {
            "device": planned_device(project.config),
            # Without GPUs in the configuration the plan is for one device.
            "devices": cluster["nodes"] * max(1, cluster["gpus_per_node"]),
            "threads": compute["pretraining_threads"],
            "mfu": cluster["planned_mfu"],
            "keep_checkpoints": compute["keep_checkpoints"],
            "milestones": compute["milestones"],
        },
        "cells": [_cost_of_cell(project, experiment, name) for name in names],
        "suites": suites,
        "tasks": tasks,
    }


def _cost_of_cell(project: Project, experiment: str, cell: str) -> dict[str, Any]:
    chosen = project.cell(experiment, cell)
    done = continuation.first_step(project, experiment, chosen.run, chosen.seed)
    entry = {"cell": cell, "pretraining": _pretraining(project, experiment, cell)}
    return {**entry, "first_step": done} if done else entry


def _minimal_pairs(project: Project, suite: str, baseline: str | None = None) -> dict[str, Any]:
    body = {"suite": suite, **without(project.block("suite", suite), "description", "data", "embedded")}
    if baseline is None:
        return body
    external = without(project.block("baseline", baseline), "description", "data")
    return {**body, "model_kind": "transformers", "external": external}


def _perplexity(project: Project, experiment: str) -> dict[str, Any]:
    block = project.experiment(experiment)
    chosen = block["perplexity"]
    return {**chosen, "sequence_length": chosen["sequence_length"] or block["pretraining"]["sequence_length"]}


def _finetuning(project: Project, experiment: str, task: str) -> dict[str, Any]:
    transfer = [_task(project, name) for name in project.block("task", task)["transfer_tasks"]]
    own = _task(project, task)
    if own["head"]["kind"] in SEQUENCE_HEADS:
        options = project.experiment(experiment)["finetuning"]["head_options"]
        own["head"] = {**own["head"], "options": {**own["head"]["options"], **options}}
    # The first metric stands for a task: papers and pipelines report different ones of the same predictions.
    reported = project.reported_metric(experiment, task)
    own["metrics"] = [reported, *(metric for metric in own["metrics"] if metric != reported)]
    return {"task": own, "protocol": project.protocol_of(experiment, task), "transfer": transfer}


def _several_tasks(project: Project, experiment: str, batch: str) -> dict[str, Any]:
    tasks = task_batch(project, experiment, batch)
    # What a job of each task alone would be given, so that the results are the same.
    return {
        "tasks": {
            task: json.loads(stage_settings(project, "finetune", experiment=experiment, task=task)) for task in tasks
        }
    }


def _task(project: Project, task: str) -> dict[str, Any]:
    return task_body(task, project.block("task", task))


SLICES: dict[str, Callable[..., dict[str, Any]]] = {
    "generate_embedded_sources": _embedded,
    "register_source": _source,
    "build_vocabulary": _vocabulary,
    "select_text": _selection,
    "convert_corpus": _corpus,
    "sample_corpus": _sample,
    "group_sequences": _sequences,
    "describe_corpus": _card,
    "train_tokenizer": _tokenizer,
    "encode_corpus": _tokens,
    "select_tokenizer": _tokenizer_sweep,
    "write_cost": _cost,
    "pretrain": _pretraining,
    "score_minimal_pairs": _minimal_pairs,
    "measure_perplexity": _perplexity,
    "finetune": _finetuning,
    "finetune_tasks": _several_tasks,
    "summarise": analysis.summary_slice,
    "draw_figure": analysis.figure_slice,
    "tabulate_layer_contributions": analysis.probed_models_slice,
    "write_tables": analysis.tables_slice,
    "write_page": analysis.page_slice,
    "write_run_card": analysis.run_card_slice,
    "write_provenance": analysis.provenance_slice,
    "export_model": analysis.export_slice,
    "fill_sentences": analysis.filled_sentences_slice,
    "list_exported_models": analysis.exports_slice,
}
