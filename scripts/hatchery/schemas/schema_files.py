"""JSON Schemas of classes of settings, for editors and for people: keys, types, ranges, defaults, and a sentence each.

They are written from the classes, and nothing validates with them: `hatchery.typed` does that with the same classes.
"""

import inspect
from pathlib import Path
from typing import Any

import yaml
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from hatchery.analysis.analyses.registry import analysis_called, analysis_names
from hatchery.experiment.evaluation_files import Variant
from hatchery.experiment.kinds import FILES, FOLDERS
from hatchery.experiment.text_files import TokenizerFile
from hatchery.settings.fields import ABSENT, OneOfKeys, sentences
from hatchery.typed import adapter

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SWEEP = "#/$defs/with_sweep"
_WITH_SWEEP = {
    "description": "Holds `{sweep: [value, ...]}` somewhere; the workflow makes a run of every value.",
    "type": "object",
    "anyOf": [{"required": ["sweep"]}, {"not": {"additionalProperties": {"not": {"$ref": _SWEEP}}}}],
}


class _Generator(GenerateJsonSchema):
    """Adds to pydantic's schemas what is said beside the types."""

    def default_schema(self, schema: Any) -> Any:
        if schema.get("default") is ABSENT:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dataclass_schema(self, schema: Any) -> Any:
        return _described(super().dataclass_schema(schema), schema["cls"], partial=False)

    def typed_dict_schema(self, schema: Any) -> Any:
        return _described(super().typed_dict_schema(schema), schema["cls"].settings, partial=True)


def _described(result: JsonSchemaValue, cls: Any, partial: bool) -> JsonSchemaValue:
    described = sentences(cls)
    for key, rules in result.get("properties", {}).items():
        # Beside a reference other keys are allowed, too.
        result["properties"][key] = {"description": described[key], **rules} if key in described else rules
    result["description"] = inspect.cleandoc(cls.__doc__).replace("\n", " ")
    if not partial and issubclass(cls, OneOfKeys) and len(cls.ONE_OF) > 1:
        result["oneOf"] = [{"required": list(group)} for group in cls.ONE_OF]
    return result


def json_schema(cls: Any, title: str) -> JsonSchemaValue:
    """The JSON Schema of a class of settings."""
    made = adapter(cls).json_schema(schema_generator=_Generator)
    made = _for_editors({key: value for key, value in made.items() if key != "title"})
    if _SWEEP in str(made):
        made["$defs"]["with_sweep"] = _WITH_SWEEP
    return {"$schema": DIALECT, "title": title, **made}


def _for_editors(rules: Any) -> Any:
    """Without pydantic's titles; a choice of classes lets editors choose; what can be swept may hold a sweep."""
    if isinstance(rules, list):
        return [_for_editors(item) for item in rules]
    if not isinstance(rules, dict):
        return rules
    rules = {key: _for_editors(value) for key, value in rules.items() if key != "title" or isinstance(value, dict)}
    if any("$ref" in choice for choice in rules.get("oneOf", ())):
        # A value that leaves out the key by which classes are chosen may fit several.
        rules = {"anyOf" if key == "oneOf" else key: value for key, value in rules.items() if key != "discriminator"}
    choices = rules.get("anyOf", [])
    if len(choices) == 2 and choices[1] == {"type": "null"} and "type" in choices[0]:
        # One line where null is possible, too.
        more = rules.pop("anyOf")[0]
        null = {"enum": [*more["enum"], None]} if "enum" in more else {"type": [more["type"], "null"]}
        rules |= {key: value for key, value in more.items() if key != "type"} | null
    if rules.pop("x-sweepable", False):
        kept = {key: rules.pop(key) for key in ("description", "default") if key in rules}
        rules = {**kept, "anyOf": [rules, {"$ref": _SWEEP}]}
    first = {key: rules[key] for key in ("description", "type") if isinstance(rules.get(key), str)}
    return first | rules


def as_yaml(schema: JsonSchemaValue) -> str:
    """A schema as its file holds it."""
    head = "# Written by `make schemas` from the classes of settings; edit those.\n"
    return head + yaml.dump(
        schema, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True
    )


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def schema_texts() -> dict[Path, str]:
    """The schema files for editors, by their paths, as they have to be."""
    return {SCHEMAS / f"{kind}.schema.yaml": as_yaml(schema) for kind, schema in file_schemas().items()}


def file_schemas() -> dict[str, JsonSchemaValue]:
    """The schema of every kind of file."""
    titles = {kind: f"config/{folder}/<name>.yaml" for kind, folder in FOLDERS.items()}
    titles["config"] = "config/config.yaml"
    made = {kind: json_schema(FILES[kind], titles[kind]) for kind in FILES}
    entries = made["study"]["properties"]["analyses"]["patternProperties"]
    entries |= dict.fromkeys(entries, _analyses(made["study"]))
    variant = made["task"]["$defs"][f"Partial{Variant.__name__}"]["properties"]
    # What is null is not taken from the base.
    null = {"type": "null"}
    variant |= {
        key: {"description": rules.pop("description"), "anyOf": [rules, null]} for key, rules in variant.items()
    }
    # Without a corpus it is trained on that of the experiment.
    del made["experiment"]["$defs"][TokenizerFile.__name__]["oneOf"]
    return made


def _analyses(study: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of an entry of a study: the settings of one of the analyses, whose classes the study's cannot name."""
    entries = []
    for name in analysis_names():
        entry = json_schema(analysis_called(name).settings, name)
        study.setdefault("$defs", {}).update(entry.pop("$defs", {}))
        entry["properties"]["analysis"]["enum"] = [name]
        entries.append({key: rules for key, rules in entry.items() if key != "$schema"})
    return {"anyOf": entries}
