"""An experiment's file with every run written out: the rows of its grid, the values of sweeps, what all runs share.

`learning_rate: {sweep: [0.005, 0.01]}` in a run, or in an experiment's `pretraining`, makes a run per value; several
sweeps make all combinations, in the order in which they stand in the file. Everything is written out before the
experiment is validated, so runs are judged by the same rules as if somebody had typed them, and nobody else ever sees a
grid, a sweep, or a run that is not whole.
"""

import copy
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.grids_and_sweeps import (
    MODEL_CHANGES,
    PRETRAINING,
    MadeRun,
    Sweep,
    refuse_elsewhere,
    rows_of_grid,
    says,
    shortest,
    slug,
    sweeps_below,
    text_of,
)
from hatchery.experiment.written_blocks import Document, merged


@dataclass
class Expansion:
    """An experiment with its runs written out, and of each run where the file has it and what made it."""

    document: Document
    runs: dict[str, MadeRun] = field(default_factory=dict)
    models: dict[str, Document] = field(default_factory=dict)
    """The models that stand in the file, by the runs that they stand in."""
    own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each run says itself of its pretraining."""
    shared: set[str] = field(default_factory=set)
    """The keys that the experiment's own sweeps stand at."""

    def as_in_the_file(self, message: str) -> str:
        """The lines of an error with the places where the file has them; what runs only take over is told once."""
        lines = message.splitlines()
        found: dict[str, None] = {}
        for line in lines:
            taken = re.sub(rf": runs\.\w+\.{PRETRAINING}", f": {PRETRAINING}", line)
            place = re.search(rf": ({PRETRAINING}\.[\w.]+)", taken)
            if taken in lines or (place is not None and place[1] in self.shared):
                line = taken
            found[re.sub(r"\bruns\.(\w+)", self._place, line)] = None
        return "\n".join(found)

    def _place(self, match: re.Match[str]) -> str:
        made = self.runs.get(match[1])
        return match[0] if made is None else made.place

    def labels(self) -> dict[str, str]:
        """The names for people of the runs that sweeps or a grid made, by run: `ltg_bert, learning_rate 0.005`."""
        return {run: made.label for run, made in self.runs.items() if made.label}

    def swept(self) -> dict[str, str]:
        """The runs that sweeps made, each with the name of the run that they come from."""
        return {run: made.base for run, made in self.runs.items() if made.values}

    def sets(self) -> dict[str, str]:
        """The set of each run that a grid made: `set_1`. Runs that were made without a grid are in none."""
        return {run: made.set for run, made in self.runs.items() if made.set}

    def swept_values(self) -> dict[str, dict[str, object]]:
        """The runs that sweeps or a grid made: `line`, what they have in common, and the swept `values` by key.

        What a grid makes has its size for a value, which its name does not tell.
        """
        return {
            run: {
                "line": " ".join(filter(None, [made.set, made.variant])) or made.base,
                "sized": bool(made.set),
                "values": {
                    key: value if isinstance(value, int | float) and not isinstance(value, bool) else text_of(value)
                    for key, value in made.values.items()
                },
            }
            for run, made in self.runs.items()
            if made.set or made.values
        }


