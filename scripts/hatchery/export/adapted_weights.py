"""Weights of an exported model that `transformers` cannot load or resize by itself: layer norms, which must stay in
fp32; tables (buffers), which weight files do not contain; and the rows of an output layer.
"""

import torch
from torch import nn

from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.norm_and_dropout import LayerNorm


def norm_names(model: nn.Module) -> list[str]:
    """Return the last parts of the names of the layer norms, sorted and without duplicates.

    Parameters of these modules must stay in fp32: layer norms compute in fp32, and on the CPU, parameters must have the
    precision of the computation.
    """
    return sorted({name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, LayerNorm)})


@torch.no_grad()
def restore_tables(module: nn.Module, encoder: LayeredEncoder, fresh: LayeredEncoder) -> None:
    """Restore the tables (buffers) of `module`, a part of `encoder`. Tables are not stored, so they are undefined after
    loading.

    The tables are copied from `fresh`, a newly built encoder.
    """
    for name, child in encoder.named_modules():
        if child is module:
            for key, table in fresh.get_submodule(name).named_buffers(recurse=False):
                module.get_buffer(key).copy_(table)


@torch.no_grad()
def resize_output_layer(head: nn.Module, old_size: int, new_size: int) -> None:
    """Resize each parameter of `head` that has one row per subword to `new_size` rows.

    Each new row of a matrix is the mean of the old rows; each new bias is the lowest old bias.
    """
    for module in head.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if not name.startswith("vocabulary") or parameter.shape[0] != old_size:
                continue
            added = parameter.mean(dim=0, keepdim=True) if parameter.ndim > 1 else parameter.min().unsqueeze(0)
            rows = torch.cat([parameter, added.expand(max(new_size - old_size, 0), *parameter.shape[1:])])
            resized = nn.Parameter(rows[:new_size].clone(), requires_grad=parameter.requires_grad)
            setattr(module, name, resized)
