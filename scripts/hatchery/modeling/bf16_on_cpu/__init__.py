"""What a training step in bf16 does on the processor beside the matrix products, in fewer passes over memory.

There the products run several times as fast as in fp32, so what stands between them decides. The functions here do for
one block of rows or sequences, while it lies in the cache, all that would otherwise be passes over whole tensors; what
they keep for the backward pass is bf16. The numbers are those of the modules under autocast but for roundings to bf16:
norms, softmax and losses compute in fp32. benchmarks/training_step.py measures it.
"""