def write_out(name: str, experiment: Mapping[str, Any], where: str) -> Expansion:
    """The experiment `name` of the file `where`, as it was read, with all its runs, which say everything themselves.

    Rows under `published` that name a run with sweeps stand beside all its runs. Raises ConfigError, with what to do,
    for a grid that is wrong in itself, and for a sweep in another place, without values, with equal values, or whose
    runs' names are taken.
    """
    result = Expansion(copy.deepcopy(dict(experiment)))
    document, runs, made = result.document, experiment.get("runs"), dict[str, MadeRun]()
    if isinstance(experiment.get("grid"), Mapping) and "runs" not in experiment:
        runs = {}
        for run, entry, row in rows_of_grid(document.pop("grid"), where):
            runs[run], made[run] = entry, row
        experiment = {**document, "runs": runs}
    refuse_elsewhere(experiment, where)
    if not isinstance(runs, Mapping):
        return result
    shared = sweeps_below(experiment.get(PRETRAINING), PRETRAINING, where, of_experiment=True)
    result.shared = {sweep.place for sweep in shared}
    for sweep in shared:
        # What the experiment says for all; every run says its own.
        _set_or_remove(document[PRETRAINING], sweep.path, sweep.values[0])
    document["runs"] = {}
    for base, run in runs.items():
        scopes = [scope for scope in run if scope in (PRETRAINING, MODEL_CHANGES)] if isinstance(run, Mapping) else []
        place = f"{where}: runs.{base}"
        own = [sweep for scope in scopes for sweep in sweeps_below(run[scope], scope, place, of_experiment=False)]
        inherited = [sweep for sweep in shared if isinstance(run, Mapping) and not says(run, sweep)]
        first_runs = list(experiment).index("runs") < list(experiment).index(PRETRAINING) if shared else False
        sweeps = [*own, *inherited] if first_runs else [*inherited, *own]
        for chosen in itertools.product(*(sweep.values for sweep in sweeps)):
            _add_run(result, made.get(base) or MadeRun(f"runs.{base}", base), run, sweeps, chosen, runs, where)
    _spread_rows(document, result.swept())
    for run, entry in document["runs"].items():
        if isinstance(entry, Mapping):
            document["runs"][run] = _whole(result, name, run, entry)
    return result


def _whole(result: Expansion, experiment: str, run: str, entry: Mapping[str, Any]) -> Document:
    """A run with what all runs share; a model that stands in it is called after both, as no file can be."""
    whole, shared, own = dict(entry), result.document.get(PRETRAINING), entry.get(PRETRAINING, {})
    if isinstance(own, Mapping):
        result.own[run] = own
        whole.pop(PRETRAINING, None)
        if PRETRAINING in result.document:
            whole[PRETRAINING] = merged(shared, own) if isinstance(shared, Mapping) else shared
    if isinstance(entry.get("model"), Mapping):
        result.models[run], whole["model"] = entry["model"], f"{experiment}.{run}"
    return whole


def _add_run(
    result: Expansion,
    made: MadeRun,
    run: Any,
    sweeps: Sequence[Sweep],
    chosen: Sequence[Any],
    taken: Collection[str],
    where: str,
) -> None:
    changed = copy.deepcopy(run)
    name, label, values = made.base, made.label or made.base, Document()
    for sweep, value in zip(sweeps, chosen, strict=True):
        # `pretraining:` without anything is null.
        if changed.get(sweep.scope) is None:
            changed[sweep.scope] = {}
        _set(changed[sweep.scope], sweep.path, value)
        key = ".".join(shortest(sweep, sweeps))
        name = f"{name}_{slug(key.replace('.', '_'))}_{slug(text_of(value))}"
        label = f"{label}, {key} {text_of(value)}"
        values[key] = value
    if sweeps:
        if name in taken:
            raise ConfigError(
                f"{where}: runs.{name}: the sweeps of runs.{made.base} make a run of this name too; rename one of the "
                "two"
            )
        if name in result.runs:
            places = ", ".join(sweep.place for sweep in sweeps)
            raise ConfigError(
                f"{where}: runs.{made.base}: two runs of the sweeps would be called {name!r}; rename the run "
                f"{made.base!r}, or give values of {places} that differ in letters or digits"
            )
        made = replace(made, label=label, values=values)
    result.document["runs"][name], result.runs[name] = changed, made


def _spread_rows(document: Document, bases: Mapping[str, str]) -> None:
    """A published row of a run with sweeps stands beside all its runs, unless one of them has a row of its own."""
    published = document.get("published")
    if not isinstance(published, Mapping) or not isinstance(published.get("rows"), Mapping):
        return
    rows: Document = {}
    for model, row in published["rows"].items():
        for run in [run for run, base in bases.items() if base == model] or [model]:
            rows.setdefault(run, row)
            if run == model:
                rows[run] = row
    document["published"] = {**published, "rows": rows}


def _set(tree: Document, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    tree[path[-1]] = copy.deepcopy(value)


def _set_or_remove(tree: Document, path: tuple[str, ...], value: Any) -> None:
    """Keys of one value must not be inherited by the runs with another one, so a value with keys is left out."""
    if not isinstance(value, Mapping):
        _set(tree, path, value)
        return
    for key in path[:-1]:
        tree = tree[key]
    del tree[path[-1]]
