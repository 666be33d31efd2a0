"""Arguments that several commands of the program `hatchery` share, and functions that parse or print values."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hatchery.errors import ConfigError
from hatchery.settings.base import DeviceName

Model = Annotated[
    str, typer.Argument(help="A folder with a model, or the name of a model on the hub.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[DeviceName, typer.Option(help="auto uses a GPU if there is one.")]
Architecture = Annotated[
    Literal["masked", "causal", "encoder_decoder"] | None,
    typer.Option(
        help="Architecture of a public model; needed if its config.json does not determine the architecture.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="One setting; repeat this option to give several.", show_default=False
    ),
]
Project = Annotated[Path, typer.Option(help="The folder with config/ and results/.", show_default="here")]


def settings_in(given: Sequence[str] | None, arguments: Iterable[str] = ()) -> dict[str, Any]:
    """Return the settings given as `KEY=VALUE`, with values in YAML syntax.

    Raises ConfigError for a word in another format, and for a key in `arguments`, the names of the command's arguments.
    """
    import yaml

    found = {}
    for word in given or ():
        key, sign, value = word.partition("=")
        if not (key and sign):
            raise ConfigError(f"--set: got {word!r}, expected KEY=VALUE, such as pairs_per_paradigm=100")
        if key in arguments:
            raise ConfigError(
                f"--set: got {key}, which is an argument of the command; --help shows how to pass this argument"
            )
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[key] = value
    return found


def print_json(value: Any) -> None:
    """Print a value as JSON, with NaN and infinity as null."""

    def finite(part: Any) -> Any:
        if isinstance(part, float) and (part != part or part in (float("inf"), float("-inf"))):
            return None
        if isinstance(part, dict):
            return {str(key): finite(one) for key, one in part.items()}
        return [finite(one) for one in part] if isinstance(part, list | tuple) else part

    print(json.dumps(finite(value), indent=1, ensure_ascii=False, default=str))
