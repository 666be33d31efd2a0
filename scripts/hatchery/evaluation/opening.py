"""Open a pretrained model for evaluations from Python and from the shell: a folder, a name on the Hugging Face hub, or
a module.

A folder contains a Hatchery result, an exported model, or a model in the format of the library `transformers`. Code in
a folder is never run. Models that the stage `import_model` refuses are also refused here.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn

from hatchery.artifacts.atomic import json_value
from hatchery.artifacts.manifests import MANIFEST, RESULTS, read_manifest
from hatchery.errors import ConfigError, ManifestError, ModelError, first_line
from hatchery.evaluation.baselines.loading import load_folder, read_texts_whole_
from hatchery.evaluation.ensembles import ensemble_of
from hatchery.evaluation.pretrained import LibraryTokensOfUser, ModelOfOthers, ModelOfUser, OurModel, Pretrained
from hatchery.evaluation.runtime import open_trained
from hatchery.evaluation.settings import BaselineSettings
from hatchery.evaluation.trained_objective import Use, objective_of_model, use_of_objective
from hatchery.evaluation.user_modules import LibraryView
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.exported_folder import exported_family, load_exported
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import CONFIG_FILE, load_language_model
from hatchery.settings.problems import ALLOWED, alternatives, nearest
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.training.objectives import objective_settings
from hatchery.training.own_model import OwnModel

Named = Architecture | Literal["hybrid"]
"""Architectures that a caller may pass; only a module that the caller wrote may be hybrid."""
WRITTEN = ("masked", "causal", "hybrid")
"""Architectures of modules that a user wrote; the names are those of the tasks of `hatchery.train`."""
HYBRID = {"AutoModelForMaskedLM", "AutoModelForCausalLM"}
"""Class names in the configuration of an exported hybrid model: one class for its use as a masked model, and one class
for its use as a causal model.
"""
MOST_LISTED = 30
"""Largest number of names that a message lists completely. The number is above 28, because an experiment may have 28 or
more word milestones.
"""
TOKENIZER_FILE = "tokenizer.json"
HUB_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Patterns of the files that are downloaded from the hub for a model; OTHER_WEIGHTS are downloaded only if the model
has no safetensors files.
"""
OTHER_WEIGHTS = ("pytorch_model*.bin",)
NOT_READ = ("*/*", "consolidated*", "*.onnx.*")
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
ENDS: dict[str, Architecture] = {
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "WithLMHeadModel": "masked",
    "LMHeadModel": "causal",
    "ForCausalLM": "causal",
    "ForConditionalGeneration": "encoder_decoder",
    "ForSeq2SeqLM": "encoder_decoder",
}
"""Architecture by the suffix of the class name in config.json; the first matching suffix counts."""


def open_model(
    model: str | PathLike[str] | nn.Module | Sequence[str | PathLike[str]],
    tokenizer: Any = None,
    architecture: Named | None = None,
    leading_blank: bool | None = None,
    predicts_next: bool = False,
) -> Pretrained:
    """Return a model with its tokenizer, in float32 on the CPU; a module keeps its data type and its device.

    `model` is one of the following:

    - a folder: a Hatchery result, an exported model, or a model in the format of `transformers`;
    - a name on the hub such as `bert-base-cased`, optionally with a revision after `@`;
    - a module: a `PreTrainedModel` with a fast tokenizer as `tokenizer`; a `LanguageModel` with a Hatchery `Tokenizer`;
      or a module with the interface of `training.own_model`, with a Hatchery `Tokenizer`, a folder with a tokenizer, or
      a fast tokenizer of `transformers`;
    - a list of folders of Hatchery, opened as an ensemble, which predicts the mean of the probabilities
      (`evaluation.ensembles`).

    `architecture` is needed only if the model's configuration does not determine it. `leading_blank` and
    `predicts_next` have the same meaning as in `BaselineSettings` and apply to external models.

    Raises ManifestError for a folder without a model, naming similar folders next to it; ModelError and
    TokenizationError for damaged files; EvaluationError for a tokenizer with ids that have no embedding; and
    ConfigError for an unknown architecture and for arguments that do not fit each other.
    """
    said: dict[str, Any] = {"leading_blank": leading_blank, "predicts_next": predicts_next}
    if isinstance(model, nn.Module):
        return _module(model, tokenizer, architecture, said)
    if isinstance(model, list | tuple):
        return ensemble_of([open_model(member, tokenizer, architecture) for member in model])
    if not isinstance(model, str | PathLike):
        raise ConfigError(
            f"model: got {type(model).__name__}, expected a folder, a name on the hub or a torch.nn.Module"
        )
    if tokenizer is not None:
        raise ConfigError(
            f"tokenizer: got a tokenizer for {model}, expected None, because a model's folder contains its tokenizer"
        )
    folder = Path(model).expanduser()
    manifest = folder if folder.name == MANIFEST else folder / MANIFEST
    if manifest.is_file():
        # In the workflow, the runner of the stage verifies the files. Here, nothing else does.
        made = read_manifest(manifest)
        made.verify()
        if not any(output.path.name == TOKENIZER_FILE for output in made.outputs):
            raise ManifestError(f"{folder}: the stage {made.stage} makes no model{_example(folder)}")
        model_settings = made.settings.get("model")
        if isinstance(model_settings, Mapping) and "module" in model_settings:
            raise ManifestError(
                f"{folder}: the model in this folder is the module {model_settings['module']} of your own code; pass "
                "the module with these weights as model, and this folder as tokenizer"
            )
        if (values := _config(made.folder)) and exported_family(values) is not None:
            return _exported(made.folder, values)
        return open_trained(made)
    if not folder.exists() and _is_hub_name(str(model)):
        folder = fetched(str(model))
    values = _config(folder)
    if values is None:
        raise ManifestError(f"{folder}: this folder contains no model{_example(folder)}")
    if exported_family(values) is not None:
        return _exported(folder, values)
    if "model_type" not in values:
        return _without_manifest(folder)
    kind = _checked(architecture or architecture_in(values, str(folder)))
    settings = BaselineSettings(architecture=kind, **said)
    return ModelOfOthers(*load_folder(folder, kind), settings, str(folder))


