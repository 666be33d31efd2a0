"""The registry of task heads: name, options and model class of each head.

An entry of `HEADS` names a model class and the dataclass of its options. The defaults of the options are LTG-BERT's
values, if LTG-BERT has this head. Poolings and transforms have their own registries and can be combined with every head
that uses them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from hatchery.errors import ConfigError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.sequence_classifier import (
    ChoiceOptions,
    MultipleChoice,
    RegressionOptions,
    SequenceClassifier,
    SequenceOptions,
    SequenceRegressor,
)
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanClassifier
from hatchery.modeling.heads.task_model import HeadContext, TaskModel
from hatchery.modeling.heads.word_classifiers import (
    ExtractiveOptions,
    ExtractiveSpan,
    GivenWordsOptions,
    MarkedWordsClassifier,
    MarkedWordsOptions,
    TokenClassifier,
    WordClassifier,
    WordOptions,
)
from hatchery.modeling.roberta.encoder import RobertaEncoder
from hatchery.typed import build


class HeadDefinition(NamedTuple):
    """A head: the class of its options, whether the head needs a label set, and the class of its model."""

    options: type
    has_label_set: bool
    model: Callable[[Encoder, HeadContext, Any], TaskModel]


def build_task_model(
    name: str, encoder: Encoder, context: HeadContext, options: Mapping[str, Any] | None = None
) -> TaskModel:
    """Return the model with the head `name` on `encoder` itself, not on a copy. If the option `loader` is set, the
    projection after the embedding of a RoBERTa-like encoder may be removed (see `_as_loaded`).

    Raises ConfigError, naming the key, for an unknown head or option, an invalid value, a missing label set, and a
    label set for a head without labels. Raises ModelError for values that the model class refuses.
    """
    if name not in HEADS:
        raise ConfigError(f"head: got {name!r}, allowed are: {', '.join(HEADS)}")
    definition = HEADS[name]
    if (context.n_labels is not None) != definition.has_label_set:
        expected = "a number of labels" if definition.has_label_set else "none, because the head has no label set"
        raise ConfigError(f"head.{name}: got n_labels {context.n_labels!r}, expected {expected}")
    typed: Any = build(definition.options, options or {}, f"head.{name}")
    if isinstance(typed, SequenceOptions):
        chosen = _as_loaded(encoder, typed)
        if isinstance(encoder, RobertaEncoder) and typed.loader != "none" and chosen.pooling != "position_linear":
            encoder.projection = encoder.projection_layer_norm = None
        typed = chosen
    return definition.model(encoder, context, typed)


def read_pooling(name: str, encoder: Encoder, options: Mapping[str, Any] | None = None) -> str | None:
    """Return the pooling that head `name` uses on `encoder`; None for a head without pooling.

    The encoder may require a pooling that differs from the pooling in the options (`_as_loaded`).
    """
    typed: Any = build(HEADS[name].options, options or {}, f"head.{name}")
    return _as_loaded(encoder, typed).pooling if isinstance(typed, SequenceOptions) else None


def _as_loaded(encoder: Encoder, options: SequenceOptions) -> SequenceOptions:
    """Return `options` with the transform and the pooling that are used for this encoder.

    If `loader` is "reduced_vocabulary", transform and pooling are those of the reduced-vocabulary study's script
    (docs/papers/reduced-vocabulary.md, "Heads"). If embeddings and hidden states have equal widths, the script loads
    RoBERTa's stock classifier. This classifier has no projection after the embedding; if the pretrained model has such
    a projection, which is true of models with untied embeddings, the script drops it without a warning. If the widths
    differ, the script loads the study's own head. In causal models with RoBERTa's stock classifier or without a
    `loader`, the pooling "last_token" replaces "first_token". Raises ConfigError if `loader` is set for a model that is
    not of the family roberta.
    """
    if options.loader == "none":
        return _without_blind_token(encoder, options)
    if not isinstance(encoder, RobertaEncoder):
        raise ConfigError(f"loader: got {options.loader!r}, expected no loader: the model is not of the family roberta")
    if encoder.config.embedding_width == encoder.config.hidden_size:
        return _without_blind_token(encoder, replace(options, transform="roberta", pooling="first_token"))
    options = replace(options, transform="none", pooling="position_linear")
    return replace(options, rectified_loss=True) if isinstance(options, RegressionOptions) else options


def _without_blind_token(encoder: Encoder, options: SequenceOptions) -> SequenceOptions:
    is_blind = encoder.first_token_is_blind and options.pooling == "first_token"
    return replace(options, pooling="last_token") if is_blind else options


HEADS: dict[str, HeadDefinition] = {
    # Predicts one class label for each text or pair of texts: GLUE, HANS, MSGS.
    "sequence_classification": HeadDefinition(SequenceOptions, True, SequenceClassifier),
    # Predicts one number for each text or pair of texts: STS-B.
    "regression": HeadDefinition(RegressionOptions, False, SequenceRegressor),
    # Predicts the index of the best of several inputs: COPA.
    "multiple_choice": HeadDefinition(ChoiceOptions, False, MultipleChoice),
    # Predicts one class for the marked words in a text or pair of texts: WiC.
    "marked_words_classification": HeadDefinition(MarkedWordsOptions, True, MarkedWordsClassifier),
    # Predicts one class for each token.
    "token_classification": HeadDefinition(WordOptions, True, TokenClassifier),
    # Predicts the first token and the last token of an answer.
    "extractive_span": HeadDefinition(ExtractiveOptions, False, ExtractiveSpan),
    # Predicts the labels of given spans or pairs of spans: edge probing (POS, NER, SRL, coreference, dependencies).
    "span_classification": HeadDefinition(ProbeOptions, True, SpanClassifier),
    # Predicts one class for each given word: parts of speech.
    "word_classification": HeadDefinition(GivenWordsOptions, True, WordClassifier),
}
