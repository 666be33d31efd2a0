"""A folder of the library `transformers` as its model and its tokenizer, and so an imported model.

Read from a local folder, never from the network and never with code that comes with the weights. What the checkpoint
does not hold is an error, because a head that was initialised at random would be scored without a word.
"""

from pathlib import Path
from typing import Any, NamedTuple

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import ModelError, first_line
from hatchery.evaluation.baselines.settings import Architecture, BaselineSettings
from hatchery.evaluation.baselines.tokenizer import BaselineTokenizer
from hatchery.typed import build, stage_body

# Classes that a checkpoint of another architecture names. The library makes a causal BERT out of a masked one and a
# masked BART out of an encoder-decoder, which would be scored without a word.
CLASSES_OF_OTHERS: dict[Architecture, tuple[str, ...]] = {
    "masked": ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"),
    "causal": ("ForMaskedLM", "ForPreTraining", "ForConditionalGeneration"),
    "encoder_decoder": ("ForMaskedLM", "ForCausalLM", "LMHeadModel"),
}


class LoadedFolder(NamedTuple):
    """The library's model in float32 and evaluation mode, and its fast tokenizer, which cuts and pads nothing."""

    network: Any
    tokenizer: Any


def load_folder(folder: str | Path, architecture: Architecture) -> LoadedFolder:
    """The model and tokenizer in `folder`; special tokens spelled out in a text are text to the tokenizer.

    Pieces of the tokenizer's own model are not, as T5 has `</s>`: there nothing depends on where they stand. Raises
    ModelError for a model that the library does not know without foreign code or that is not of this architecture, for
    weights that are missing, and for a tokenizer that is not a fast one or has ids that the model has no embedding for.
    """
    # Imported here: seconds to load, and only models of others need it.
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    auto: dict[Architecture, Any] = {
        "masked": transformers.AutoModelForMaskedLM,
        "causal": transformers.AutoModelForCausalLM,
        "encoder_decoder": transformers.AutoModelForSeq2SeqLM,
    }
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    what = f"a {architecture.replace('_', '-')} language model"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        network, loading = auto[architecture].from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, **local
        )
    except Exception as error:  # the library raises errors of many kinds, with messages of many lines
        raise ModelError(f"{folder}: cannot be loaded as {what}: {first_line(error)}") from error
    absent = sorted(loading["missing_keys"]) + sorted(str(key) for key in loading["mismatched_keys"])
    if absent:
        raise ModelError(
            f"{folder}: no {what.removeprefix('a ')}: the weights of {len(absent)} parts are missing or of another "
            f"shape, for example {absent[0]}"
        )
    for name in network.config.architectures or ():
        if name.endswith(CLASSES_OF_OTHERS[architecture]):
            raise ModelError(f"{folder}: cannot be loaded as {what}: it is a {name}")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{folder}: the tokenizer is not a fast one; a tokenizer.json is needed")
    # A tokenizer has ids for tokens of its own that no text holds; what a text can hold needs an embedding.
    if backend.get_vocab_size(with_added_tokens=False) > network.get_input_embeddings().num_embeddings:
        raise ModelError(f"{folder}: the tokenizer has ids that the model has no embedding for")
    backend.no_truncation()
    backend.no_padding()
    # Otherwise they would shift what is scored, as everywhere here.
    backend.encode_special_tokens = True
    return LoadedFolder(network.eval(), tokenizer)


class Baseline(NamedTuple):
    """An imported model: the library's, its tokenizer, and what is said about it."""

    network: Any
    tokenizer: BaselineTokenizer
    settings: BaselineSettings


def load_baseline(model: Manifest) -> Baseline:
    """The model of an import's manifest. Raises ModelError for damaged files."""
    settings = build(BaselineSettings, stage_body(model.settings), str(model.path))
    network, tokenizer = load_folder(model.folder, settings.architecture)
    return Baseline(network, BaselineTokenizer(tokenizer, settings.architecture, str(model.folder)), settings)
