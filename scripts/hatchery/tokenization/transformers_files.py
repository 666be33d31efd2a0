"""The two files that let the `transformers` library open a folder with our `tokenizer.json` without hand edits.

`tokenizer_config.json` and `special_tokens_map.json` in the layout that `PreTrainedTokenizerFast` writes itself. They
repeat what the tokenizer says about its special tokens, and name their roles, which `tokenizer.json` does not.
"""

from typing import Any

from tokenizers import Tokenizer as Backend

from hatchery.tokenization.special_tokens import SpecialTokens

# What transformers writes when a tokenizer knows no limit: the model has one, the tokenizer must not cut silently.
UNLIMITED_LENGTH = int(1e30)
TOKENIZER_CLASS = "PreTrainedTokenizerFast"


def special_tokens_map(special: SpecialTokens) -> dict[str, Any]:
    """The special tokens by the roles of transformers; those without one are `additional_special_tokens`."""
    roles: dict[str, Any] = {
        "unk_token": special.unknown,
        "cls_token": special.cls,
        "sep_token": special.sep,
        "pad_token": special.pad,
        "mask_token": special.mask,
    }
    if special.cls == "<s>":
        roles |= {"bos_token": special.cls, "eos_token": special.sep}
    others = [name for name in special.order if name not in roles.values()]
    return roles | ({"additional_special_tokens": others} if others else {})


def tokenizer_config(backend: Backend, special: SpecialTokens) -> dict[str, Any]:
    """The content of `tokenizer_config.json`. Type ids are no input of our models."""
    added = {
        str(index): {
            "content": token.content,
            "lstrip": token.lstrip,
            "normalized": token.normalized,
            "rstrip": token.rstrip,
            "single_word": token.single_word,
            "special": token.special,
        }
        for index, token in sorted(backend.get_added_tokens_decoder().items())
    }
    return {
        **special_tokens_map(special),
        "added_tokens_decoder": added,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": UNLIMITED_LENGTH,
        "tokenizer_class": TOKENIZER_CLASS,
    }
