"""A model as a folder for `transformers`."""

from pathlib import Path

from hatchery.analysis.summary_rows import read_summary
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.errors import ModelError
from hatchery.evaluation.filled_sentences.results import read_examples, text_of_sentences
from hatchery.evaluation.trained_objective import use_of
from hatchery.export.card import ModelFacts, licence_id, model_card
from hatchery.export.model_folder import write_model_folder
from hatchery.export.settings import ExportSettings
from hatchery.export.stages.list_exported_models import CARD
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.store import WEIGHTS_FILE, description, load_language_model
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.translate import never_written

# Averages over tasks and suites, and the perplexity; `summary_sections` shows the same in its overview.
MAIN_TASKS = ("development", "average", "phenomenon_average")


def write_export(
    settings: ExportSettings, pretraining: Manifest, summary: Path | None, filled: Path | None, run: StageRun
) -> None:
    """Write the folder of a model; see the stage `export_model`."""
    model = load_language_model(pretraining.folder)
    tokenizer = load_tokenizer(pretraining.file("tokenizer.json"))
    generation = _generation(pretraining, tokenizer) if isinstance(model, TranslationModel) else None
    kinds = use_of(pretraining, model).kinds
    for path in write_model_folder(run.folder, model, kinds, pretraining.file("tokenizer.json"), generation):
        run.add_output(path)
    scores = [] if summary is None else [row for row in read_summary(summary) if row.model == settings.run.model]
    facts = ModelFacts(
        name=f"{settings.experiment}: {settings.run.name}",
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        config=description(model.config, model.causal),
        kinds=kinds,
        training=pretraining.settings,
        measures=pretraining.measures,
        digests=_digests(pretraining),
        position_limit=model.config.position_limit,
        mask_token=tokenizer.special.mask,
    )
    examples = () if filled is None else (read_examples(filled), text_of_sentences(filled))
    write_text(run.folder / CARD, model_card(settings, facts, scores, *examples))
    run.add_output(run.folder / CARD)
    run.measures["parameters"] = facts.parameters
    run.measures["licence"] = licence_id(settings.sources)
    run.measures["scores"] = {
        f"{s.suite}: {s.task}, {s.metric}": s.mean for s in scores if s.task in MAIN_TASKS and s.mean is not None
    }


def _generation(manifest: Manifest, tokenizer: Tokenizer) -> dict[str, object]:
    """What `generate` does by itself: our beam search, as closely as the library's comes to it."""
    settings = pretrain_settings(manifest.settings)
    objective = settings.objective
    if not isinstance(objective, TranslationSettings):
        raise ModelError(f"{manifest.path}: a model that translates was not trained with task translation")
    search = objective.search
    return {
        "num_beams": search.beam,
        "length_penalty": 1.0,
        "early_stopping": "never",
        "max_new_tokens": search.longest(settings.sequence_length - 1),
        "suppress_tokens": sorted(never_written(tokenizer)),
    }


def _digests(manifest: Manifest) -> dict[str, str]:
    weights = next((o.sha256 for o in manifest.outputs if o.path.name == WEIGHTS_FILE), None)
    found = {"manifest of the pretraining": manifest.digest}
    if weights is not None:
        found["weights as pretraining wrote them"] = weights
    return {**found, **{f"{name} of the pretraining": digest for name, digest in sorted(manifest.inputs.items())}}
