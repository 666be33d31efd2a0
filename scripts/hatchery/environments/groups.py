"""Which conda environment serves which commands: the one place where this is written down.

A new command of the workflow is entered here; `make envs` then writes its environment, and the tests compare the
entry with the `conda:` line of the rule that calls the command.
"""

# Environment -> commands in scripts/ that its rules call.
COMMANDS_BY_ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "sources": ("generate_embedded_sources", "register_source"),
    "corpora": ("build_vocabulary", "select_text", "convert_corpus", "sample_corpus", "group_sequences"),
    "tokenization": ("train_tokenizer", "encode_corpus", "select_tokenizer"),
    "pretraining": ("write_cost", "pretrain"),
    "evaluation": (
        "score_minimal_pairs",
        "measure_perplexity",
        "finetune",
        "finetune_tasks",
        "claim_gpus",
        "export_model",
        "fill_sentences",
        "list_exported_models",
    ),
    "analysis": (
        "describe_corpus",
        "summarise",
        "draw_figure",
        "tabulate_layer_contributions",
        "write_tables",
        "write_page",
        "write_provenance",
        "write_run_card",
    ),
}

# Commands that people or the Makefile start, never a rule; they run in `.venv` or before it exists.
DEVELOPMENT_COMMANDS: tuple[str, ...] = (
    "check_cluster",
    "clean_experiment",
    "convert_conll2012",
    "estimate_cost",
    "explain",
    "find_log",
    "import_checkpoint",
    "install_environment",
    "lock_environments",
    "picture_page",
    "record_stage_code",
    "report_node",
    "trace",
    "train_sentence_splitter",
)
