"""The stage `import_model`: convert a raw folder with an external model to a result folder with the same files as the
folder of a pretrained Hatchery model.

The result contains the complete language model in float32 as `model.safetensors`, `config.json` and the tokenizer's
files. Every evaluation can therefore read an imported model like a Hatchery model. Errors in the raw folder are
reported in this stage, before the first evaluation.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ModelError
from hatchery.evaluation.settings import BaselineSettings
from hatchery.raw.registration import open_source
from hatchery.stage import ADDRESS, IMPORTED, Stage, StoredByDigest
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource

# Files that `transformers` writes and no evaluation reads. The import deletes these files from the result.
UNUSED = ("generation_config.json", "chat_template.jinja")

NEVER_READ = ("*.py", "*.ipynb", "*.md", "README*", "LICENSE*")
"""Patterns of files that are not imported, because a model's code is never executed and its documents are not needed.

The classes of model and tokenizer determine which other files are read.
"""


def import_settings(project: "Project", baseline: str) -> dict[str, object]:
    """Return the settings of the external model called `baseline`."""
    return keys_of(project.baseline(baseline), only=BaselineSettings)


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return all files of the source except those that match NEVER_READ."""
    return set(source.names()) - {file for pattern in NEVER_READ for file in source.names(pattern)}


@Stage(
    version=1,
    settings=import_settings,
    inputs=lambda of, project, baseline: {"source": of("register_source", source=project.baseline(baseline).data)},
    wildcard_patterns=lambda project: {"model": f"{IMPORTED}{ADDRESS}"},
    files_read=files_read,
    shared=StoredByDigest("baselines"),
    keep=True,
    environment="evaluation",
    runs_on="cpu",
    # The job holds two copies of a model in memory, and a model may be large.
    memory_mb=16000,
    minutes=60,
)
def import_model(settings: BaselineSettings, source: Path, run: StageRun) -> None:
    """Import an external model from the folder of a source manifest into the folder of `run`.

    Raises ModelError for a source that is not a folder, for a model that cannot be loaded or lacks weights
    (`load_folder`), and for an unusable tokenizer.
    """
    found = open_source(source)
    where = str(found.root)
    if found.kind == "file":
        raise ModelError(f"{where}: a model must be registered as a folder, this source is a file")
    # Import inside the function, because these imports take seconds.
    from hatchery.evaluation.baselines.encoder import start_of_decoder
    from hatchery.evaluation.baselines.loading import load_folder

    for stale in run.folder.iterdir():
        if stale.is_file():
            stale.unlink()
    network, tokenizer = load_folder(where, settings.architecture)
    run.measures |= _checked(network, tokenizer, settings, where)
    if settings.architecture == "encoder_decoder":
        # Some folders define the decoder's start token only in generation_config.json, which is not imported. Store
        # this token in the model's configuration.
        network.config.decoder_start_token_id = start_of_decoder(network, where)
    tokenizer.save_pretrained(run.folder)
    network.save_pretrained(run.folder)
    for name in UNUSED:
        (run.folder / name).unlink(missing_ok=True)
    for path in sorted(run.folder.iterdir()):
        if path.is_file():
            run.add_output(path)


def _checked(network: Any, tokenizer: Any, settings: BaselineSettings, where: str) -> dict[str, object]:
    """Return facts about the model for the manifest, such as sizes. Raises ModelError for a model or tokenizer that
    evaluations cannot use.
    """
    import torch

    from hatchery.evaluation.baselines.encoder import BaselineEncoder, BaselineModel
    from hatchery.evaluation.baselines.loading import BaselineTokenizer

    its = BaselineTokenizer(tokenizer, settings.architecture, where)
    model = BaselineModel(network, its, settings, torch.device("cpu"))
    encoder = BaselineEncoder(network, settings.architecture, its)
    embedding = network.get_input_embeddings()
    return {
        "architecture": settings.architecture,
        "class": type(network).__name__,
        "model_type": network.config.model_type,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "layers": encoder.n_layers,
        "embedding_size": int(embedding.embedding_dim),
        "hidden_size": encoder.config.hidden_size,
        "vocabulary_rows": model.vocabulary_size,
        "tied": network.get_output_embeddings().weight is embedding.weight,
        "longest_input": model.longest_input,
    }
