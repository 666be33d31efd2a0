"""Configuration blocks (the settings of one corpus, tokenizer, experiment and so on) as written in files, before
validation.

Most configuration blocks have a file of their own. A task or a suite can also be a variant in the file of another task
or suite. An experiment's file can contain its corpus and its tokenizer, which then have the experiment's name. A block
is merged, key by key, with the block that its key `base` names. Names of blocks become folders of `results/` and parts
of file-name patterns, so not every name is allowed. Files with other names are ignored; if such a file is requested,
the message advises renaming it.
"""

import copy
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.kinds import FILES, FOLDERS
from hatchery.settings.base import shortened
from hatchery.settings.fields import LONGEST_NAME, NAME, NAME_IN_WORDS, hint_below, may_be_null, other_ways
from hatchery.settings.problems import Problems, alternatives
from hatchery.training.objectives import DEFAULT_TASK

Document = dict[str, Any]
"""The keys of a configuration block, before validation."""

INLINE = ("corpus", "tokenizer")
"""Kinds of configuration blocks that an experiment's file may contain inline. The name of the kind is the key in this
file.
"""
VARIANTS = "variants"
_VARIED = ("task", "suite")
"""Kinds of configuration blocks that may be variants in the file of another block of the same kind."""

_BASED = (*_VARIED, "reading_table", "study", "experiment")
_NAMED = {"experiment": ("runs", "finetuning.tasks", "published.rows"), "study": ("analyses",)}
"""Keys whose entries have names of the user's choice. A null entry removes the entry of this name from the base."""

_INSTEAD_OF = {
    "warmup_steps": ("warmup_fraction", "warmup_steps_limit"),
    "warmup_fraction": ("warmup_steps",),
    "steps": ("budget", "checkpoints_at"),
    "budget": ("steps", "milestones"),
    "run": ("path",),
    "path": ("run", "experiment", "seed", "step"),
}
"""Keys that, if set, remove keys inherited from the base, in addition to exclusive keys of settings classes
(`ONE_OF`)."""


@dataclass
class _Variants:
    """The configuration blocks of one kind, such as `task`: the file of each block (`files`), a message for each name
    that two blocks have (`twice`), and the problems of unreadable files.
    """

    files: dict[str, str] = field(default_factory=dict)
    twice: dict[str, str] = field(default_factory=dict)
    unreadable: Problems = field(default_factory=Problems)


