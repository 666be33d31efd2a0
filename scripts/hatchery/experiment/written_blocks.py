"""The blocks of a configuration (the settings of one corpus, tokenizer, experiment and so on) before validation: the
place of each block, and the merge with its base.

Most blocks are a file each. A task or a suite can also be a variant in the file of another task or suite. An
experiment's file can contain its corpus and its tokenizer, which then have the experiment's name. A block is merged
with its base key by key. The name of a block is a folder of `results/` and a part of patterns, so files with disallowed
names are ignored; a request for such a file is answered with advice to rename it.
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
"""The content of a block in the file, before validation."""

INLINE = ("corpus", "tokenizer")
"""Kinds of blocks that may be inline in an experiment, under the key of their kind."""
VARIANTS = "variants"
_VARIED = ("task", "suite")
"""Kinds of blocks that may be variants in the file of a block of the same kind."""

_BASED = (*_VARIED, "reading_table", "study", "experiment")
_NAMED = {"experiment": ("runs", "finetuning.tasks", "published.rows"), "study": ("analyses",)}
"""Keys whose entries have freely chosen names; a null entry leaves out the entry of the base."""

_INSTEAD_OF = {
    "warmup_steps": ("warmup_fraction", "warmup_steps_limit"),
    "warmup_fraction": ("warmup_steps",),
    "steps": ("budget", "checkpoints_at"),
    "budget": ("steps", "milestones"),
    "run": ("path",),
    "path": ("run", "experiment", "seed", "step"),
}
"""Keys that, if set, remove keys of the base, in addition to the groups of exclusive keys in settings classes."""


@dataclass
class _Variants:
    """The file of each variant of a kind, the messages for names that occur twice, and the problems of unreadable
    files.
    """

    files: dict[str, str] = field(default_factory=dict)
    twice: dict[str, str] = field(default_factory=dict)
    unreadable: Problems = field(default_factory=Problems)


class WrittenBlocks:
    """The unvalidated blocks below a folder (`config/`); each is read when it is first requested.

    A missing block is read from the folder `shipped`, if there is one.
    """

    def __init__(self, folder: Path, shipped: Path | None = None) -> None:
        self.folder = folder
        self._folders = [folder] if shipped is None else [folder, shipped]
        self._stems: dict[str, list[str]] = {}
        self._read: dict[Path, Document] = {}
        self._varied: dict[str, _Variants] = {}

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of the blocks of a kind of FOLDERS; files with disallowed names are left out."""
        files = self._files(kind)
        return sorted({*files, *self._variants(kind).files})

    def has(self, kind: str, name: str) -> bool:
        """Return True if there is a block of this kind and name."""
        return self.is_inline(kind, name) or name in self.names(kind)

    def place(self, kind: str, name: str) -> str:
        """Return the place of a block for messages: its file, and the key in it if it is another block's file."""
        if name not in self._files(kind):
            if stem := self._variants(kind).files.get(name):
                return f"{self._file(kind, stem)}: {VARIANTS}.{name}"
            if self.is_inline(kind, name):
                return f"{self._file('experiment', name)}: {kind}"
        return str(self._file(kind, name))

    def require(self, kind: str, name: str, where: str) -> None:
        """Raise ConfigError with the nearest match unless exactly one block of this kind and name exists."""
        if name in self._variants(kind).twice:
            raise ConfigError(self._variants(kind).twice[name])
        if self.has(kind, name):
            return
        if wrong := misnamed_file(self.folder / FOLDERS[kind], name, self.names(kind)):
            raise ConfigError(wrong)
        # Errors in files are reported first, because the name may be a variant in an unreadable file.
        self._variants(kind).unreadable.raise_any()
        studies = self.names("study") if kind == "experiment" else []
        known = self.names(kind)
        if name in studies:
            allowed = ", ".join(known) or "none"
            raise ConfigError(f"{where}: got {name!r}, which is a study, expected one of the experiments {allowed}")
        # A name in the place of an experiment may be a misspelled study.
        raise ConfigError(f"{where}: got {name!r}, no such {kind}{alternatives(name, known, also=studies)}")

    def read(self, kind: str, name: str, below: tuple[str, ...] = ()) -> Document:
        """Return the keys of a block, merged with its base if it has one. Inline corpora and tokenizers are replaced by
        names.

        A key that the block sets to null does not get the base's value. Raises ConfigError for a circle of bases.
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
        """Return the block whose file contains a variant; None for a block that has its own file."""
        return None if name in self._files(kind) else self._variants(kind).files.get(name)

    def has_raw_input(self, corpus: str) -> bool:
        """Return True if there is a corpus of this name with an inline raw input."""
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
                # The tokenizer is trained on the corpus of the experiment.
                block["corpus"] = self.read("experiment", name).get("corpus")
            return block
        document = dict(self._document(kind, name))
        if kind == "experiment":
            document |= {key: name for key in INLINE if _is_block(document.get(key))}
        if kind in _VARIED and isinstance(variants := document.get(VARIANTS), Mapping):
            document[VARIANTS] = {key: _without_nulls(keys) for key, keys in variants.items()}
        return document

    def is_inline(self, kind: str, name: str) -> bool:
        """Return True if a block is inline in the experiment of its name.

        Raises ConfigError if it has a file as well.
        """
        if kind not in INLINE or name not in self._files("experiment"):
            return False
        if not _is_block(self._document("experiment", name).get(kind)):
            return False
        if name in self._files(kind):
            raise ConfigError(
                f"{self._file('experiment', name)}: {kind}: there is {self._file(kind, name)}, too, and the results "
                "of both would have one name; rename one of the files"
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
                            "this name, too; rename one of them"
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
    """Return True if a value is the keys of a block instead of its name; sweeps are reported elsewhere."""
    return isinstance(value, Mapping) and "sweep" not in value


def _without_nulls(keys: Any) -> Any:
    """Return the keys of a block without keys that are null, which only prevent inheritance."""
    return {key: value for key, value in keys.items() if value is not None} if isinstance(keys, Mapping) else keys


def _leave_out(document: Document, inherited: Document, keys: Sequence[str]) -> None:
    """Remove null entries whose names occur in the base."""
    entries, of_base = (reduce(_below, keys, holder) for holder in (document, inherited))
    for name in [name for name, entry in entries.items() if entry is None and name in of_base]:
        del entries[name]


def _below(holder: Document, key: str) -> Document:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def is_name(name: str) -> bool:
    """Return True if a block or a raw input may have this name."""
    return re.fullmatch(NAME, name) is not None and len(name) <= LONGEST_NAME


def allowed_name(name: str) -> str:
    """Return the allowed name nearest to `name`: `größe v2` becomes `grosse_v2`."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:LONGEST_NAME] or "my_name"


def misnamed_file(folder: Path, name: str, taken: Collection[str] = ()) -> str | None:
    """Return advice for a file that was meant for the block `name` but has a wrong name or ending.

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
    """Return `base` merged with `overrides`, key by key at every depth; lists are replaced as a whole.

    An objective with another `task` replaces the whole objective of the base. `settings` is the settings class of base
    and overrides: a key removes the keys that exclude it, and null removes a key of the base if null is not an allowed
    value.
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
