"""In which module the function of every stage is, which has the stage's name: what `scripts/run.py` may call.

Apart from the records, which only planning reads: a job that draws a figure starts without them.
"""

FUNCTIONS = {
    "generate_embedded_sources": "demo.generate",
    "register_source": "hatchery.evaluation.register_source",
    "build_vocabulary": "hatchery.vocabulary.build",
    "select_text": "hatchery.vocabulary.select",
    "convert_corpus": "hatchery.corpora.convert",
    "sample_corpus": "hatchery.corpora.sampling",
    "group_sequences": "hatchery.corpora.sequences",
    "describe_corpus": "hatchery.views.cards.stage",
    "train_tokenizer": "hatchery.tokenization.trainer",
    "encode_corpus": "hatchery.tokenization.encoder",
    "select_tokenizer": "hatchery.views.tokenizer_sweep.stage",
    "write_cost": "hatchery.workflow.cost_table",
    "pretrain": "hatchery.training.pretrain",
    "import_model": "hatchery.evaluation.baselines.stage",
    "score_minimal_pairs": "hatchery.evaluation.minimal_pairs.stage",
    "measure_perplexity": "hatchery.evaluation.perplexity.stage",
    "translate_tests": "hatchery.evaluation.translation.stage",
    "finetune": "hatchery.evaluation.finetuning.stage",
    "finetune_tasks": "hatchery.evaluation.finetuning.stage",
    "fill_sentences": "hatchery.evaluation.filled_sentences.stage",
    "collect_measurements": "hatchery.analysis.collect_measurements",
    "join_experiments": "hatchery.analysis.join_experiments",
    "analyse": "hatchery.analysis.analyses.stage",
    "summarise": "hatchery.views.write_summary",
    "draw_figure": "hatchery.views.figures.stage",
    "write_tables": "hatchery.views.paper_tables.stage",
    "write_page": "hatchery.views.page",
    "write_provenance": "hatchery.views.provenance_page",
    "export_model": "hatchery.export.stage",
    "list_exported_models": "hatchery.export.listing",
    "convert_conll2012": "hatchery.evaluation.probing.conll2012_records",
}