class WrittenBlocks:
    """The configuration blocks below a folder (`config/`), unvalidated. Each block is read when it is first requested.

    Missing blocks are read from the folder `shipped`, if it is given.
    """

    def __init__(self, folder: Path, shipped: Path | None = None) -> None:
        self.folder = folder
        self._folders = [folder] if shipped is None else [folder, shipped]
        self._stems: dict[str, list[str]] = {}
        self._read: dict[Path, Document] = {}
        self._varied: dict[str, _Variants] = {}

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of the configuration blocks of a kind (a key of FOLDERS), without files of disallowed
        names.
        """
        files = self._files(kind)
        return sorted({*files, *self._variants(kind).files})

    def has(self, kind: str, name: str) -> bool:
        """Return True if there is a configuration block of this kind and name."""
        return self.is_inline(kind, name) or name in self.names(kind)

    def place(self, kind: str, name: str) -> str:
        """Return, for use in messages, the file of a configuration block; if the block is inside another block's file,
        also its key.
        """
        if name not in self._files(kind):
            if stem := self._variants(kind).files.get(name):
                return f"{self._file(kind, stem)}: {VARIANTS}.{name}"
            if self.is_inline(kind, name):
                return f"{self._file('experiment', name)}: {kind}"
        return str(self._file(kind, name))

    def require(self, kind: str, name: str, where: str) -> None:
        """Raise ConfigError, which suggests the most similar name, unless exactly one configuration block of this kind
        and name exists.
        """
        if name in self._variants(kind).twice:
            raise ConfigError(self._variants(kind).twice[name])
        if self.has(kind, name):
            return
        if wrong := misnamed_file(self.folder / FOLDERS[kind], name, self.names(kind)):
            raise ConfigError(wrong)
        # Report unreadable files first, because one of these files may define a variant of this name.
        self._variants(kind).unreadable.raise_any()
        studies = self.names("study") if kind == "experiment" else []
        known = self.names(kind)
        if name in studies:
            allowed = ", ".join(known) or "none"
            raise ConfigError(f"{where}: got {name!r}, which is a study, expected one of the experiments {allowed}")
        # Include studies in the suggestions, because users may write the name of a study where an experiment is
        # expected.
        raise ConfigError(f"{where}: got {name!r}, no such {kind}{alternatives(name, known, also=studies)}")

    def read(self, kind: str, name: str, below: tuple[str, ...] = ()) -> Document:
        """Return the keys of a configuration block, merged with its base. Inline corpora and tokenizers are replaced by
        their names.

        A key that is null in the block is not inherited. `below` are the blocks that have this block as base. Raises
        ConfigError for a circle of bases.
        """
        self.require(kind, name, str(self.folder / FOLDERS[kind]))
        raw = self._own(kind, name)
        base = raw.get("base") if kind in _BASED else None
        if base is None:
            return raw
        if not isinstance(base, str):
            raise ConfigError(f"{self.place(kind, name)}: base: got {shortened(base)}, expected text")
        self.require(kind, base, f"{self.place(kind, name)}: base")
        if base in (*below, name):
            raise ConfigError(f"{self.place(kind, name)}: base: got {base!r}, whose own base leads back to {name!r}")
        inherited = self.read(kind, base, (*below, name))
        inherited.pop(VARIANTS, None)
        kept = {key: value for key, value in inherited.items() if raw.get(key, value) is not None}
        document = merged(kept, _without_nulls(raw), FILES[kind])
        for place in _NAMED.get(kind, ()):
            _leave_out(document, kept, place.split("."))
        return document

    def file_of_variant(self, kind: str, name: str) -> str | None:
        """Return the configuration block whose file contains the variant `name`; None if `name` is not a variant but
        has its own file, or does not exist.
        """
        return None if name in self._files(kind) else self._variants(kind).files.get(name)

    def has_raw_input(self, corpus: str) -> bool:
        """Return True if the corpus exists and defines its raw input inline."""
        sources = self.read("corpus", corpus).get("sources") if self.has("corpus", corpus) else None
        found = sources if isinstance(sources, list) else []
        return any(isinstance(source, Mapping) and isinstance(source.get("data"), Mapping) for source in found)

    def _own(self, kind: str, name: str) -> Document:
        if stem := self.file_of_variant(kind, name):
            variant = self._document(kind, stem)[VARIANTS][name]
            # The file's check reports non-mappings.
            return {"base": stem, **(variant if isinstance(variant, Mapping) else {})}
        if self.is_inline(kind, name):
            block = dict(self._document("experiment", name)[kind])
            if kind == "tokenizer" and not block.keys() & {"corpus", "corpora", "path"}:
                # An inline tokenizer without `corpus` is trained on the experiment's corpus.
                block["corpus"] = self.read("experiment", name).get("corpus")
            return block
        document = dict(self._document(kind, name))
        if kind == "experiment":
            document |= {key: name for key in INLINE if _is_block(document.get(key))}
        if kind in _VARIED and isinstance(variants := document.get(VARIANTS), Mapping):
            document[VARIANTS] = {key: _without_nulls(keys) for key, keys in variants.items()}
        return document

    def is_inline(self, kind: str, name: str) -> bool:
        """Return True if a configuration block is inline in the experiment of the same name.

        Raises ConfigError if the block also has a file.
        """
        if kind not in INLINE or name not in self._files("experiment"):
            return False
        if not _is_block(self._document("experiment", name).get(kind)):
            return False
        if name in self._files(kind):
            raise ConfigError(
                f"{self._file('experiment', name)}: {kind}: {self._file(kind, name)} also exists, and the results of "
                "both files would have the same name; rename one of the files"
            )
        return True

    def _variants(self, kind: str) -> "_Variants":
        if kind in self._varied:
            return self._varied[kind]
        found, files = _Variants(), self._files(kind) if kind in _VARIED else []
        for stem in files:
            with found.unreadable.collecting():
                variants = self._document(kind, stem).get(VARIANTS)
                for name in variants if isinstance(variants, Mapping) else ():
                    if other := name if name in files else found.files.get(name):
                        found.twice[name] = (
                            f"{self._file(kind, stem)}: {VARIANTS}.{name}: {self._file(kind, other)} has a {kind} of "
                            f"the same name; rename one {kind}"
                        )
                    found.files.setdefault(name, stem)
        return self._varied.setdefault(kind, found)

    def _files(self, kind: str) -> list[str]:
        if kind not in self._stems:
            stems = {path.stem for each in self._folders for path in (each / FOLDERS[kind]).glob("*.yaml")}
            self._stems[kind] = sorted(stem for stem in stems if is_name(stem))
        return self._stems[kind]

    def _file(self, kind: str, name: str) -> Path:
        places = [each / FOLDERS[kind] / f"{name}.yaml" for each in self._folders]
        return next((path for path in places[1:] if path.is_file() and not places[0].is_file()), places[0])

    def _document(self, kind: str, name: str) -> Document:
        path = self._file(kind, name)
        if path not in self._read:
            self._read[path] = read_yaml(path)
        return self._read[path]


def _is_block(value: Any) -> bool:
    """Return True if `value`, the value of a key such as `corpus`, is an inline block, and not the name of a block or a
    sweep (a mapping with the key `sweep`).
    """
    return isinstance(value, Mapping) and "sweep" not in value


def _without_nulls(keys: Any) -> Any:
    """Return the keys whose values are not null. A null key only prevents that the block inherits this key from the
    block that its key `base` names.
    """
    return {key: value for key, value in keys.items() if value is not None} if isinstance(keys, Mapping) else keys


def _leave_out(document: Document, inherited: Document, keys: Sequence[str]) -> None:
    """Remove null entries from the mapping at the path `keys` of `document`. An entry is removed only if the base,
    `inherited`, has an entry of the same name at this path.
    """
    entries, of_base = (reduce(_below, keys, holder) for holder in (document, inherited))
    for name in [name for name, entry in entries.items() if entry is None and name in of_base]:
        del entries[name]


def _below(holder: Document, key: str) -> Document:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def is_name(name: str) -> bool:
    """Return True if a configuration block or a raw input may have this name."""
    return re.fullmatch(NAME, name) is not None and len(name) <= LONGEST_NAME


def allowed_name(name: str) -> str:
    """Return the allowed name nearest to `name`: `größe v2` becomes `grosse_v2`."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:LONGEST_NAME] or "my_name"


