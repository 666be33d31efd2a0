"""The model card: what a model is, what it was trained on and on which terms, how it scores, how it is loaded.

Everything comes from the configuration, the manifests and the summary; what is not known is said to be unknown. In
particular no licence is made up for a model whose data has none.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hatchery.evaluation.filled_sentences.results import FilledSentence
from hatchery.export.settings import DataSource, ExportSettings

ENGLISH_EXAMPLE = FilledSentence("The dogs ", "sleep", " near the house.")
UNKNOWN_LICENCES = ("", "none", "not stated", "unknown")
HUB_METRICS = {
    "accuracy_percent": "accuracy",
    "f1_percent": "f1",
    "macro_f1_percent": "f1",
    "mcc_percent": "matthews_correlation",
    "perplexity": "perplexity",
}


@dataclass(frozen=True)
class Score:
    """One row of the experiment's summary: a mean over runs, with the published value where there is one."""

    suite: str
    task: str
    metric: str
    mean: float | None
    std: float | None
    n: int
    n_failed: int
    published_mean: float | None


@dataclass(frozen=True)
class ModelFacts:
    """What the files of a model say about it."""

    name: str
    parameters: int
    config: Mapping[str, Any]
    training: Mapping[str, Any]
    """Settings of pretraining as its manifest has them."""
    measures: Mapping[str, Any]
    """What pretraining counted: steps, tokens."""
    digests: Mapping[str, str]
    """SHA-256 by what it is of."""
    position_limit: int | None
    mask_token: str


