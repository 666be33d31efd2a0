"""What an evaluation starts with: the pretrained model and its tokenizer, and the device that it runs on.

Callers have compared model and tokenizer with the manifest of the pretraining: the runner, or `AskedModel`. Device,
threads and numeric precision belong to no result's identity.
"""

import os
import sys
from pathlib import Path

import torch

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineEncoder, BaselineModel
from hatchery.evaluation.baselines.loading import load_baseline
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.minimal_pairs.scoring import required_architecture
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, SentenceModel
from hatchery.evaluation.settings import MatrixPrecision, is_imported
from hatchery.evaluation.trained_objective import use_of
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import load_language_model
from hatchery.settings.base import Compilation, CompilationChoice, DeviceName
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.training.compilation import COMPILATION_TAKES, chosen_compilation, compilation_of, compile_layers_

COMPILED_FROM_TOKENS = 1 << 26
"""Inferred: in training, compiling saves base some 2 microseconds a token (docs/gpu.md); a third of it here, without a
backward pass, earns 20 to 40 s in so many tokens. The 67,000 pairs of BLiMP are a quarter of them."""


def load_pretrained(manifest_path: Path, translates: bool = False) -> tuple[LanguageModel, Tokenizer]:
    """The model in float32 on the CPU, and its tokenizer, which reads special tokens spelled out in a text as text.

    Raises ManifestError for an unusable manifest, ModelError and TokenizationError for damaged files, and
    EvaluationError when the tokenizer has ids that the model has no embedding for, and for a model that translates
    where none is asked for: a sentence by itself says nothing to it.
    """
    manifest = read_manifest(manifest_path)
    tokenizer = load_tokenizer(manifest.folder / "tokenizer.json", recognise=())
    model = load_language_model(manifest.folder).float()
    if isinstance(model.config, EncoderDecoderConfig) and not translates:
        raise EvaluationError(
            f"{manifest_path}: this model translates, expected one that was trained with task masked or causal; "
            "translation_tests measure what it can do"
        )
    if not use_of(manifest, model).ends_texts:
        tokenizer = tokenizer.without_end()
    if tokenizer.vocabulary_size > model.config.vocab_size:
        raise EvaluationError(
            f"{manifest.folder}: the tokenizer has {tokenizer.vocabulary_size} entries, "
            f"the model only {model.config.vocab_size} embeddings: they do not belong together"
        )
    return model, tokenizer


def load_encoder(manifest_path: Path, template: bool = False) -> tuple[Encoder, TextTokenizer]:
    """A pretrained model without its head, in float32 on the CPU, and its tokenizer, whoever pretrained it.

    With `template`, a tokenizer of others frames texts by its own template alone, and numbers none.
    Raises like `load_pretrained`.
    """
    manifest = read_manifest(manifest_path)
    if not is_imported(manifest):
        model, tokenizer = load_pretrained(manifest_path)
        return model.encoder, tokenizer
    network, its, settings = load_baseline(manifest, template)
    return BaselineEncoder(network, settings.architecture, its), its


def load_sentence_model(
    manifest_path: Path, device: torch.device, scoring: str = "auto", template: bool = False
) -> SentenceModel:
    """A pretrained language model on `device`, in float32, whoever pretrained it, to be asked as `scoring` wants.

    With `template`, a causal model of others sees in front of a text what its tokenizer's template puts there.
    Raises like `load_pretrained`, and ConfigError for a way of scoring that does not fit the model.
    """
    manifest = read_manifest(manifest_path)
    if is_imported(manifest):
        return BaselineModel(*load_baseline(manifest, template), device, template)
    network, tokenizer = load_pretrained(manifest_path)
    use = use_of(manifest, network)
    # The first use is that of `auto`; a hybrid model also has the other use.
    kinds = dict.fromkeys((*use.learned, *use.kinds))
    architecture = required_architecture(scoring, tuple(kinds))
    return HatcheryModel(network, tokenizer, device, architecture, use.predicted_before)


def compile_where_it_pays_(model: SentenceModel, choice: CompilationChoice, tokens: int) -> None:
    """Compile the layers of a model of ours, in place, for so many tokens with special ones, if `choice` is for it."""
    if not isinstance(model, HatcheryModel):
        return
    pays = tokens >= COMPILED_FROM_TOKENS
    if chosen_compilation(choice, model.device, pays) == "off":
        return
    if compile_layers_(model.network, evaluated=True, any_length=True):
        print(COMPILATION_TAKES, file=sys.stderr, flush=True)


def compilation_in_use(model: SentenceModel) -> Compilation:
    """Whether layers of a model were compiled, for manifests; of others' models none is."""
    return compilation_of(model.network) if isinstance(model, HatcheryModel) else "off"


def prepare_device(name: DeviceName, threads: int | None = None, precision: MatrixPrecision = "fp32") -> torch.device:
    """Choose the device and pin the numerics that decide near-ties.

    `auto` takes a CUDA device when there is one. `threads` bounds the CPU threads of PyTorch; None leaves its choice.
    On CUDA, deterministic algorithms are asked for. Matrix products stay in full float32 unless `precision` says
    otherwise, because reduced ones flip near-ties between two sentences.
    Raises ConfigError when CUDA is demanded and absent, or `threads` is not positive.
    """
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"runtime.threads must be at least 1, got {threads}")
        torch.set_num_threads(threads)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("runtime.device: the device 'cuda' is demanded, but PyTorch finds none on this machine")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = False
    if not available or name == "cpu":
        return torch.device("cpu")
    # Sums over repeated ids (embeddings, position tables) otherwise vary from run to run; cuBLAS reads its variable
    # when the device is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # As `use_deterministic_algorithms(True, warn_only=True)`, which imports the compiler: a second.
    torch.set_deterministic_debug_mode("warn")
    # It only helps to find uninitialised reads, and costs a pass over every new tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda")
