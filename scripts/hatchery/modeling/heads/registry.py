"""The heads by name, with their options: what a task's configuration chooses from.

A head is an entry of `HEADS`; its options are a dataclass whose defaults are LTG-BERT's. Poolings and transforms have
registries of their own and compose with every head that has them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from torch import nn

from hatchery.errors import ConfigError, ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.pooling import (
    POOLINGS,
    FirstToken,
    LastToken,
    LayerReading,
    MeanOverTokens,
    PoolingName,
    PositionLinear,
)
from hatchery.modeling.heads.score_head import TransformName
from hatchery.modeling.heads.sequence_classifier import MultipleChoice, SequenceClassifier, SequenceRegressor
from hatchery.modeling.heads.span_classifier import SpanClassifier
from hatchery.modeling.heads.task_model import EncoderMode, TaskModel
from hatchery.modeling.heads.word_classifiers import ExtractiveSpan, MarkedWordsClassifier, TokenClassifier
from hatchery.modeling.roberta.encoder import RobertaEncoder
from hatchery.settings.base import Settings
from hatchery.typed import build


@dataclass(frozen=True)
class HeadContext:
    """What a head needs to know besides its options."""

    n_labels: int | None
    """Labels of the task, in the order of the outputs; None for heads that have no label set."""
    dropout: float
    seed: int
    pad_id: int
    """The tokenizer's padding, which "position_linear" pads with."""


@dataclass(frozen=True)
class EncoderOptions(Settings):
    """Options of every head."""

    encoder_mode: EncoderMode = "trained"


@dataclass(frozen=True)
class SequenceOptions(EncoderOptions):
    """Options of the heads with one vector per sequence."""

    transform: TransformName = "ltg_wrapper"
    pooling: PoolingName = "first_token"
    # Inputs are padded to this length, and cannot be longer; for position_linear alone.
    n_positions: int = 128
    # Whether tokens attend to that padding, as published; for position_linear alone.
    attend_padding: bool = True
    # The reduced-vocabulary study's script decides transform, pooling and loss by the model, see `_as_loaded`.
    loader: Literal["none", "reduced_vocabulary"] = "none"


@dataclass(frozen=True)
class RegressionOptions(SequenceOptions):
    """Options of `regression`."""

    # The output bias at the start: the mean of the targets, 2.5 for STS-B in LTG-BERT's code.
    initial_value: float = 0.0
    # The reduced-vocabulary study's squared error on max(0, output).
    rectified_loss: bool = False


@dataclass(frozen=True)
class ChoiceOptions(SequenceOptions):
    """Options of `multiple_choice`."""

    # LTG-BERT's binary cross-entropy per choice (COPA) instead of a softmax over the choices.
    independent_choices: bool = False


@dataclass(frozen=True)
class TokenOptions(EncoderOptions):
    """Options of `token_classification`."""

    transform: TransformName = "ltg_wrapper"


@dataclass(frozen=True)
class MarkedWordsOptions(EncoderOptions):
    """Options of `marked_words_classification`."""

    transform: TransformName = "ltg_wrapper"
    # Marked words of an input.
    n_marked: int = 2


@dataclass(frozen=True)
class ExtractiveOptions(EncoderOptions):
    """Options of `extractive_span`."""

    transform: TransformName = "none"
    # Tokens of the longest prediction.
    max_span_length: int = 30


@dataclass(frozen=True)
class ProbeOptions(Settings):
    """Options of `span_classification`."""

    encoder_mode: EncoderMode = "frozen"
    # Spans per target: 1 for POS and NER; 2 for SRL, coreference and dependencies.
    n_spans: int = 1
    # A sigmoid per label, or one softmax.
    multi_label: bool = True
    # What is mixed: what each layer contributes, its difference to the one below (the paper), its output (the code).
    layer_reading: LayerReading = "contributions"
    probe_size: int = 256
    pooling_heads: int = 4
    # A projection for each span, and a learned factor on the mix (Tenney et al. 2019).
    separate_projections: bool = False
    scaled_mix: bool = False


class HeadDefinition(NamedTuple):
    """One entry of the registry."""

    description: str
    options: type
    has_label_set: bool
    build: Callable[[Encoder, HeadContext, Any], TaskModel]


def build_task_model(
    name: str, encoder: Encoder, context: HeadContext, options: Mapping[str, Any] | None = None
) -> TaskModel:
    """The model of head `name` on `encoder`, which is not copied.

    Raises ConfigError, naming the key, for an unknown head, option or value, and for a label set that is missing or
    meaningless; ModelError for impossible values.
    """
    if name not in HEADS:
        raise ConfigError(f"head: got {name!r}, allowed are: {', '.join(HEADS)}")
    definition = HEADS[name]
    if (context.n_labels is not None) != definition.has_label_set:
        expected = "a number of labels" if definition.has_label_set else "none, because the head has no label set"
        raise ConfigError(f"head.{name}: got n_labels {context.n_labels!r}, expected {expected}")
    typed: Any = build(definition.options, options or {}, f"head.{name}")
    if isinstance(typed, SequenceOptions):
        typed = _as_loaded(encoder, typed)
    return definition.build(encoder, context, typed)