def architecture_in(values: Mapping[str, Any], where: str) -> Architecture:
    """Return the architecture of a `transformers` configuration. Raises ConfigError if its class names do not determine
    the architecture.
    """
    names = [str(name) for name in values.get("architectures") or ()]
    for name in names:
        for end, architecture in ENDS.items():
            if name.endswith(end):
                return architecture
    raise ConfigError(
        f"{where}: architecture: config.json names {', '.join(names) or 'no class'}, which does not determine the "
        f"architecture; pass architecture={get_args(Architecture)[0]!r} or another of: "
        f"{', '.join(get_args(Architecture))}"
    )


def fetched(name: str) -> Path:
    """Return the folder of a hub model in the local cache, after a download if necessary.

    Raises ModelError if the hub has no such model or cannot be reached.
    """
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")

    def get(patterns: tuple[str, ...]) -> Path:
        return Path(
            snapshot_download(
                repository, revision=revision or None, allow_patterns=list(patterns), ignore_patterns=list(NOT_READ)
            )
        )

    try:
        folder = get(HUB_FILES)
        return folder if any(folder.glob("*.safetensors")) else get((*HUB_FILES, *OTHER_WEIGHTS))
    except Exception as error:  # the library raises many kinds of errors, with messages of many lines
        raise ModelError(
            f"{name}: there is no folder of this name, and no model of this name could be fetched from the hub: "
            f"{first_line(error)}"
        ) from error


def _is_hub_name(name: str) -> bool:
    """Return True if a text may be a name on the hub: it has the form of a hub name, and the part before a slash is not
    a local folder.
    """
    return bool(_NAME.fullmatch(name)) and not ("/" in name and Path(name).parent.exists()) and name[0] != "."


def _checked(architecture: str) -> Architecture:
    if architecture not in get_args(Architecture):
        raise ConfigError(f"architecture: got {architecture!r}{ALLOWED}: {', '.join(get_args(Architecture))}")
    return architecture  # type: ignore[return-value]


