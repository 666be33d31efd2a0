"""Generates JSON Schemas for editors, and docs/settings.md for readers, from the settings classes.

The schemas and the page contain keys, types, ranges, defaults, and a sentence on each key. Hatchery does not validate
with the schemas: `hatchery.typed` validates with the settings classes.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from hatchery.analysis.analyses.analysis import analysis_called, analysis_names
from hatchery.evaluation.tasks.settings import ProtocolChoice
from hatchery.experiment.kinds import FILES, FOLDERS, SuiteVariant, Variant
from hatchery.experiment.text_files import TokenizerFile
from hatchery.settings.base import BOUNDS
from hatchery.settings.fields import ABSENT, OneOfKeys, members_of, sentences
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.typed import adapter
from hatchery.views.paper_tables.layout import PaperLayout

VARIANTS = {Variant.__name__: "task", SuiteVariant.__name__: "suite"}
"""Kind of configuration file by name of the settings class of its variants."""
SCHEMAS = Path(__file__).resolve().parents[2] / "workflow" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SWEEP = "#/$defs/with_sweep"
_WITH_SWEEP = {
    "description": "Keys with at least one value `{sweep: [value, ...]}`; the workflow makes a run for each value.",
    "type": "object",
    "anyOf": [{"required": ["sweep"]}, {"not": {"additionalProperties": {"not": {"$ref": _SWEEP}}}}],
}


class _Generator(GenerateJsonSchema):
    """Schema generator of pydantic, extended by rules that the types of fields do not express."""

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
        # JSON Schema allows a description next to a reference (`$ref`).
        result["properties"][key] = {"description": described[key], **rules} if key in described else rules
    result["description"] = inspect.cleandoc(cls.__doc__).replace("\n", " ")
    if not partial and issubclass(cls, OneOfKeys) and len(cls.ONE_OF) > 1:
        result["oneOf"] = [{"required": list(group)} for group in cls.ONE_OF]
    return result


def json_schema(cls: Any, title: str) -> JsonSchemaValue:
    """Return the JSON Schema of a settings class."""
    made = adapter(cls).json_schema(schema_generator=_Generator)
    made = _for_editors({key: value for key, value in made.items() if key != "title"})
    if _SWEEP in str(made):
        made["$defs"]["with_sweep"] = _WITH_SWEEP
    return {"$schema": DIALECT, "title": title, **made}


def _for_editors(rules: Any) -> Any:
    """Return a schema adapted to editors: titles are removed, unions of classes use `anyOf`, and `{sweep: [...]}` is
    allowed as a value where a key can be swept.
    """
    if isinstance(rules, list):
        return [_for_editors(item) for item in rules]
    if not isinstance(rules, dict):
        return rules
    rules = {key: _for_editors(value) for key, value in rules.items() if key != "title" or isinstance(value, dict)}
    if any("$ref" in choice for choice in rules.get("oneOf", ())):
        # Replace `oneOf` by `anyOf`, because a value that lacks the key that distinguishes the classes may match
        # several classes.
        rules = {"anyOf" if key == "oneOf" else key: value for key, value in rules.items() if key != "discriminator"}
    choices = rules.get("anyOf", [])
    if len(choices) == 2 and choices[1] == {"type": "null"} and "type" in choices[0]:
        # Simplify a union of a simple type with null, so that the union fits on one line.
        more = rules.pop("anyOf")[0]
        null = {"enum": [*more["enum"], None]} if "enum" in more else {"type": [more["type"], "null"]}
        rules |= {key: value for key, value in more.items() if key != "type"} | null
    if rules.pop("x-sweepable", False):
        kept = {key: rules.pop(key) for key in ("description", "default") if key in rules}
        rules = {**kept, "anyOf": [rules, {"$ref": _SWEEP}]}
    first = {key: rules[key] for key in ("description", "type") if isinstance(rules.get(key), str)}
    return first | rules


def as_yaml(schema: JsonSchemaValue) -> str:
    """Return a schema as YAML, the text of a schema file."""
    head = "# Written by `make schemas` from the settings classes; edit the classes, not this file.\n"
    return head + yaml.dump(
        schema, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True
    )


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def schema_texts() -> dict[Path, str]:
    """Return the texts that the schema files should have, by path."""
    schemas = file_schemas()
    schemas["study"] = _with_base(schemas["study"])
    return {SCHEMAS / f"{kind}.schema.yaml": as_yaml(schema) for kind, schema in schemas.items()}


def file_schemas() -> dict[str, JsonSchemaValue]:
    """Return the JSON Schemas by kind of configuration file."""
    titles = {kind: f"config/{folder}/<name>.yaml" for kind, folder in FOLDERS.items()}
    titles["config"] = "config/config.yaml"
    made = {kind: json_schema(FILES[kind], titles[kind]) for kind in FILES}
    entries = made["study"]["properties"]["analyses"]["patternProperties"]
    entries |= dict.fromkeys(entries, _analyses(made["study"]))
    # Allow null as the value of a variant's key, because null deletes a key of the base.
    null = {"type": "null"}
    for name, kind in VARIANTS.items():
        variant = made[kind]["$defs"][f"Partial{name}"]["properties"]
        variant |= {
            key: {"description": rules.pop("description"), "anyOf": [rules, null]} for key, rules in variant.items()
        }
    # A tokenizer in an experiment may omit its corpus, because the default is the experiment's corpus.
    del made["experiment"]["$defs"][TokenizerFile.__name__]["oneOf"]
    return made


def _with_base(study: JsonSchemaValue) -> JsonSchemaValue:
    """Return the schema of studies, extended by rules for studies with the key `base`.

    In a study with `base`, no other key is required, and an entry of `analyses` may be null or may lack keys.
    """
    analyses = dict(study["properties"]["analyses"])
    ((pattern, entry),) = analyses.pop("patternProperties").items()
    parts = [{key: rules for key, rules in each.items() if key != "required"} for each in entry["anyOf"]]

    def with_analyses(rules: JsonSchemaValue) -> JsonSchemaValue:
        # Write the additional rules inside `properties`, because `unevaluatedProperties` must be in the same schema as
        # the `$ref`.
        return {"properties": {"analyses": {**analyses, "patternProperties": {pattern: rules}}}}

    kept = {key: rules for key, rules in study.items() if key != "required"}
    kept["properties"] = study["properties"] | {"analyses": {"description": analyses["description"]}}
    without = {**with_analyses(entry), "required": study["required"]}
    return {
        **kept,
        "if": {"required": ["base"]},
        "then": with_analyses({"anyOf": [*parts, {"type": "null"}]}),
        "else": without,
    }


def _analyses(study: JsonSchemaValue) -> JsonSchemaValue:
    """Return the schema of an entry of `analyses` in a study: a union of the settings classes of all analyses. The
    definitions of these classes are added to `study`, the schema of studies.
    """
    entries = []
    for name in analysis_names():
        entry = json_schema(analysis_called(name).settings, name)
        study.setdefault("$defs", {}).update(entry.pop("$defs", {}))
        entry["properties"]["analysis"]["enum"] = [name]
        entries.append({key: rules for key, rules in entry.items() if key != "$schema"})
    return {"anyOf": entries}


PAGE = SCHEMAS.parents[1] / "docs" / "settings.md"
HEAD = """<!-- Written by `make schemas` from the settings classes; edit the classes, not this file. -->
# Every key

