"""Paths of the outputs of stages, from the patterns of their records."""

from collections.abc import Iterable
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.workflow.registry import SHARED, stage_of

CORPORA = {"sources": "convert_corpus", "sample": "sample_corpus", "sequences": "group_sequences"}
"""Stages that make corpora, by the key that names the corpus's source."""


class ReadablePath(str):
    """`results/<experiment>/<kind>/<run>/.../manifest.json`: a link to a shared result, with the names in its path.

    `names` are those of suite or task, if there is one. `jobs.py` computes the target of the link.
    """

    experiment: str
    kind: str
    run: str
    names: tuple[str, ...]

    def __new__(cls, experiment: str, kind: str, run: str, *names: str) -> "ReadablePath":
        """Return the path of a result of a run or of an imported model."""
        path = super().__new__(cls, "/".join(["results", experiment, kind, run, *names, "manifest.json"]))
        path.experiment, path.kind, path.run, path.names = experiment, kind, run, names
        return path


def readable_path(experiment: str, kind: str, place: str) -> ReadablePath:
    """Return the readable path of a target: `place` is `<run>`, `<run>/<suite>` and so on, depending on the kind.

    Raises ConfigError if the number of parts is wrong.
    """
    run, *names = place.split("/")
    named = SHARED[kind][1].names
    if len(names) != len(named):
        parts = "".join(f"/<{name}>" for name in named)
        raise ConfigError(
            f"results/{experiment}/{kind}/{place}: ask for results/{experiment}/{kind}/<run>{parts}/manifest.json"
        )
    return ReadablePath(experiment, kind, run, *names)


class Outputs:
    """Outputs of stages, for one job; functions of records get this object as `of`.

    `of("summarise", "parquet")` is the path of the output with this name, `of("encode_corpus")` that of the first
    output. The wildcards are those of the job and those added in the call. Results that experiments share have a
    readable path.
    """

    def __init__(self, project: Project, **wildcards: str) -> None:
        self.project = project
        self._wildcards = wildcards

    def __call__(self, stage: str, output: str = "", **wildcards: str) -> str:
        """Return the path of an output. Raises ConfigError for an unknown stage."""
        record, values = stage_of(stage), self._wildcards | wildcards
        if record.shared is not None and "run" in values:
            names = (values[name] for name in record.shared.names)
            return ReadablePath(values["experiment"], record.shared.folder, values["run"], *names)
        pattern = record.outputs[output] if output else record.first_output
        return str(pattern).format(**values)

    def each(self, stage: str, output: str = "", **values: str | Iterable[str]) -> dict[str, str]:
        """Return paths by the values of the one wildcard that has a list of values."""
        fixed = {name: value for name, value in values.items() if isinstance(value, str)}
        [(wildcard, names)] = ((name, value) for name, value in values.items() if not isinstance(value, str))
        return {name: self(stage, output, **fixed, **{wildcard: name}) for name in names}

    def table(self, name: str, **wildcards: str) -> str:
        """Return the path of a tidy table, or of the summary as a table."""
        return self(*(("summarise", "parquet") if name == "summary" else ("collect_measurements", name)), **wildcards)

    def corpus(self, corpus: str) -> str:
        """Return the path of a corpus's manifest."""
        return self(CORPORA[self.project.corpus(corpus).made_from], corpus=corpus)

    def part(self, corpus: str, made_from: str) -> Any:
        """Return the source of a corpus. Raises ConfigError if the corpus has another kind of source."""
        block = self.project.corpus(corpus)
        if block.made_from != made_from:
            raise ConfigError(f"the corpus {corpus!r} is made from `{block.made_from}`; ask for {self.corpus(corpus)}")
        return getattr(block, made_from)

    def source(self, name: str | None) -> list[str]:
        """Return the source manifest of a raw input of config.yaml in a list; an empty list without a name."""
        return [] if name is None else [self("register_source", source=name)]
