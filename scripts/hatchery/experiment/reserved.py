"""Names below `results/` that experiments share, so that no experiment may have one: the only list of them.

It needs the standard library alone, because `make clean-experiment` asks it where nothing is installed.
"""

RESERVED = (
    "corpora",
    "samples",
    "sequences",
    "vocabularies",
    "selections",
    "cards",
    "tokenizers",
    "tokenizer_sweeps",
    "tokens",
    "models",
    "minimal_pairs",
    "perplexity",
    "translation",
    "finetuning",
    "finetuning_jobs",
    "finetuning_runs",
    "settings",
    "checkpoints",
    "benchmarks",
)