All keys of the files in `config/`: allowed values, default and meaning. If the value of a key is a mapping, its type
links to the table of its keys. `null` is YAML's empty value. Under a run, task or protocol, write only the keys that
differ; all other keys are inherited from the experiment, protocol or model.

"""
# Classes whose files contain only some of the keys. The schemas of these files contain no defaults, because an omitted
# key need not have the default value.
PARTS = (ProtocolChoice, TokenizerSettings, Variant, SuiteVariant)
RANGES = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt"}
TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "`null`"}


def settings_page() -> str:
    """Return the text that docs/settings.md should have."""
    schemas = file_schemas()
    schemas["paper_tables"] = json_schema(PaperLayout, "config/paper_tables/<paper>.yaml")
    page = _Page(schemas)
    files = [page.file(kind) for kind in schemas]
    contents = [f"- [`{schema['title']}`](#{_anchor(schema['title'])})" for schema in schemas.values()]
    return HEAD + "\n".join(contents) + "\n\n" + "\n".join(files)


def _anchor(heading: str) -> str:
    """Return the anchor that Markdown derives from a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _name(title: str) -> str:
    """Return the heading of a settings class's table in docs/settings.md, such as "Early stopping" for
    `EarlyStoppingSettings`.
    """
    if title.islower():
        return f"Analysis `{title}`"
    words = re.sub(r"Settings$", "", title)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", words).capitalize()


