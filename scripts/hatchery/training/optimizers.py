"""PyTorch's optimisers without what they do for `torch.compile`, which they import at their first call: a second.

We compile models, never their updates. What is left out keeps the compiler away; what is computed stays the same.
"""

import inspect

import torch


class PlainOptimizer(torch.optim.Optimizer):
    """The base of optimisers, with PyTorch's methods as they are under their decorators."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class AdamW(PlainOptimizer, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