def _config(folder: Path) -> dict[str, Any] | None:
    """Return the content of config.json; None for a folder without this file. Raises ModelError for content that is not
    a JSON object."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    try:
        values = json_value(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a readable JSON file: {first_line(error)}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: expected a JSON object, got {type(values).__name__}")
    return values


def _exported(folder: Path, values: Mapping[str, Any]) -> OurModel:
    found = load_exported(folder, values)
    tokenizer = load_tokenizer(folder / TOKENIZER_FILE, recognise=())
    tasks: dict[tuple[str, ...], str] = {
        ("ForMaskedLM",): "masked",
        ("ForCausalLM",): "causal",
        ("ForSeq2SeqLM",): "translation",
    }
    use = use_of_objective(objective_settings({"task": tasks.get(found.heads, "hybrid")}, str(folder)))
    # If the exported tokenizer of a masked or hybrid model appends no end token, the model was trained without end
    # tokens. Score its texts without end tokens, too.
    appends_end_token = use.kinds[0] != "masked" or len(tokenizer.backend.encode("").ids) > 1
    use = use._replace(appends_end_token=appends_end_token)
    return OurModel(
        found.network.float(), tokenizer if appends_end_token else tokenizer.without_end(), use, str(folder)
    )


def _without_manifest(folder: Path) -> OurModel:
    network = load_language_model(folder).float()
    return _ours(network, load_tokenizer(folder / TOKENIZER_FILE, recognise=()), str(folder))


def _ours(network: LanguageModel, tokenizer: Tokenizer, where: str) -> OurModel:
    if isinstance(network.config, EncoderDecoderConfig):
        return OurModel(network, tokenizer, Use(("translation",)), where)
    return OurModel(network, tokenizer, Use(("causal",) if network.causal else ("masked",)), where)


def _module(module: nn.Module, tokenizer: Any, architecture: str | None, said: Mapping[str, Any]) -> Pretrained:
    where = type(module).__name__
    if isinstance(module, LanguageModel):
        if not isinstance(tokenizer, Tokenizer):
            raise ConfigError(
                f"tokenizer: got {type(tokenizer).__name__} with a {where}, expected a Tokenizer of Hatchery"
            )
        return _ours(module, tokenizer, where)
    if not hasattr(module, "get_output_embeddings"):
        return _written_by_user(module, tokenizer, architecture)
    # The next line changes the tokenizer's settings. Copy the tokenizer first, so that the caller's tokenizer stays
    # unchanged.
    tokenizer = copy.deepcopy(tokenizer)
    read_texts_whole_(tokenizer, f"{where}: tokenizer")
    kind = architecture or architecture_in({"architectures": [where]}, where)
    values: Mapping[str, Any] = module.config.to_dict()  # type: ignore[union-attr, operator]
    if kind == "masked" and exported_family(values) is not None and set(values.get("auto_map") or ()) >= HYBRID:
        # The exported model is hybrid, so the model predicts a masked token at the position before that token.
        said = {**said, "predicts_next": True}
    return ModelOfOthers(module, tokenizer, BaselineSettings(architecture=_checked(kind), **said), where)


def _written_by_user(module: nn.Module, tokenizer: Any, architecture: str | None) -> ModelOfUser | LibraryTokensOfUser:
    name = where = type(module).__name__
    if hasattr(tokenizer, "backend_tokenizer"):
        return _with_library_tokenizer(module, tokenizer, architecture)
    objective = None
    if isinstance(tokenizer, str | Path):
        folder = Path(tokenizer).expanduser()
        if (folder / MANIFEST).is_file():
            made = read_manifest(folder / MANIFEST)
            made.verify()
            if "objective" in made.settings:
                where, objective = str(made.path), objective_of_model(made)
        tokenizer = load_tokenizer(folder / TOKENIZER_FILE, recognise=())
    if not isinstance(tokenizer, Tokenizer):
        raise ConfigError(
            f"tokenizer: got {type(tokenizer).__name__} for your module {name}, expected the folder of "
            "hatchery.train, the folder of a tokenizer, a Tokenizer of Hatchery, or a fast tokenizer of transformers"
        )
    if objective is not None and architecture not in (None, objective.task):
        raise ConfigError(f"architecture: got {architecture!r}, but {where} was trained with task {objective.task}")
    if objective is None and architecture not in WRITTEN:
        raise ConfigError(
            f"architecture: got {architecture!r} for your module {name}, expected one of: {', '.join(WRITTEN)}; the "
            "architecture is known only if the tokenizer is the folder of hatchery.train"
        )
    use = use_of_objective(objective or objective_settings({"task": architecture}, name))
    use = use._replace(appends_end_token=use.appends_end_token and bool(tokenizer.end_ids))
    network = OwnModel(module, tokenizer.vocabulary_size)
    return ModelOfUser(network, tokenizer if use.appends_end_token else tokenizer.without_end(), use, where, objective)


def _with_library_tokenizer(module: nn.Module, tokenizer: Any, architecture: str | None) -> LibraryTokensOfUser:
    name = type(module).__name__
    if architecture not in WRITTEN:
        raise ConfigError(
            f"architecture: got {architecture!r} for your module {name}, expected one of: {', '.join(WRITTEN)}"
        )
    # The next line changes the tokenizer's settings. Copy the tokenizer first, so that the caller's tokenizer stays
    # unchanged.
    tokenizer = copy.deepcopy(tokenizer)
    read_texts_whole_(tokenizer, f"{name}: tokenizer")
    settings = BaselineSettings(
        architecture="causal" if architecture == "causal" else "masked", predicts_next=architecture == "hybrid"
    )
    view = LibraryView(OwnModel(module, len(tokenizer)), architecture == "causal")
    return LibraryTokensOfUser(view, tokenizer, settings, name)


def _example(folder: Path) -> str:
    """Return the end of an error message about a folder without a model: an example of a folder with a model, and the
    names of the folders with a manifest next to `folder`. With more than MOST_LISTED names, only the most similar name
    is given.
    """
    names = sorted(path.parent.name for path in folder.parent.glob(f"*/{MANIFEST}"))
    listed = alternatives if 0 < len(names) <= MOST_LISTED else nearest
    example = f"{RESULTS}/demo/pretraining/ltg_bert-s42"
    return f"; expected a folder such as {example}{listed(folder.name, names)}"
