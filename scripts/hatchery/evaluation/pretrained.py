"""The model and the tokenizer that a pretraining run left behind, checked against its manifest."""

from pathlib import Path

from hatchery.errors import EvaluationError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import load_language_model
from hatchery.storage.manifests import read_manifest
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer


def load_pretrained(manifest_path: Path) -> tuple[LanguageModel, Tokenizer]:
    """The model in float32 on the CPU, and its tokenizer, which reads special tokens spelled out in a text as text.

    Raises ManifestError for a file that is not what the manifest says, ModelError and TokenizationError for damaged
    ones, and EvaluationError when the tokenizer has ids that the model has no embedding for.
    """
    manifest = read_manifest(manifest_path)
    manifest.verify()
    tokenizer = load_tokenizer(manifest.folder / "tokenizer.json", recognise=())
    model = load_language_model(manifest.folder).float()
    if tokenizer.vocabulary_size > model.config.vocab_size:
        raise EvaluationError(
            f"{manifest.folder}: the tokenizer has {tokenizer.vocabulary_size} entries, "
            f"the model only {model.config.vocab_size} embeddings: they do not belong together"
        )
    return model, tokenizer
