"""Readable paths of the results of an experiment or a study."""

from functools import cache, partial

from hatchery.evaluation.evaluation import Result
from hatchery.evaluation.kinds import evaluations
from hatchery.experiment.continuation import origin_of, path_of
from hatchery.experiment.distillation import order_model_of, teachers_of
from hatchery.experiment.milestones import is_asked
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import about, data_read, readings
from hatchery.typed import plain
from hatchery.workflow.outputs import Outputs, ReadablePath


class ResultPaths:
    """Paths of the models and evaluations of experiments.

    Functions in a stage's record receive this object as the argument `results`. A model is identified by the name of
    its run, which includes the seed.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.of = Outputs(project)
        self._data_read = cache(lambda experiment: tuple(data_read(project, experiment)))

    def corpus(self, experiment: str) -> str:
        """Return the manifest of the corpus (documents) on which an experiment pretrains its models."""
        return self.of.corpus(self.project.experiment(experiment).corpus)

    def tokens(self, experiment: str) -> str:
        """Return the manifest of the token shards on which an experiment pretrains its models."""
        block = self.project.experiment(experiment)
        return self.of("encode_corpus", corpus=block.corpus, tokenizer=block.tokenizer)

    def models(self, experiment: str) -> dict[str, str]:
        """Return the manifests of all models that an experiment evaluates; keys are names of runs and of external
        models.
        """
        baselines = self.project.experiment(experiment).baselines
        others = {name: ReadablePath(experiment, "baselines", name) for name in baselines}
        milestones = self.project.milestones(experiment)
        return (
            self._own_models(experiment)
            | others
            | {name: ReadablePath(experiment, "pretraining", name) for name in milestones}
        )

    def _own_models(self, experiment: str, kind: str = "pretraining") -> dict[str, str]:
        names = [run.name for run in self.project.seeded_runs(experiment)]
        return {name: ReadablePath(experiment, kind, name) for name in names}

    def pretrained(self, experiment: str) -> dict[str, str]:
        """Return the manifests of the pretrained models of an experiment or a study, by name of the run."""
        return self.project.for_members(experiment, self._own_models)

    def filled_sentences(self, experiment: str) -> dict[str, str]:
        """Return the manifests of the stage `fill_sentences` for all models of an experiment or a study, by name of the
        run.
        """
        return self.project.for_members(experiment, partial(self._own_models, kind="filled_sentences"))

    def shown_sentences(self, experiment: str) -> dict[str, str]:
        """Return the manifests of the filled sentences that the page shows, by name of the run.

        If a model has several pretraining seeds, only the sentences of the run with the first seed are shown.
        """
        return self.project.for_members(experiment, self._sentences_of_first_seeds)

    def _sentences_of_first_seeds(self, experiment: str) -> dict[str, str]:
        first: dict[str, str] = {}
        for run in self.project.seeded_runs(experiment):
            first.setdefault(run.model, run.name)
        return {name: ReadablePath(experiment, "filled_sentences", name) for name in first.values()}

    def evaluations(self, experiment: str) -> dict[Result, str]:
        """Return the manifests of all evaluations of an experiment.

        The kinds of evaluation are in the order in which tables show the kinds. Within a kind, evaluations are sorted
        by model.
        """
        block, runs = self.project.experiment(experiment), self.project.evaluated_runs(experiment)
        milestones = self.project.milestones(experiment).values()
        found = []
        for kind, evaluation in evaluations().items():
            names = {run.name: list(evaluation.asked(block, run)) for run in runs}
            found += [Result(kind, run, name) for run in names for name in names[run]]
            found += [
                Result(kind, run.name, name)
                for run in milestones
                for name in names[run.milestone_of]
                if is_asked(block, kind, name)
            ]
        return {result: ReadablePath(experiment, *filter(None, result)) for result in found}

    def of_kind(self, experiment: str, kind: str) -> dict[str, str]:
        """Return the manifests of the evaluations of one kind.

        The key is `<run>:<name of the suite or task>`, or `<run>` if the kind has no suites or tasks. Evaluations of
        milestones are not included.
        """
        found, milestones = self.evaluations(experiment), self.project.milestones(experiment)
        chosen = {one: path for one, path in found.items() if one.kind == kind and one.run not in milestones}
        return {result.name_within_kind: path for result, path in chosen.items()}

    def initial_model(self, experiment: str, run: str) -> list[str]:
        """Return a list with the manifest of the model from which a run's pretraining starts; empty for random initial
        weights.
        """
        chosen = self.project.seeded_run(experiment, run)
        given = path_of(self.project, self.project.experiment(experiment).runs[chosen.model].pretraining)
        if given is not None:
            return [given]
        origin = origin_of(self.project, experiment, chosen.model, chosen.seed)
        return [] if origin is None else [self.pretrained(origin.experiment)[origin.name]]

    def teachers(self, experiment: str, run: str) -> list[str]:
        """Return the manifests of the models from which a run learns (teachers), or of the members of an ensemble, in
        the order of the run's settings.
        """
        chosen = self.project.seeded_run(experiment, run)
        found = teachers_of(self.project, experiment, chosen.model, chosen.seed)
        return [one if isinstance(one, str) else self.pretrained(one.experiment)[one.name] for one in found]

    def order_model(self, experiment: str, run: str) -> list[str]:
        """Return a list with the manifest of the model whose loss determines the order of a pretraining's text.

        Empty if the order of the text does not depend on a model.
        """
        chosen = self.project.seeded_run(experiment, run)
        found = order_model_of(self.project, experiment, chosen.model, chosen.seed)
        return [one if isinstance(one, str) else self.pretrained(one.experiment)[one.name] for one in found]

    def about_source(self, source: str) -> dict[str, object]:
        """Return information on a raw input: `about` contains its origin, licence and terms, and `readings` contains
        the suites and tasks that read it, with their settings.
        """
        experiments = [name for kind, name in self.project.checked if kind == "experiment"]
        data = (read for experiment in experiments for read in self._data_read(experiment))
        return {"about": about(self.project, source), "readings": plain(readings(data, source))}
