"""Paths of the stages' outputs, built from the path patterns in the stages' records."""

from collections.abc import Iterable
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.workflow.registry import SHARED, stage_of

CORPORA = {"sources": "convert_corpus", "sample": "sample_corpus", "sequences": "group_sequences"}
"""The stage that makes a corpus, by the key (`sources`, `sample` or `sequences`) in the corpus's configuration file
that states from what the corpus is made.
"""


class ReadablePath(str):
    """Path `results/<experiment>/<kind>/<run>/.../manifest.json`, a link to a result that experiments can share.

    The attributes are the components of the path. `names` contain the suite or task, if there is one. `jobs.py`
    computes the target of the link.
    """

    experiment: str
    kind: str
    run: str
    names: tuple[str, ...]

    def __new__(cls, experiment: str, kind: str, run: str, *names: str) -> "ReadablePath":
        """Return the path of a result of a run or of an external model."""
        path = super().__new__(cls, "/".join(["results", experiment, kind, run, *names, "manifest.json"]))
        path.experiment, path.kind, path.run, path.names = experiment, kind, run, names
        return path


def readable_path(experiment: str, kind: str, place: str) -> ReadablePath:
    """Return the readable path of a result. Depending on the kind, `place` is `<run>`, `<run>/<suite>` or
    `<run>/<task>`.

    Raises ConfigError if `place` has too few or too many components.
    """
    run, *names = place.split("/")
    named = SHARED[kind][1].names
    if len(names) != len(named):
        parts = "".join(f"/<{name}>" for name in named)
        raise ConfigError(
            f"results/{experiment}/{kind}/{place}: expected results/{experiment}/{kind}/<run>{parts}/manifest.json"
        )
    return ReadablePath(experiment, kind, run, *names)


class Outputs:
    """Paths of outputs of stages, for one job; functions in a stage's record receive this object as the argument `of`.

    `of("summarise", "parquet")` returns the path of the stage's output `parquet`, and `of("encode_corpus")` returns the
    path of the stage's first output. Wildcards have the values of the job, unless keyword arguments replace these
    values. If experiments can share the result, the path of a link with readable names (`ReadablePath`) is returned
    instead of the path with a digest.
    """

    def __init__(self, project: Project, **wildcards: str) -> None:
        self.project = project
        self._wildcards = wildcards

    def __call__(self, stage: str, output: str = "", **wildcards: str) -> str:
        """Return the path of a stage's output. Raises ConfigError for an unknown stage."""
        record, values = stage_of(stage), self._wildcards | wildcards
        if record.shared is not None and "run" in values:
            names = (values[name] for name in record.shared.names)
            return ReadablePath(values["experiment"], record.shared.folder, values["run"], *names)
        pattern = record.outputs[output] if output else record.first_output
        return str(pattern).format(**values)

    def each(self, stage: str, output: str = "", **values: str | Iterable[str]) -> dict[str, str]:
        """Return the paths of a stage's output for several values of one wildcard; the keys are the values of this
        wildcard.

        Keyword arguments are wildcards. The value of exactly one wildcard is a list, and the other values are texts.
        """
        fixed = {name: value for name, value in values.items() if isinstance(value, str)}
        [(wildcard, names)] = ((name, value) for name, value in values.items() if not isinstance(value, str))
        return {name: self(stage, output, **fixed, **{wildcard: name}) for name in names}

    def table(self, name: str, **wildcards: str) -> str:
        """Return the path of a tidy table, or of summary.parquet."""
        return self(*(("summarise", "parquet") if name == "summary" else ("collect_measurements", name)), **wildcards)

    def corpus(self, corpus: str) -> str:
        """Return the path of a corpus's manifest."""
        return self(CORPORA[self.project.corpus(corpus).made_from], corpus=corpus)

    def part(self, corpus: str, made_from: str) -> Any:
        """Return the value of the key `made_from` in a corpus's configuration file.

        `made_from` is `sources`, `sample` or `sequences`; each file contains only one of these three keys. Raises
        ConfigError if the file contains a different one of the keys.
        """
        block = self.project.corpus(corpus)
        if block.made_from != made_from:
            raise ConfigError(
                f"the corpus {corpus!r} is made from `{block.made_from}`, so its manifest has another path; request "
                f"{self.corpus(corpus)}"
            )
        return getattr(block, made_from)

    def source(self, name: str | None) -> list[str]:
        """Return a list with the manifest of the registered raw input `name`; empty if `name` is None."""
        return [] if name is None else [self("register_source", source=name)]
