"""What can be known of a corpus before it is made: its encodings, what it is made from, which splits it may have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchery.config.references import corpora_behind
from hatchery.errors import ConfigError
from hatchery.storage.yaml_files import read_yaml

if TYPE_CHECKING:
    from hatchery.config.project import Project


def check_encodings(corpus: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for a source with an encoding of text that Python does not know."""
    for index, source in enumerate(corpus["sources"]):
        encoding = source["options"].get("encoding", "utf-8")
        try:
            "a".encode(encoding)
        except (LookupError, ValueError):
            raise ConfigError(
                f"{where}: sources.{index}.options.encoding: there is no encoding of text called {encoding!r}; "
                "utf-8, utf-16, latin-1 and cp1252 are frequent ones"
            ) from None


def check_circle(name: str, project: "Project", where: str) -> None:
    """Raise ConfigError where a corpus is made from itself, directly or through others.

    Files are read as they stand: loading the other corpora could lead back to this one.
    """
    folder, paths, seen = project.folder / "corpora", [[name]], {name}
    while paths:
        path = paths.pop()
        file = folder / f"{path[-1]}.yaml"
        for reference in corpora_behind(read_yaml(file)) if file.is_file() else ():
            if reference.name == name:
                way = " -> ".join([*path, name])
                raise ConfigError(f"{where}: the corpus is made from itself: {way}; name another corpus in one of them")
            if isinstance(reference.name, str) and reference.name not in seen:
                seen.add(reference.name)
                paths.append([*path, reference.name])


def held_out_splits(project: "Project", name: str) -> set[str]:
    """The splits `dev` and `test` that a corpus may have; one that is not here is surely empty."""
    block = project.block("corpus", name)
    if "sample" in block:
        # Drawn documents keep their splits.
        return held_out_splits(project, block["sample"]["corpus"])
    if "sequences" in block:
        return _of_sequences(project, block["sequences"])
    split = block["split"]
    development = split["development_documents"]
    wanted = {
        "dev": split["development_fraction"] if development is None else development,
        "test": split["test_fraction"],
    }
    # Only this reader meets files that name their split.
    split_by_files = any(source["reader"] == "babylm" for source in block["sources"])
    return {name for name, share in wanted.items() if share > 0 or split_by_files}


def _of_sequences(project: "Project", sequences: Mapping[str, Any]) -> set[str]:
    other = sequences["held_out_from"]
    if other is not None:
        return held_out_splits(project, other)
    keys = {"dev": "development", "test": "test"}
    return {name for name, key in keys.items() if any(group[key] > 0 for group in sequences["groups"])}
