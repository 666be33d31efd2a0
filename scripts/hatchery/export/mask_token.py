"""The mask token of an exported tokenizer: what stands around it in a text is cut as it was in pretraining.

In pretraining a sentence is cut first and masked afterwards: `dogs sleep.` is `Ġdogs Ġsleep .`, then `Ġdogs [MASK] .`.
A user writes `dogs [MASK].`, and the library cuts what is left and right of the mask as texts of their own. Two things
go wrong then: the space before the mask becomes a token that the model never saw, and the full stop gets the space that
begins a text. Both are mended in the definition of the tokenizer; a text without a mask keeps its ids.
"""

import copy
import re
from typing import Any

SPACE = " "


def with_mask_in_text(definition: dict[str, Any], mask: str) -> dict[str, Any]:
    """The content of tokenizer.json with the token `mask` fit for fill-mask; `definition` itself is not changed.

    The mask takes the white space before it, in every kind of tokenizer. Where the pre-tokenizer puts a space before
    every text (byte-level with `add_prefix_space`, Metaspace), the normaliser does that instead, and the mask is found
    in the normalised text: so other special tokens still begin a text anew, as in pretraining, and the mask does not.
    """
    changed = copy.deepcopy(definition)
    token = next(token for token in changed["added_tokens"] if token["content"] == mask)
    token["lstrip"] = True
    steps = _prefix_moved(changed)
    if steps:
        token["normalized"] = True
        # The normaliser is applied to the mask's own spelling, too, which has to stay as it is.
        steps += [
            {"type": "Prepend", "prepend": SPACE},
            {"type": "Replace", "pattern": {"Regex": rf"\A{SPACE}(?={SPACE}|{re.escape(mask)})"}, "content": ""},
        ]
        before = [] if changed["normalizer"] is None else [changed["normalizer"]]
        changed["normalizer"] = {"type": "Sequence", "normalizers": before + [step for step in steps if step]}
    return changed


def _prefix_moved(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Switch off the pre-tokenizer's space before a text; what the normaliser has to do before it adds that space.

    Empty where there is no such space. One empty step stands for "nothing before".
    """
    parts = _parts(definition)
    kinds = [part["type"] for part in parts]
    if kinds[:1] == ["ByteLevel"] and parts[0]["add_prefix_space"]:
        parts[0]["add_prefix_space"] = False
        return [{}]
    always = [part["type"] == "Metaspace" and part.get("prepend_scheme", "always") == "always" for part in parts]
    if always[:1] == [True]:
        parts[0]["prepend_scheme"] = "never"
        return [{}]
    if kinds[:1] == ["WhitespaceSplit"] and always[1:2] == [True]:
        # Every word gets its mark from the one space in front of it, so all white space has to be one space.
        definition["pre_tokenizer"]["pretokenizers"].pop(0)
        parts[1].update(prepend_scheme="never", split=True)
        return [
            {"type": "Replace", "pattern": {"Regex": r"\s+\z"}, "content": ""},
            {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": SPACE},
        ]
    return []


def _parts(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """The pre-tokenizers in their order; inner sequences are left as they are."""
    whole = definition["pre_tokenizer"]
    if whole is None:
        return []
    return list(whole["pretokenizers"]) if whole["type"] == "Sequence" else [whole]
