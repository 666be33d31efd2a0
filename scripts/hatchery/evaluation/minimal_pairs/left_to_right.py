"""Log-likelihoods of sentences from left to right, under a causal model.

As in BabyLM's pipeline: LL = sum over i of log p(t_i | context, t_1 … t_(i-1)), where the context is the special tokens
before a sentence (`frame.before`). In the pipeline of 2023, the context is EOS, or BOS if the tokenizer has no EOS. The
sum has no term for a final EOS (docs/papers/babylm-evaluation.md, "Pseudo-log-likelihood"). Each sentence needs one
forward pass; sentences with a common prefix share the computation of this prefix.

Inputs of equal length share a batch, so most inputs are not padded. There are two exceptions. The texts after shared
prefixes are padded. If a few sentences are scored interactively (`padded`), inputs of similar lengths share a batch and
are padded. The padding is at the end, where no scored token sees it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from hatchery.evaluation.minimal_pairs.likelihoods import (
    scored_tokens,
    tiled_log_probabilities,
    token_pseudo_log_likelihoods,
)
from hatchery.evaluation.minimal_pairs.sentence_model import (
    AT_ONE,
    EncodedSentence,
    HatcheryModel,
    SentenceModel,
    Temperatures,
    no_gradients,
    target_log_probabilities,
)
from hatchery.evaluation.minimal_pairs.shared_prefixes import SharedBatch, batches_of, groups_of
from hatchery.modeling.language_model import moved

# One call of the model costs about as much time as the computation of this number of positions. If padding adds fewer
# positions, a common batch is faster than another call. The number was measured with 20 sentences and a model of 6
# layers with 128 units; from 16 to 256, the speed differs little.
POSITIONS_OF_A_CALL = 64


def token_left_to_right_likelihoods(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
    temperatures: Temperatures = AT_ONE,
    padded: bool = False,
) -> list[np.ndarray]:
    """Return the natural log-probability of every scored token given the earlier tokens: one float32 array [N] for each
    sentence with N scored tokens.

    If several `temperatures` are given, the arrays are [N, temperatures]. If `padded` is true, sentences of similar
    lengths share a batch of a Hatchery model. This is faster for few sentences, and changes the log-probabilities by
    rounding.

    `sentences` are distinct and in ascending length. A batch holds at most `tokens_per_batch` tokens, but always at
    least one sentence. `on_tokens` is called with the number of finished tokens, context included. If the model can
    continue from cached prefixes and the only temperature is 1, shared prefixes are computed once.
    """
    # Pad only the inputs of Hatchery's models: modules of users and external models may attend to padding.
    padding = POSITIONS_OF_A_CALL if padded and isinstance(model, HatcheryModel) else 0
    if not model.shares_prefixes or temperatures != AT_ONE:
        return _each_by_itself(model, sentences, tokens_per_batch, on_tokens, temperatures, padding)
    inputs = [(*model.frame.before, *sentence.ids[:-1]) for sentence in sentences]
    groups = groups_of(inputs)
    grouped = {member for group in groups for member in group.members}
    others = [number for number in range(len(sentences)) if number not in grouped]
    by_number: dict[int, np.ndarray] = dict(
        zip(
            others,
            _each_by_itself(
                model, [sentences[number] for number in others], tokens_per_batch, on_tokens, padding=padding
            ),
            strict=True,
        )
    )
    for batch in batches_of(groups, inputs, tokens_per_batch):
        by_number |= _behind_prefixes(model, batch, sentences)
        on_tokens(sum(len(inputs[member]) + 1 for member in batch.members))
    return [by_number[number] for number in range(len(sentences))]


def _behind_prefixes(
    model: SentenceModel, batch: SharedBatch, sentences: Sequence[EncodedSentence]
) -> dict[int, np.ndarray]:
    """Return the log-probabilities of the scored tokens of each sentence in `batch`, by the sentence's index in
    `sentences`."""
    counts = [sentences[member].scored for member in batch.members]
    text = np.repeat(np.arange(len(batch.members)), counts)
    n_before = len(model.frame.before)
    # The logits that predict a token are at the position before this token.
    columns = np.concatenate(
        [n_before - 1 + np.arange(one.given, len(one.ids)) for one in (sentences[member] for member in batch.members)]
    )
    targets = np.concatenate([np.array(sentences[m].ids[sentences[m].given :], dtype=np.int64) for m in batch.members])
    rows, of = np.unique(batch.places(columns, text), return_inverse=True)
    tensors = (moved(torch.from_numpy(array), model.device) for array in (batch.prefixes, batch.of, batch.rest, rows))
    asked, wanted = (moved(torch.from_numpy(array), model.device) for array in (of.reshape(-1), targets))
    with no_gradients(model.device):
        if isinstance(model, HatcheryModel) and model.device.type == "cpu":
            features = model.features_behind(*tensors)
            values = tiled_log_probabilities(features, *model.network.output_layer, asked, wanted)
        else:
            log_probabilities = torch.log_softmax(model.logits_behind(*tensors).float(), dim=-1)
            values = log_probabilities[asked, wanted]
    parts = np.split(values.cpu().numpy(), np.cumsum(counts)[:-1])
    return dict(zip(batch.members, parts, strict=True))


def _each_by_itself(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
    temperatures: Temperatures = AT_ONE,
    padding: int = 0,
) -> list[np.ndarray]:
    context = np.array(model.frame.before, dtype=np.int64)
    batches: list[Tensor] = []
    lengths: list[int] = []
    for bucket in buckets(sentences, padding):
        encoded, length = list(bucket), len(bucket[-1].ids)
        ids = np.array([(*sentence.ids, *[0] * (length - len(sentence.ids))) for sentence in encoded], dtype=np.int64)
        asked = scored_tokens(encoded, length)
        # Leave out the last token of each input: no scored token follows it.
        inputs = np.concatenate([np.broadcast_to(context, (len(ids), len(context))), ids[:, :-1]], axis=1)
        columns = np.arange(len(context) - 1, inputs.shape[1])
        rows_per_batch = max(1, tokens_per_batch // inputs.shape[1])
        for start in range(0, len(ids), rows_per_batch):
            batch = inputs[start : start + rows_per_batch]
            here = asked[start : start + len(batch)]
            flat = (np.arange(len(batch))[:, None] * batch.shape[1] + columns)[here]
            targets = ids[start : start + len(batch)][here]
            arrays = (batch, flat, np.arange(len(flat)), targets)
            tensors = [moved(torch.from_numpy(array), model.device) for array in arrays]
            batches.append(target_log_probabilities(model, *tensors, temperatures=temperatures))
            lengths += here.sum(axis=1).tolist()
            part = encoded[start : start + len(batch)]
            on_tokens(sum(len(context) + len(sentence.ids) for sentence in part))
    if not batches:
        return []
    # Each transfer from the device waits for the device, so copy all results at the end in one transfer.
    return np.split(torch.cat(batches).cpu().numpy(), np.cumsum(lengths)[:-1])


def buckets(sentences: Sequence[EncodedSentence], padding: int) -> Iterator[list[EncodedSentence]]:
    """Divide sentences, sorted by ascending length, into lists. A batch contains sentences of only one list.

    Sentences of the next length join a list if this adds at most `padding` positions of padding.
    """
    joined: list[EncodedSentence] = []
    for length, same in groupby(sentences, key=lambda sentence: len(sentence.ids)):
        if joined and len(joined) * (length - len(joined[-1].ids)) > padding:
            yield joined
            joined = []
        joined += same
    if joined:
        yield joined


def token_fused_likelihoods(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
    temperatures: Temperatures,
) -> list[np.ndarray]:
    """Return for each scored token the sum of two log-probabilities under one model: as a masked token, and as the next
    token.
    """
    causal = model.left_to_right
    assert causal is not None, "a hybrid model can be asked as a causal one"
    hidden = token_pseudo_log_likelihoods(model, sentences, tokens_per_batch, on_tokens, temperatures)
    following = token_left_to_right_likelihoods(causal, sentences, tokens_per_batch, lambda tokens: None, temperatures)
    return [one + other for one, other in zip(hidden, following, strict=True)]