def make_pooling(options: SequenceOptions, pad_id: int) -> nn.Module:
    """The pooling that `options` name. Raises ModelError for an unknown name."""
    match options.pooling:
        case "first_token":
            return FirstToken()
        case "last_token":
            return LastToken()
        case "mean":
            return MeanOverTokens()
        case "position_linear":
            return PositionLinear(options.n_positions, pad_id, options.attend_padding)
    raise ModelError(f"pooling: got {options.pooling!r}, allowed are: {', '.join(POOLINGS)}")


def _as_loaded(encoder: Encoder, options: SequenceOptions) -> SequenceOptions:
    """The options that fit the model, or, where asked, those that the reduced-vocabulary study's script decides.

    The script (docs/papers/reduced-vocabulary.md, "Heads") tries the stock classifier, which fits the tied models, and
    those of its own whose two widths are equal; these silently lose the projection between them. Only the others get
    the study's own head. Raises ConfigError for a model of another family.
    """
    if options.loader == "none":
        is_blind = encoder.first_token_is_blind and options.pooling == "first_token"
        return replace(options, pooling="last_token") if is_blind else options
    if not isinstance(encoder, RobertaEncoder):
        raise ConfigError(f"loader: got {options.loader!r}, expected none: the model is none of the family roberta")
    if encoder.config.embedding_width == encoder.config.hidden_size:
        encoder.projection = encoder.projection_layer_norm = None
        return replace(options, transform="roberta", pooling="first_token")
    options = replace(options, transform="none", pooling="position_linear")
    return replace(options, rectified_loss=True) if isinstance(options, RegressionOptions) else options


def _labels(context: HeadContext) -> int:
    if context.n_labels is None:
        raise ConfigError("n_labels: got None, expected a number of labels")
    return context.n_labels


def _sequence_parts(context: HeadContext, options: SequenceOptions) -> dict[str, Any]:
    return {
        "pooling": make_pooling(options, context.pad_id),
        "transform": options.transform,
        "encoder_mode": options.encoder_mode,
    }


def _classification(encoder: Encoder, context: HeadContext, options: SequenceOptions) -> TaskModel:
    parts = _sequence_parts(context, options)
    return SequenceClassifier(encoder, _labels(context), context.dropout, context.seed, **parts)


def _regression(encoder: Encoder, context: HeadContext, options: RegressionOptions) -> TaskModel:
    return SequenceRegressor(
        encoder,
        context.dropout,
        context.seed,
        initial_value=options.initial_value,
        rectified_loss=options.rectified_loss,
        **_sequence_parts(context, options),
    )


def _choice(encoder: Encoder, context: HeadContext, options: ChoiceOptions) -> TaskModel:
    parts = _sequence_parts(context, options)
    independent = options.independent_choices
    return MultipleChoice(encoder, context.dropout, context.seed, independent_choices=independent, **parts)


def _tokens(encoder: Encoder, context: HeadContext, options: TokenOptions) -> TaskModel:
    return TokenClassifier(encoder, _labels(context), context.dropout, context.seed, **vars(options))


def _marked_words(encoder: Encoder, context: HeadContext, options: MarkedWordsOptions) -> TaskModel:
    return MarkedWordsClassifier(encoder, _labels(context), context.dropout, context.seed, **vars(options))


def _extractive(encoder: Encoder, context: HeadContext, options: ExtractiveOptions) -> TaskModel:
    return ExtractiveSpan(encoder, context.dropout, context.seed, **vars(options))


def _probe(encoder: Encoder, context: HeadContext, options: ProbeOptions) -> TaskModel:
    return SpanClassifier(encoder, _labels(context), context.dropout, context.seed, **vars(options))


HEADS: dict[str, HeadDefinition] = {
    "sequence_classification": HeadDefinition(
        "One class per text or pair of texts: GLUE, HANS, MSGS.", SequenceOptions, True, _classification
    ),
    "regression": HeadDefinition("One number per text or pair of texts: STS-B.", RegressionOptions, False, _regression),
    "multiple_choice": HeadDefinition("The best of several inputs: COPA.", ChoiceOptions, False, _choice),
    "marked_words_classification": HeadDefinition(
        "One class for words that are marked in a text or pair: WiC.", MarkedWordsOptions, True, _marked_words
    ),
    "token_classification": HeadDefinition("One class per token.", TokenOptions, True, _tokens),
    "extractive_span": HeadDefinition("First and last token of an answer.", ExtractiveOptions, False, _extractive),
    "span_classification": HeadDefinition(
        "Labels of given spans or pairs of spans: edge probing (POS, NER, SRL, coreference, dependencies).",
        ProbeOptions,
        True,
        _probe,
    ),
}
