"""The layouts by name, with the fields that each may ask a record for and the number of its inputs."""

from collections.abc import Callable
from dataclasses import dataclass

from hatchery.evaluation.tasks.formats.registry import text_fields
from hatchery.evaluation.tasks.layouts import copa, multirc, record, segments, wic
from hatchery.evaluation.tasks.layouts.layout import Context, LayOut
from hatchery.evaluation.tasks.settings import Layout, TaskSettings


@dataclass(frozen=True)
class LayoutDefinition:
    """One entry of the registry. `fields` is empty where the task names them; `choices` is the number of inputs."""

    make: Callable[[Context], LayOut]
    fields: tuple[str, ...] = ()
    choices: int | None = None


LAYOUTS: dict[Layout, LayoutDefinition] = {
    "segments": LayoutDefinition(segments.lay_out_segments),
    "copa": LayoutDefinition(copa.lay_out_copa, copa.FIELDS, copa.CHOICES),
    "multirc": LayoutDefinition(multirc.lay_out_multirc, multirc.FIELDS),
    "record": LayoutDefinition(record.lay_out_record, record.FIELDS),
    "wic": LayoutDefinition(wic.lay_out_wic, wic.FIELDS),
}


def used_fields(task: TaskSettings) -> frozenset[str]:
    """The top-level fields of a record that the task may ask for."""
    own = LAYOUTS[task.layout].fields or [name for field in text_fields(task) for name in segments.field_names(field)]
    checked = task.vocabulary.fields if task.vocabulary else ()
    names = {*own, task.label_field, *task.scored_rows, *task.group_fields, *task.facts, *checked}
    return frozenset(names | {name.split(".")[0] for name in names})