def model_card(
    settings: ExportSettings, facts: ModelFacts, scores: Sequence[Score], filled: Sequence[FilledSentence] = ()
) -> str:
    """The text of README.md; `filled` are sentences of the corpus that the model filled in."""
    parts = [
        _front_matter(settings, scores),
        f"# {facts.name}",
        _introduction(settings, facts),
        "## Use",
        _use(facts, filled),
        "## Training data and its terms",
        _data(settings),
        "## Licence",
        licence_statement(settings.sources),
        "## Scores",
        _scores(settings, scores),
        "## Architecture",
        _settings_table(facts.config),
        "## Training",
        _training(facts),
        "## Provenance",
        _table(("SHA-256 of", "digest"), [(name, f"`{digest}`") for name, digest in facts.digests.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def licence_id(sources: Iterable[DataSource]) -> str:
    """The licence in the hub's vocabulary: `unknown` where a source has none, `apache-2.0` for generated data alone.

    Everything else is `other`: which terms of its data bind a model is not for a program to say.
    """
    licences = {source.licence for source in sources}
    if not licences or any(_is_unknown(licence) for licence in licences):
        return "unknown"
    return "apache-2.0" if licences == {"Apache-2.0"} else "other"


def licence_statement(sources: Sequence[DataSource]) -> str:
    """In words what `licence_id` says, naming the sources that leave it open."""
    kind = licence_id(sources)
    if kind == "apache-2.0":
        return "All training data is under Apache-2.0, and so is the model."
    if not sources:
        return "Nothing is known about the training data, so no licence can be named for the model."
    unknown = [source.name for source in sources if _is_unknown(source.licence)]
    if unknown:
        return (
            f"No licence is known for {', '.join(unknown)}, so none can be named for the model. "
            "Settle that, and the terms in the table above, before you pass the model on."
        )
    return (
        "The training data comes under the licences and terms in the table above. Which of them bind the model depends "
        "on where and for what it is used; no licence is granted beyond them."
    )


def _is_unknown(licence: str) -> bool:
    words = licence.lower().strip()
    return words in UNKNOWN_LICENCES or words.startswith(("none;", "not stated", "that of each"))


def _front_matter(settings: ExportSettings, scores: Sequence[Score]) -> str:
    licence = licence_id(settings.sources)
    entries: dict[str, Any] = {"language": list(settings.languages), "license": licence}
    if licence == "other":
        entries["license_name"] = "terms-of-the-training-data"
        entries["license_link"] = "README.md"
    entries["library_name"] = "transformers"
    entries["pipeline_tag"] = "fill-mask"
    entries["tags"] = ["fill-mask", "masked-lm", "custom_code", "hatchery"]
    entries["datasets"] = sorted({source.dataset for source in settings.sources if source.dataset})
    entries["metrics"] = sorted({HUB_METRICS[score.metric] for score in scores if score.metric in HUB_METRICS})
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items() if value]
    return "\n".join(["---", *lines, "---"])


def _introduction(settings: ExportSettings, facts: ModelFacts) -> str:
    sentences = [
        f"The model `{settings.run}` (pretraining seed {settings.seed}) of the experiment {settings.experiment}."
    ]
    if settings.model_description:
        sentences.append(_sentence(settings.model_description))
    if settings.description:
        sentences.append(f"The experiment: {_sentence(settings.description)}")
    sentences.append(f"It has {facts.parameters:,} parameters.")
    if facts.measures.get("steps") == 0:
        sentences.append("**It was never trained**: its weights are random, as a baseline for the others.")
    return " ".join(sentences)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _use(facts: ModelFacts, filled: Sequence[FilledSentence]) -> str:
    # A sentence of the corpus is in the language of the model, whatever that is.
    example = (filled[0] if filled else ENGLISH_EXAMPLE).with_gap(facts.mask_token)
    if facts.position_limit is not None:
        limit = f"An input has at most {facts.position_limit} tokens, special ones included."
    else:
        limit = (
            "Positions are relative, so there is no limit on the length of an input; training had the lengths below."
        )
    return f"""The modelling file beside the weights is the code that trained them, so it has to be trusted:

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

folder = "."  # where this file lies
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForMaskedLM.from_pretrained(folder, trust_remote_code=True)
fill = pipeline("fill-mask", model=model, tokenizer=tokenizer)
for guess in fill({json.dumps(example, ensure_ascii=False)}):
    print(guess["token_str"], guess["score"])
```
{_filled_in(filled)}
`AutoModel` gives the encoder and `AutoModelForSequenceClassification` a classifier with a fresh head. The tokenizer
adds the tokens that frame an input. {limit}"""


def _filled_in(filled: Sequence[FilledSentence]) -> str:
    if not filled:
        return ""
    rows = [
        (
            sentence.with_gap(f"({sentence.word})"),
            ", ".join(f"{guess.text} {guess.percent:.1f} %" for guess in sentence.guesses),
        )
        for sentence in filled
    ]
    told = "Sentences of the corpus, with the word that was left out in brackets, and what the model says there:"
    return f"\n{told}\n\n" + _table(("sentence", "most probable"), rows) + "\n"


def _data(settings: ExportSettings) -> str:
    described = f": {_sentence(settings.corpus_description)}" if settings.corpus_description else "."
    rows = [
        (
            source.name,
            source.licence or "not known",
            source.terms or "not known",
            source.dataset or source.obtain or "-",
        )
        for source in settings.sources
    ]
    return f"The corpus `{settings.corpus}`{described}\n\n" + _table(("source", "licence", "terms", "origin"), rows)


def _scores(settings: ExportSettings, scores: Sequence[Score]) -> str:
    if not scores:
        return "The model was not evaluated."
    several = f"over the pretraining seeds {', '.join(map(str, settings.seeds))}"
    over = several if len(settings.seeds) > 1 else f"of pretraining seed {settings.seed}"
    rows = [
        (
            score.suite,
            score.task,
            score.metric,
            _number(score.mean) if score.mean is not None else "failed",
            _number(score.std),
            str(score.n) + (f", {score.n_failed} more failed" if score.n_failed else ""),
            _number(score.published_mean),
        )
        for score in scores
    ]
    header = ("suite", "task", "metric", "mean", "standard deviation", "runs", "published")
    return f"Means {over}, from the experiment's summary.\n\n" + _table(header, rows)


def _training(facts: ModelFacts) -> str:
    counted = [f"{facts.measures[key]:,} {key}" for key in ("steps", "tokens") if key in facts.measures]
    text = f"Trained for {' and '.join(counted)}.\n\n" if counted else ""
    hidden = ("stage", "stage_version", "model")
    return text + _settings_table({key: value for key, value in facts.training.items() if key not in hidden})


def _settings_table(values: Mapping[str, Any]) -> str:
    flat = dict(_flattened(values))
    return _table(("setting", "value"), [(f"`{key}`", _shown(value)) for key, value in sorted(flat.items())])


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


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