def misnamed_file(folder: Path, name: str, taken: Collection[str] = ()) -> str | None:
    """Return advice for a file that was meant for the configuration block `name`, but has a disallowed name or a wrong
    suffix.

    `taken` are the names of existing blocks. None if `folder` has no such file.
    """
    for path in sorted(folder.glob("*.y*ml")):
        is_right = path.suffix == ".yaml" and is_name(path.stem)
        if is_right or name not in (path.stem, allowed_name(path.stem)):
            continue
        wanted = path.stem if is_name(path.stem) else allowed_name(path.stem)
        what = "the ending .yaml" if is_name(path.stem) else f"a name of {NAME_IN_WORDS}"
        there = f" ({wanted}.yaml is taken)" if wanted in taken else f" to {wanted}.yaml"
        return f"{path}: expected {what}; rename the file{there}"
    return None


def merged(base: Mapping[str, Any], overrides: Mapping[str, Any], settings: Any = Any) -> Document:
    """Return `base` merged with `overrides`, key by key at every depth; lists are replaced.

    `settings` is the settings class of `base` and `overrides`. If two keys exclude each other, the key in `overrides`
    removes the other key from the base. A value `null` removes a key of the base, unless `null` is a valid value of
    this key. An objective with another `task` replaces the whole objective of the base.
    """
    said = [key for key, value in overrides.items() if value is not None]
    replaced = {other for key in said for other in (*_INSTEAD_OF.get(key, ()), *other_ways(settings, key))}
    result = copy.deepcopy({key: value for key, value in base.items() if key not in replaced})
    for key, value in overrides.items():
        below = hint_below(settings, key)
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping) and not _is_other(result[key], value):
            result[key] = merged(result[key], value, below)
        elif value is None and key in base and not may_be_null(below):
            result.pop(key, None)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _is_other(base: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return "task" in value and value["task"] != base.get("task", DEFAULT_TASK)
