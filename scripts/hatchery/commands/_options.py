"""Arguments that several commands of the program `hatchery` have, and their values."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hatchery.errors import ConfigError
from hatchery.settings.base import DeviceName

Model = Annotated[str, typer.Argument(help="A folder with a model, or a name on the hub.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[DeviceName, typer.Option(help="auto is a GPU if there is one.")]
Architecture = Annotated[
    Literal["masked", "causal", "encoder_decoder"] | None,
    typer.Option(help="Needed for a public model whose config.json does not determine it.", show_default=False),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.", show_default=False),
]
Project = Annotated[Path, typer.Option(help="The folder with config/ and results/.", show_default="here")]


def settings_in(given: Sequence[str] | None, arguments: Iterable[str] = ()) -> dict[str, Any]:
    """Return settings written as `KEY=VALUE`, with values as in YAML.

    Raises ConfigError for a word of another form, and for a key that is one of the command's own `arguments`.
    """
    import yaml

    found = {}
    for word in given or ():
        key, sign, value = word.partition("=")
        if not (key and sign):
            raise ConfigError(f"--set: got {word!r}, expected KEY=VALUE, such as pairs_per_paradigm=100")
        if key in arguments:
            raise ConfigError(f"--set: got {key}, an argument of the command itself; --help shows how to give it")
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[key] = value
    return found


def print_json(value: Any) -> None:
    """Print a value as JSON; NaN and infinity become null."""

    def finite(part: Any) -> Any:
        if isinstance(part, float) and (part != part or part in (float("inf"), float("-inf"))):
            return None
        if isinstance(part, dict):
            return {str(key): finite(one) for key, one in part.items()}
        return [finite(one) for one in part] if isinstance(part, list | tuple) else part

    print(json.dumps(finite(value), indent=1, ensure_ascii=False, default=str))
