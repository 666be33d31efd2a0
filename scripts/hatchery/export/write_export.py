"""Write a model as a folder for `transformers`, with a card that describes the model, its training data and the terms
of use.

The card also contains the model's scores and a code example. All information comes from the configuration, from the
manifests of the model and its checkpoints, and from the experiment's summary.parquet. Unknown information is marked as
unknown. For example, if the licence of the data is unknown, the card names no licence of the model.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.analysis.scores import Scores
from hatchery.analysis.summary_rows import SummaryRow, read_summary
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.errors import ModelError
from hatchery.evaluation.sentences_file import GAP, Answer, FilledSentences, read_examples, text_of_sentences
from hatchery.evaluation.trained_objective import use_of
from hatchery.export.model_folder import write_model_folder
from hatchery.export.settings import BRANCHES, DataSource, ExportSettings
from hatchery.export.stages.list_exported_models import CARD
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.store import WEIGHTS_FILE, description, load_language_model
from hatchery.rendering.hub_metadata import front_matter, is_unknown, licence_entries, licence_id
from hatchery.rendering.table import Cell, Table, table
from hatchery.rendering.templates import render
from hatchery.sanitize import visible
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.training.ensemble import is_ensemble
from hatchery.training.objective import ModelKind
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.translate import never_written


def write_export(
    settings: ExportSettings,
    pretraining: Manifest,
    summary: Path | None,
    filled: Path | None,
    run: StageRun,
    checkpoints: Mapping[str, Path],
) -> None:
    """Write the folder of a model, with a subfolder for each of its `checkpoints`. The stage `export_model` describes
    the other arguments.
    """
    rows = [] if summary is None else read_summary(summary)
    examples = () if filled is None else (read_examples(filled), text_of_sentences(filled))
    scores = [row for row in rows if row.model == settings.run.model]
    facts = _write_branch(run, run.folder, settings, pretraining, scores, examples)
    for name, path in checkpoints.items():
        manifest = read_manifest(path)
        manifest.verify()
        its_scores = [row for row in rows if row.model == f"{settings.run.model}-{name}"]
        _write_branch(run, run.folder / BRANCHES / name, settings, manifest, its_scores, (), f"-{name}")
    run.measures["parameters"] = facts.parameters
    run.measures["licence"] = licence_id(source.licence for source in settings.sources)
    own = Scores(scores, [settings.run.model])
    leading = {measure.label: own.row_for(measure, settings.run.model) for measure in own.headline()}
    run.measures["scores"] = {name: row.mean for name, row in leading.items() if row and row.mean is not None}


def _write_branch(
    run: StageRun,
    folder: Path,
    settings: ExportSettings,
    pretraining: Manifest,
    scores: Sequence[SummaryRow],
    examples: tuple[()] | tuple[FilledSentences, str],
    end: str = "",
) -> "ModelFacts":
    """Write model, tokenizer, code and model card into `folder`; return the facts about the model that the card
    contains.

    `end` is appended to the model's name, for example the name of a checkpoint.
    """
    if is_ensemble(pretraining):
        raise ModelError(f"{pretraining.path}: an ensemble cannot be exported; export the members of the ensemble")
    model = load_language_model(pretraining.folder)
    tokenizer = load_tokenizer(pretraining.file("tokenizer.json"))
    generation = generation_settings(pretraining, tokenizer) if isinstance(model, TranslationModel) else None
    use = use_of(pretraining, model)
    folder.mkdir(parents=True, exist_ok=True)
    written = write_model_folder(
        folder, model, use.kinds, pretraining.file("tokenizer.json"), generation, use.appends_end_token
    )
    for path in written:
        run.add_output(path)
    facts = ModelFacts(
        name=f"{settings.experiment}: {settings.run.name}{end}",
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        config=description(model.config, model.causal),
        kinds=use.kinds,
        training=pretraining.settings,
        measures=pretraining.measures,
        digests=_digests(pretraining),
        position_limit=model.config.position_limit,
        mask_token=tokenizer.special.mask,
    )
    write_text(folder / CARD, model_card(settings, facts, scores, *examples))
    run.add_output(folder / CARD)
    return facts


def generation_settings(manifest: Manifest, tokenizer: Tokenizer) -> dict[str, object]:
    """Return the arguments of `generate` that make the beam search of `transformers` as similar as possible to
    Hatchery's own beam search for translation. Raises ModelError if the model was not trained with the task
    translation.
    """
    settings = pretrain_settings(manifest.settings)
    objective = settings.objective
    if not isinstance(objective, TranslationSettings):
        raise ModelError(f"{manifest.path}: the model translates, but its training's task is not translation")
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
        found["weights, as written by pretraining"] = weights
    return {**found, **{f"{name} of the pretraining": digest for name, digest in sorted(manifest.inputs.items())}}


ENGLISH_EXAMPLE = f"The dogs {GAP} near the house."
TRANSFORMERS = ("4.51.3", "5.23.0")
"""Versions of `transformers` with which Hatchery's tests load exported folders."""
HIDDEN = ("stage", "stage_version", "model")
HUB_METRICS = {
    "accuracy_percent": "accuracy",
    "f1_percent": "f1",
    "macro_f1_percent": "f1",
    "mcc_percent": "matthews_correlation",
    "perplexity": "perplexity",
    "bleu": "bleu",
    "chrf": "chrf",
}


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a model, read from its files."""

    name: str
    parameters: int
    config: Mapping[str, Any]
    training: Mapping[str, Any]
    """Settings of the pretraining, read from its manifest."""
    measures: Mapping[str, Any]
    """Measures of the pretraining, such as the number of steps and of tokens."""
    digests: Mapping[str, str]
    """SHA-256 digests of files, by description of the file."""
    position_limit: int | None
    mask_token: str
    kinds: Sequence[ModelKind]
    """Uses of the model: masked, causal or translation."""

    @property
    def causal(self) -> bool:
        """True if the model can be used as a causal language model. This includes hybrid models, which are trained on
        both masked and causal sequences.
        """
        return "causal" in self.kinds

    @property
    def translates(self) -> bool:
        """True if the model is a translation model."""
        return "translation" in self.kinds


def model_card(
    settings: ExportSettings,
    facts: ModelFacts,
    scores: Sequence[SummaryRow],
    written: FilledSentences | None = None,
    text: str = "text",
) -> str:
    """Return the text of README.md. `written` contains example sentences with the model's answers, and `text` names the
    text from which the sentences come.
    """
    return render(
        "model_card.md.j2",
        front_matter=_front_matter(settings, scores, facts),
        settings=settings,
        facts=facts,
        never_trained=facts.measures.get("steps") == 0,
        causal=facts.causal,
        direction=_direction(settings, facts),
        example=json.dumps(_example(settings, facts, written), ensure_ascii=False),
        introduction=written.wording.introduction.format(text) if written else "",
        examples=_examples_table(written) if written and written.examples else None,
        transformers=TRANSFORMERS,
        sources=_sources(settings.sources),
        licence=licence_statement(settings.sources),
        scores=_scores(scores),
        several=len(settings.seeds) > 1,
        architecture=_settings_table(facts.config),
        counted=[f"{facts.measures[key]:,} {key}" for key in ("steps", "tokens") if key in facts.measures],
        training=_settings_table({key: value for key, value in facts.training.items() if key not in HIDDEN}),
        digests=table(("SHA-256 of", "digest"), [(n, Cell(d, code=True)) for n, d in facts.digests.items()], words=2),
        sentence=_sentence,
    )


def licence_statement(sources: Sequence[DataSource]) -> str:
    """Return sentences about the model's licence. The function `licence_id` determines the model's licence from the
    licences of the sources. Sources with unknown licence are listed.
    """
    kind = licence_id(source.licence for source in sources)
    if kind == "apache-2.0":
        return "All training data is under Apache-2.0, and so is the model."
    if not sources:
        return "Nothing is known about the training data, so the licence of the model is unknown."
    unknown = [source.name for source in sources if is_unknown(source.licence)]
    if unknown:
        return (
            f"The licence of {', '.join(unknown)} is unknown, so the licence of the model is unknown. Clarify this, "
            "and the terms in the table above, before you distribute the model."
        )
    return (
        "The training data has the licences and terms in the table above. Which of these apply to the model depends on "
        "the place and purpose of its use; no further licence is granted."
    )


def _example(settings: ExportSettings, facts: ModelFacts, written: FilledSentences | None) -> str:
    """Return the input text of the card's code example. A sentence from `written` is preferred, because these sentences
    are in the model's language; without such a sentence, the text is a fixed text.
    """
    given = ENGLISH_EXAMPLE if "en" in settings.languages and not facts.translates else f"... {GAP} ..."
    if written and written.examples:
        given = written.examples[0].given
    elif facts.causal or facts.translates:
        given = given.partition(GAP)[0].strip()
    return visible(given.replace(GAP, facts.mask_token))


def _direction(settings: ExportSettings, facts: ModelFacts) -> tuple[str, str] | None:
    """Return (source language, target language) of a translation model. Return None for other models, and if the corpus
    does not have exactly two languages.
    """
    if not facts.translates or len(settings.languages) != 2:
        return None
    first, second = settings.languages
    return (first, second) if facts.training["objective"].get("direction") != "backward" else (second, first)


def _front_matter(settings: ExportSettings, scores: Sequence[SummaryRow], facts: ModelFacts) -> list[str]:
    if facts.translates:
        task, kind = "translation", "encoder-decoder"
    else:
        task, kind = ("text-generation", "causal-lm") if facts.causal else ("fill-mask", "masked-lm")
    return front_matter(
        {
            "language": list(settings.languages),
            **licence_entries(source.licence for source in settings.sources),
            "library_name": "transformers",
            "pipeline_tag": task,
            "tags": [task, kind, "custom_code", "hatchery"],
            "datasets": sorted({source.dataset for source in settings.sources if source.dataset}),
            "metrics": sorted({HUB_METRICS[score.metric] for score in scores if score.metric in HUB_METRICS}),
            "model-index": _model_index(facts.name, task, scores),
        }
    )


def _model_index(name: str, task: str, scores: Sequence[SummaryRow]) -> list[dict[str, object]]:
    """Return the scores in the hub's format `model-index`, with one result for each suite and task; empty if there are
    no scores.

    The `name` of a metric is its name in the experiment's summary.parquet, which includes the unit. Its `type` is the
    hub's name for this metric. If the hub has no name for the metric, `type` equals `name`.
    """
    results: dict[tuple[str, str], list[dict[str, object]]] = {}
    for score in scores:
        if score.mean is not None:
            metric = HUB_METRICS.get(score.metric, score.metric)
            shown = {"type": metric, "name": score.metric, "value": float(_number(score.mean))}
            results.setdefault((score.suite, score.task), []).append(shown)
    found = [
        {"task": {"type": task}, "dataset": {"name": suite, "type": suite, "config": part}, "metrics": metrics}
        for (suite, part), metrics in results.items()
    ]
    return [{"name": name, "results": found}] if found else []


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _sources(sources: Sequence[DataSource]) -> Table:
    rows = [(s.name, s.licence or "not known", s.terms or "not known", s.dataset or s.obtain or "-") for s in sources]
    return table(("source", "licence", "terms", "origin"), rows, words=4)


def _scores(scores: Sequence[SummaryRow]) -> Table | None:
    rows = [
        (
            score.suite,
            score.task,
            score.metric,
            _number(score.mean),
            _number(score.std),
            score.runs(decimals=2),
            _number(score.published_mean),
        )
        for score in scores
    ]
    header = ("suite", "task", "metric", "mean", "standard deviation", "runs", "published")
    return table(header, rows, words=3) if rows else None


def _settings_table(values: Mapping[str, Any]) -> Table:
    flat = dict(_flattened(values))
    return table(("setting", "value"), [(Cell(key, code=True), _shown(flat[key])) for key in sorted(flat)], words=2)


def _flattened(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _examples_table(written: FilledSentences) -> Table:
    """Return a table of example sentences with the model's answers."""
    wording = written.wording
    rows = [
        (each.given, each.original, *map(_answer, each.answers[: len(wording.answers)])) for each in written.examples
    ]
    header = (wording.given, wording.original, *wording.answers)
    return table(header, rows, words=len(header), caption="Examples", foreign=True)


def _answer(answer: Answer) -> str:
    return answer.text if answer.percent is None else f"{answer.text} ({answer.percent:.1f}\N{NO-BREAK SPACE}%)"
