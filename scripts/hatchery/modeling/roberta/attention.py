"""Plain multi-head self-attention as in RoBERTa: separate query, key and value projections, and no positions inside.

Source: the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Families of models"). The three
projections are parameters of their own because Xavier's initialisation depends on a matrix's shape.
"""

import math

from torch import Tensor, nn

from hatchery.modeling.attention_core import attend, join_heads, split_heads
from hatchery.modeling.attention_inputs import AttentionInputs
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.roberta.configuration import RobertaConfig


class RobertaSelfAttention(nn.Module):
    """The attention block: attention, output projection, dropout. Neither norm nor residual inside."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.n_heads = config.num_attention_heads
        self.scale = 1 / math.sqrt(config.head_size)
        self.query_projection = nn.Linear(size, size)
        self.key_projection = nn.Linear(size, size)
        self.value_projection = nn.Linear(size, size)
        self.output_projection = nn.Linear(size, size)
        self.probability_dropout = Dropout(config.attention_probs_dropout_prob)
        self.output_dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Attend from every token of `hidden` [B, T, D] to those that the mask allows; returns [B, T, D].

        With a packing both are [N, D]; with `inputs.query_rows` the result is [B, D].
        """
        projections, mask = (self.query_projection, self.key_projection, self.value_projection), inputs.mask
        if inputs.query_rows is None:
            asking = hidden
        else:
            asking = hidden.flatten(0, 1).index_select(0, inputs.query_rows)[:, None]
            if mask is not None and mask.dim() == 3:
                mask = mask.flatten(0, 1).index_select(0, inputs.query_rows)[:, None]
        states = (asking, hidden, hidden)
        query, key, value = (
            split_heads(project(state), self.n_heads, inputs.packing)
            for project, state in zip(projections, states, strict=True)
        )
        if inputs.cache is not None:
            key, value = inputs.cache.extended(key, value)
        context = attend(query, key, value, self.scale, mask, self.probability_dropout)
        output = self.output_dropout(self.output_projection(join_heads(context, inputs.packing)))
        return output if inputs.query_rows is None else output.squeeze(1)
