"""Generated results of shipped experiments at the workflow's paths, and the views made from these results.

Settings, inputs and paths are the workflow's; only the numbers are generated.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from generated_results import GENERATED, Asked, Files, block_of, counted, drawn

from hatchery.analysis.babylm_scores import RowCount
from hatchery.artifacts.atomic import write_bytes, write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.artifacts.records import read_records
from hatchery.evaluation.evaluation import Result
from hatchery.experiment.continuation import origin_of
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.runner import run_given
from hatchery.stage import function_of
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.registry import SHARED

GENERATED_TEXT = "generated/manifest.json"
"""The manifest that replaces tokenizers and the sources of evaluations."""
STEPS = 40
"""Planned steps of trainings whose budget counts words."""
WHOLE = "babylm_2026_strict_small"
"""The experiment whose submission has the official numbers of rows; in others there are at most two of each name."""
FORMS = {"parquet": "parquet", "markdown": "md", "text": "txt", "latex": "tex"}


class Workflow:
    """The shipped project's jobs in a separate folder, which receives generated results and views."""

    def __init__(self, project: Project) -> None:
        """The current directory must be this folder and contain the project's `config`."""
        self.jobs, self.project = Jobs(project), project
        counts = project.folder / "published/babylm/row_counts.csv"
        self.rows = counted(read_records(counts, RowCount, ("set", "block", "uid")))
        """The numbers of rows of BabyLM's files."""
        self.paradigms: dict[str, list[str]] = {}
        """Paradigms of the suites that do not have the default paradigms."""
        self._made: set[tuple[str, ...]] = set()

    # Results ---------------------------------------------------------------------------------------------------------

    def generate(self, experiment: str, only: str = "") -> None:
        """Write the models and evaluations of an experiment, or of one run and its milestones."""
        if ("results", experiment, only) in self._made:
            return
        self._made.add(("results", experiment, only))
        with pytest.MonkeyPatch.context() as patch:
            # Without fsync, because thousands of small files need not survive a power failure.
            patch.setattr(os, "fsync", lambda descriptor: None)
            self._generate(experiment, only)

    def _generate(self, experiment: str, only: str) -> None:
        results, milestones = self.jobs.results, self.project.milestones(experiment)
        for path in (results.tokens(experiment), results.corpus(experiment), GENERATED_TEXT):
            with stage_run(path, {"stage": path}):
                pass
        for run in self.project.seeded_runs(experiment):
            if only in ("", run.name):
                self._train(experiment, run)
        for name in self.project.experiment(experiment).baselines:
            with stage_run(f"results/{experiment}/baselines/{name}/manifest.json", {"architecture": "causal"}) as job:
                job.measures.update(parameters=5_000_000, layers=12, hidden_size=64, embedding_size=64, tied=True)
        models = results.models(experiment)
        for run in milestones.values():
            if only in ("", run.milestone_of):
                with stage_run(models[run.name], json.loads(self._training(experiment, run.milestone_of))) as job:
                    job.measures.update(parameters=1000, steps=run.step, words_seen=run.words)
        for result, path in results.evaluations(experiment).items():
            of = milestones[result.run].milestone_of if result.run in milestones else result.run
            if only in ("", of):
                self._evaluate(experiment, result, of, path, models[result.run])

    def _training(self, experiment: str, run: str) -> str:
        return self.jobs.settings("pretrain", experiment=experiment, run=run)

    def _train(self, experiment: str, run: SeededRun) -> None:
        if ("training", experiment, run.name) in self._made:
            return
        self._made.add(("training", experiment, run.name))
        settings = json.loads(self._training(experiment, run.name))
        origin = origin_of(self.project, experiment, run.model, run.seed)
        initial = {}
        if origin is not None:
            self._train(origin.experiment, self.project.seeded_run(origin.experiment, origin.name))
            initial["initial_model"] = self.jobs.results.models(origin.experiment)[origin.name]
        planned, translates = settings.get("steps", STEPS), settings["objective"].get("task") == "translation"
        model = dict(settings["model"])
        layers = model["num_hidden_layers"]
        marks = {one.milestone: one.words for _, one in self.project.checkpoints(experiment, run.name)}
        steps = sorted({*(round(planned * part / 8) for part in range(9)), *settings.get("milestones", ())})
        places = {name: {"step": steps[-1], "words": words} for name, words in marks.items()}
        rows = [self._step(run, step, planned, settings, translates) for step in steps] if planned else []
        files: Files = {
            "metrics.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            "config.json": json.dumps({**model, "vocab_size": 100}),
        }
        if model.get("layer_weighting", "none") not in ("none", "unrestricted"):
            pairs = [(consumer, layer) for consumer in range(1, layers + 1) for layer in range(consumer)]
            weights = [
                {"consuming_layer": n, "producing_layer": i, "scaled_weight": drawn(run.name, n, i)} for n, i in pairs
            ]
            files["layer_weights.json"] = json.dumps({"rows": weights})
        path = Path(self.jobs.results.models(experiment)[run.name])
        with stage_run(path, settings, {"tokenizer": GENERATED_TEXT, **initial}) as job:
            # Sizes differ, so that losses can be fitted to sizes.
            size = layers * model["hidden_size"] ** 2 * 12
            words = max(marks.values(), default=1000 * planned)
            job.measures.update(parameters=size, steps=planned, tokens=1000 * planned, words=words, marks=places)
            job.measures.update(planned_steps=planned)
            job.volatile["training_seconds"] = 100.0
            for name, text in files.items():
                write_text(job.add_output(path.with_name(name)), str(text))

    def _step(self, run: SeededRun, step: int, planned: int, settings: Any, translates: bool) -> dict[str, Any]:
        size = settings["model"]["hidden_size"]
        loss = 2 + 30 / size + 4 / (1 + step) + drawn(run.name) / 10
        row = {"step": step, "tokens": 1000 * step, "words": 500 * step, "loss": loss, "learning_rate": 0.001}
        row |= {"development_loss": loss + 0.1, "development_perplexity": 2.0 ** (loss + 0.1), "nll": loss}
        if settings.get("divergences"):
            row |= {name: drawn(run.name, name, step) for name in ("kl_unigram", "kl_uniform", "kl_empirical")}
            row |= {name: drawn(run.name, name) for name in ("reverse_kl_unigram", "reverse_kl_uniform")}
        if settings.get("bias_drift"):
            names = ("bias_kl_unigram", "reverse_bias_kl_unigram", "bias_norm", "centred_bias_norm", "bias_change")
            row |= {name: drawn(run.name, name, step) for name in (*names, "largest_bias_change")}
        if translates:
            row |= {"development_bleu": 30.0 * step / planned, "development_chrf": 50.0 * step / planned}
        return row

    def _evaluate(self, experiment: str, result: Result, of: str, place: str, model: str) -> None:
        stage, shared = SHARED[result.kind]
        names = dict.fromkeys(shared.names, result.name)
        settings = json.loads(self.jobs.settings(stage.name, experiment=experiment, run=of, **names))
        asked = Asked(result, settings, paradigms=self.paradigms.get(result.name, []))
        if result.kind == "minimal_pairs":
            asked.format = self.project.suite(result.name).format
        if self.project.experiment(experiment).submission is not None and result.run == of:
            rows = self.rows.get(block_of(result), {})
            asked.rows = rows if experiment == WHOLE else {uid: min(2, count) for uid, count in rows.items()}
            asked.checkpoints = [one.milestone for _, one in self.project.checkpoints(experiment, of)]
        files, measures = GENERATED[result.kind](asked)
        path = Path(place)
        with stage_run(path, settings, {"model": model, "source": GENERATED_TEXT}) as job:
            job.measures.update(measures)
            for name, content in files.items():
                write: Any = write_bytes if isinstance(content, bytes) else write_text
                write(job.add_output(path.with_name(name)), content)

    # Views -----------------------------------------------------------------------------------------------------------

    def make(self, stage: str, output: str, **more: Any) -> Path:
        """Run the job of a view once, as the workflow plans it; `more` are wildcards, and `places` further paths."""
        places = more.pop("places", {})
        if (stage, output) not in self._made:
            self._made.add((stage, output))
            call = self.jobs.call(stage, **more)
            given = {**call.arguments, **places, "settings": json.loads(call.settings), "output": output}
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            run_given(function_of(stage), given)
        return Path(output)

    def collect(self, experiment: str, only: str = "") -> Path:
        """Write the tidy tables of an experiment, or of a study and its members, with all models or one model."""
        output = f"results/{experiment}/measurements.parquet"
        if self.project.is_study(experiment):
            for part in self.project.members(experiment):
                self.collect(part)
            return self.make("join_experiments", output, experiment=experiment)
        self.generate(experiment, only)
        if not only:
            return self.make("collect_measurements", output, experiment=experiment)
        call = self.jobs.call("collect_measurements", experiment=experiment)
        settings, given = json.loads(call.settings), dict[str, Any](call.arguments)
        settings["runs"] = [run for run in settings["runs"] if only in (run["name"], run.get("milestone_of"))]
        names = {run["name"] for run in settings["runs"]}
        given["model"] = {name: path for name, path in given["model"].items() if name in names}
        given["evaluation"] = {
            key: path for key, path in given["evaluation"].items() if Result.of_key(key).run in names
        }
        run_given(function_of("collect_measurements"), {**given, "settings": settings, "output": output})
        return Path(output)

    def summarise(self, experiment: str) -> Path:
        """Write the summary in all its forms; return the path of the Parquet file."""
        self.collect(experiment)
        folder = Path("results", experiment)
        places = {name: str(folder / f"summary.{ending}") for name, ending in FORMS.items()}
        places["notes"] = str(folder / "summary_notes.json")
        self.make("summarise", str(folder / "summary.csv"), experiment=experiment, places=places)
        return folder / "summary.parquet"

    def measure_corpora(self, experiment: str) -> None:
        """Write the statistics of the corpora of an experiment."""
        for manifest in self.jobs.results.of.each("describe_corpus", corpus=self.project.cards(experiment)).values():
            with stage_run(manifest, {}) as job:
                file = job.add_output(Path(manifest).with_name("statistics.csv"))
                write_text(file, "source,split,documents,subwords\n(all),train,4013,5000\n(all),dev,40,50\n")
                write_text(job.add_output(file.with_name("card.html")), "")
                sizes = {"documents": 4013, "sentences": 50_000, "words": 600_000, "characters": 3_000_000}
                job.measures["train"] = sizes
