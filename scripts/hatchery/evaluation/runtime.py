"""Prepare an evaluation: load the pretrained model and its tokenizer, and choose the device.

The caller (the runner, or `opening.open_model`) has already compared the checksums of the files of model and tokenizer
with the manifest of the pretraining. A change of device, threads or compilation does not cause a result to be computed
again.
"""

import os
import sys
from pathlib import Path

import torch

from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import load_folder
from hatchery.evaluation.ensembles import Ensemble
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, ModuleModel, SentenceModel
from hatchery.evaluation.pretrained import ModelOfOthers, ModelOfUser, OurModel
from hatchery.evaluation.settings import BaselineSettings, MatrixPrecision, is_imported
from hatchery.evaluation.trained_objective import objective_of_model, use_of
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import load_language_model
from hatchery.settings.base import Compilation, CompilationChoice, DeviceName
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.training.compilation import COMPILATION_TAKES, chosen_compilation, compilation_of, compile_layers_
from hatchery.training.ensemble import is_ensemble, load_members
from hatchery.typed import build, stage_body

COMPILED_FROM_TOKENS = 1 << 26
"""Number of tokens above which compiling an evaluation saves time (inferred). Compiling takes 20 to 40 s. In training,
compiling the base model saves about 2 microseconds per token (docs/gpu.md). An evaluation has no backward pass and
saves about a third of this time per token, so the compile time is regained after about this number of tokens. The
inputs that a masked model reads for the 67,000 pairs of BLiMP contain a quarter of this number.
"""


def open_trained(trained: Manifest) -> OurModel | ModelOfUser | ModelOfOthers:
    """Return the model that a manifest describes, in float32 on the CPU: a model or an ensemble trained by Hatchery, or
    an imported model.

    Raises ModelError and TokenizationError for damaged files, and EvaluationError if the tokenizer has ids without an
    embedding.
    """
    where = str(trained.path)
    if is_imported(trained):
        settings = build(BaselineSettings, stage_body(trained.settings), where)
        return ModelOfOthers(*load_folder(trained.folder, settings.architecture), settings, str(trained.folder))
    tokenizer = load_tokenizer(trained.folder / "tokenizer.json", recognise=())
    networks = load_members(trained) if is_ensemble(trained) else [load_language_model(trained.folder).float()]
    use = use_of(trained, networks[0])
    objective = objective_of_model(trained) if "objective" in trained.settings else None
    tokenizer = tokenizer if use.appends_end_token else tokenizer.without_end()
    if is_ensemble(trained):
        return ModelOfUser(Ensemble(networks), tokenizer, use, where, objective)
    return OurModel(networks[0], tokenizer, use, where, objective)


def load_pretrained(manifest_path: Path, translates: bool = False) -> tuple[LanguageModel, Tokenizer]:
    """Return a Hatchery model in float32 on the CPU, and its tokenizer. The tokenizer encodes the spelling of a special
    token in a text as plain text.

    Raises the errors of `open_trained`, ManifestError for an unusable manifest, and EvaluationError for an external
    model or an ensemble. Unless `translates` is true, also raises EvaluationError for a translation model, because a
    translation model assigns no probability to a single sentence.
    """
    opened = open_trained(read_manifest(manifest_path))
    if not isinstance(opened, OurModel):
        raise EvaluationError(
            f"{manifest_path}: this model is an external model or an ensemble, expected a single model trained with "
            "Hatchery"
        )
    if not translates:
        opened.refuse_translation()
    return opened.network, opened.tokenizer


def load_encoder(manifest_path: Path, template: bool = False) -> tuple[Encoder, TextTokenizer]:
    """Return a pretrained model without its head, in float32 on the CPU, and its tokenizer.

    `template` has an effect only on an external model: if it is true, a text gets exactly the special tokens of the
    template in its tokenizer's file, and the model's input contains no token types. Raises the errors of
    `open_trained`, and EvaluationError for a translation model or an ensemble.
    """
    return open_trained(read_manifest(manifest_path)).encoder(template)


def load_sentence_model(
    manifest_path: Path, device: torch.device, scoring: str = "auto", template: bool = False
) -> HatcheryModel | ModuleModel | BaselineModel:
    """Return a pretrained language model on `device`, in float32, prepared for the scoring method `scoring`.

    If `template` is true, the input of an external causal model begins with the special tokens of its tokenizer's
    template. Raises the errors of `open_trained`, and EvaluationError for a translation model. A scoring method that
    the model does not support raises an error only when texts are scored (`scoring_name`).
    """
    return open_trained(read_manifest(manifest_path)).asked(device, scoring, template)


def compile_where_it_pays_(model: SentenceModel, choice: CompilationChoice, tokens: int) -> None:
    """Compile the layers of a Hatchery model in place, if `choice` is "layers". If `choice` is "auto", compile the
    layers only on a GPU, and only if `tokens`, the number of tokens to evaluate, is so large that compilation saves
    time.
    """
    if not isinstance(model, HatcheryModel):
        return
    pays = tokens >= COMPILED_FROM_TOKENS
    if chosen_compilation(choice, model.device, pays) == "off":
        return
    if compile_layers_(model.network, evaluated=True, any_length=True):
        print(COMPILATION_TAKES, file=sys.stderr, flush=True)


def compilation_in_use(model: SentenceModel) -> Compilation:
    """Return the word that manifests store: `layers` if the layers of the model were compiled, else `off`. Only the
    layers of Hatchery's models are ever compiled.
    """
    return compilation_of(model.network) if isinstance(model, HatcheryModel) else "off"


def prepare_device(name: DeviceName, threads: int | None = None, precision: MatrixPrecision = "fp32") -> torch.device:
    """Return the PyTorch device called `name`, and set PyTorch's numeric options so that the comparison of two
    sentences with almost equal scores has the same result in every run.

    `auto` is a CUDA device if there is one. `threads` limits the CPU threads of PyTorch; None uses PyTorch's default.
    On CUDA, deterministic algorithms are enabled. Matrix products are computed in full float32 unless `precision` is
    "tf32", because reduced precision would change the result of some of these comparisons. Raises ConfigError if CUDA
    is required and missing, or if `threads` is not positive.
    """
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"runtime.threads must be at least 1, got {threads}")
        torch.set_num_threads(threads)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("runtime.device: got 'cuda', but PyTorch finds no CUDA device on this machine")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = False
    if not available or name == "cpu":
        return torch.device("cpu")
    # Sums of gradients over repeated ids (embeddings, position tables) vary between runs, unless deterministic
    # algorithms are used. Deterministic algorithms need this variable, which cuBLAS reads when the device is first
    # used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # This call has the same effect as `use_deterministic_algorithms(True, warn_only=True)`. That function would also
    # import the compiler, which takes a second.
    torch.set_deterministic_debug_mode("warn")
    # In deterministic mode, PyTorch fills new tensors, to help find reads of uninitialised memory. Filling costs time,
    # so disable it.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda")