def _text(text: str) -> str:
    """Return a sentence with Markdown characters escaped, for a cell of a table; code between backquotes is not
    escaped.
    """
    parts = text.split("`")
    parts[::2] = [re.sub(r"([<>*\[\]\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def _code(value: Any) -> str:
    words = {None: "null", True: "true", False: "false", "": '""'}
    simple = words[value] if isinstance(value, str | bool | None) and value in words else value
    return f"`{simple}`".replace("|", "\\|").replace("'", "")


class _Page:
    """Writer of docs/settings.md. The table of a settings class is written once, in the first section that needs the
    table.
    """

    def __init__(self, schemas: Mapping[str, JsonSchemaValue]) -> None:
        self.schemas = schemas
        self.whole = {name: rules for schema in schemas.values() for name, rules in schema.get("$defs", {}).items()}
        for cls in PARTS:
            made = json_schema(cls, cls.__name__)
            self.whole |= {**made.pop("$defs", {}), cls.__name__: made}
        self.written: dict[str, str] = {}
        self.waiting: list[tuple[str, str, Any]] = []
        self.path = self.kind = ""

    def file(self, kind: str) -> str:
        """Return the section of a kind of configuration file, with the tables of those settings classes that have no
        table in an earlier section.
        """
        schema, self.kind, self.path = self.schemas[kind], kind, ""
        parts = [f"## `{schema['title']}`\n", *self.table(schema)]
        if "properties" not in schema:
            parts += [f"One of: {self.kind_of({key: schema[key] for key in schema if key != 'title'})}.\n"]
        while self.waiting:
            heading, path, rules = self.waiting.pop(0)
            place = [f"Keys below `{path}`.\n"] if path else []
            parts += [f"### {heading}\n", *place, *self.table(rules, path)]
        return "\n".join(parts)

    def table(self, rules: Mapping[str, Any], path: str = "") -> Iterator[str]:
        """Yield the description of a settings class, a sentence on keys that exclude each other, and a table with one
        row per key.
        """
        if "description" in rules:
            yield f"{_text(rules['description'])}\n"
        choices = (group["required"] for group in rules.get("oneOf", []) if "required" in group)
        groups = [" with ".join(map(_code, choice)) for choice in choices]
        if groups:
            yield f"Exactly one of these keys is required: {', or '.join(groups)}.\n"
        if "properties" in rules:
            needed = rules.get("required", ())
            keys = rules["properties"].items()
            rows = [self.row(key, f"{path}.{key}".strip("."), about, key in needed) for key, about in keys]
            yield "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows, ""])

    def row(self, key: str, path: str, about: Mapping[str, Any], needed: bool) -> str:
        """Return the table row of the key `key`. `path` is the dotted path of this key at its first occurrence in a
        configuration file.
        """
        self.path = path
        default = "required" if needed else _code(about["default"]) if "default" in about else ""
        return f"| `{key}` | {self.kind_of(about)} | {default} | {_text(about.get('description', ''))} |"

    def kind_of(self, rules: Mapping[str, Any]) -> str:
        """Return a description of the allowed values of a key, with links to the tables of classes."""
        if "$ref" in rules:
            name = rules["$ref"].rpartition("/")[2]
            whole = self.whole[name.removeprefix("Partial")] if name != "with_sweep" else None
            return "a sweep" if whole is None else self.link(name.removeprefix("Partial"), whole)
        if "properties" in rules:
            return self.link(rules["title"], rules)
        if "const" in rules or "enum" in rules:
            return ", ".join(map(_code, rules.get("enum", [rules.get("const")])))
        if choices := rules.get("anyOf", rules.get("oneOf")):
            return " or ".join(self.kind_of(choice) for choice in choices)
        types = rules.get("type", "any")
        return " or ".join(self.simple(kind, rules) for kind in ([types] if isinstance(types, str) else types))

    def simple(self, kind: str, rules: Mapping[str, Any]) -> str:
        """Return a description of the values of the JSON type `kind`, such as "number", with their range."""
        if kind == "array":
            return f"list of {self.within(rules.get('items', {}))}"
        if kind == "object":
            inner = [*rules.get("patternProperties", {}).values(), rules.get("additionalProperties")]
            if not isinstance(inner[0], dict):
                return "keys with values"
            self.path += ".<name>"
            return f"mapping from names to {self.within(inner[0])}"
        if kind == "string":
            return str(rules.get("x-expected", "text"))
        bounds = [f"{BOUNDS[word][0]} {rules[key]:,}" for key, word in RANGES.items() if key in rules]
        range_of = [" and ".join(bounds)] if kind in ("integer", "number") and bounds else []
        return ", ".join([TYPES.get(kind, "any value"), *range_of])

    def within(self, rules: Mapping[str, Any]) -> str:
        """Return a description of the values inside a list or mapping, in brackets if values of several types are
        allowed.
        """
        several = "anyOf" in rules or "oneOf" in rules or isinstance(rules.get("type"), list)
        return f"({self.kind_of(rules)})" if several else self.kind_of(rules)

    def link(self, title: str, rules: Mapping[str, Any]) -> str:
        """Return a link to the table of a settings class. If the table is not yet written, it is written later in the
        current section.
        """
        heading = _name(title)
        homes = {member.__name__: kind for kind, cls in FILES.items() for member in members_of(cls)}
        home = VARIANTS.get(title) or homes.get(title)
        if home is not None and (home != self.kind or "properties" in self.schemas[home]):
            # A class that describes a kind of configuration file has its table in the section of this kind.
            heading = self.schemas[home]["title"] if "properties" in self.schemas[home] else heading
        elif title not in self.written:
            if heading in self.written.values():
                raise ValueError(f"two settings classes have the heading {heading!r}: rename {title}")
            self.written[title] = heading
            self.waiting.append((heading, self.path, rules))
        return f"[{heading}](#{_anchor(heading)})"
