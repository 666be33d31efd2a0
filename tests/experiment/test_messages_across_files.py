"""Files that do not fit each other, or name what is not there: each is told in one line where it is named."""

from pathlib import Path

import pytest
from mistakes import DEMO, MINI, Mistake, assert_told

MISTAKES: dict[str, Mistake] = {
    "unknown corpus": (DEMO, "corpus: demo", "corpus: dem", "corpus: got 'dem', no such corpus"),
    "unknown tokenizer": (DEMO, "tokenizer: demo", "tokenizer: damo", "no such tokenizer; did you mean 'demo'?"),
    "unknown model": (DEMO, "model: ltg_demo", "model: ltg_dema", "runs.random.model: got 'ltg_dema', no such model"),
    "unknown suite": (DEMO, "[demo_pairs]", "[demo_pair]", "minimal_pairs: got 'demo_pair', no such suite"),
    "unknown task": (DEMO, "demo_entailment: {}", "demo_entail: {}", "got 'demo_entail', no such task"),
    "unknown data": ("suites/blimp.yaml", "data: blimp", "data: blump", "data: got 'blump', not under `data`"),
    "unknown change of a model": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {layer_weightin: zero}}",
        "runs.elc_bert.model_changes: layer_weightin: unknown key",
    ),
    "a change to another family": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {family: roberta}}",
        "runs.elc_bert.model_changes: family: a run cannot change it",
    ),
    "a change that does not fit the model": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {num_attention_heads: 5}}",
        "num_attention_heads: got 5, expected a divisor of hidden_size (96)",
    ),
    "a causal model that is fine-tuned": (
        DEMO,
        "{mask_probability: 0.4}",
        "{task: causal}",
        "objective.task: got 'causal', expected masked where the head of a task (demo_acceptability) reads the first "
        "token, which has seen nothing in a causal model: say finetuning.head_options: {pooling: last_token}",
    ),
    "scale of a tied matrix": (
        DEMO,
        "  schedule: {warm",
        "  output_bias: {kind: unigram, weight_scale: frobenius}\n  schedule: {warm",
        "output_bias.weight_scale: got 'frobenius', expected own",
    ),
    "metric that the task lacks": (
        DEMO,
        "demo_acceptability: {}",
        "demo_acceptability: {selection_metric: f1}",
        "selection_metric: got 'f1', the metrics of this task are: accuracy, mcc",
    ),
    "unknown protocol": (
        "experiments/strict.yaml",
        "{base: elc_bert}",
        "{base: elc_bret}",
        "finetuning.protocol.base: got 'elc_bret', no such protocol; did you mean 'elc_bert'? There are: babylm",
    ),
    "published row of no run": (
        "experiments/strict.yaml",
        "    elc_zero: elc_bert_base_zero",
        "    elc_zeros: elc_bert_base_zero",
        "published.rows: got 'elc_zeros', no such run or baseline; did you mean 'elc_zero'? There are: ltg_bert, "
        "elc_biased, elc_zero, elc_normalized, elc_weighted_output, babylm_opt_125m",
    ),
    "unknown paper": (
        "experiments/strict.yaml",
        "paper: elc_bert",
        "paper: elc_bret",
        "published.paper: got 'elc_bret'; did you mean 'elc_bert'? Allowed are: babylm_pipeline, elc_bert, ltg_bert, "
        "reduced_vocabulary",
    ),
    "unknown track": (
        "experiments/strict.yaml",
        "track: strict",
        "track: strickt",
        "published.track: got 'strickt'; did you mean 'strict'? Allowed are: ",
    ),
    "track of a paper without tracks": (
        "experiments/bnc.yaml",
        "paper: ltg_bert",
        "paper: ltg_bert\n  track: strict",
        "published.track: got 'strict', allowed are: none",
    ),
    "unknown published row": (
        "experiments/strict.yaml",
        "elc_zero: elc_bert_base_zero",
        "elc_zero: elc_bert_base_zeros",
        "published.rows.elc_zero: got 'elc_bert_base_zeros'; did you mean 'elc_bert_base_zero'? Allowed are: ",
    ),
    "perplexity of a split without text": (
        "experiments/my_text.yaml",
        "perplexity: {splits: [dev], segments: packed}",
        "perplexity: {splits: [dev, test], segments: packed}",
        "perplexity.splits: got 'test', a split that the corpus 'my_text' does not have; see split.test_fraction in "
        "{configuration}/experiments/my_text.yaml: corpus",
    ),
    "perplexity of a split that a release has not": (
        "experiments/demo_suites.yaml",
        "perplexity: {splits: [dev]",
        "perplexity: {splits: [dev, test]",
        "perplexity.splits: got 'test', a split that the corpus 'demo' does not have",
    ),
    "perplexity of the development text of a corpus of test text": (
        "experiments/strict.yaml",
        "corpus: babylm_100M",
        "corpus: babylm_test",
        "perplexity.splits: got 'dev', a split that the corpus 'babylm_test' does not have",
    ),
    "translation by a model that is not trained for it": (
        MINI,
        "zero: {model: nmt_demo, seeds: [0, 1]}",
        "zero: {model: ltg_demo, pretraining: {objective: {task: causal}}}",
        "runs.zero.pretraining.objective.task: got 'causal', expected translation in an experiment with "
        "translation.tests; put other models in an experiment of their own",
    ),
    "an encoder and a decoder that does not translate": (
        DEMO,
        "{model: elc_demo}",
        "{model: nmt_demo}",
        "runs.elc_bert.pretraining.objective.task: got 'masked', expected translation for the model 'nmt_demo' of the "
        "family encoder_decoder",
    ),
    "an encoder alone that translates": (
        MINI,
        "zero: {model: nmt_demo,",
        "zero: {model: ltg_demo,",
        "runs.zero.model: got 'ltg_demo' of the family ltg, expected a model of the family encoder_decoder",
    ),
    "minimal pairs of translating models": (
        MINI,
        "translation:\n",
        "minimal_pairs: [demo_pairs]\ntranslation:\n",
        "minimal_pairs: got demo_pairs, expected none in an experiment with objective.task translation",
    ),
    "fine-tuning of translating models": (
        MINI,
        "translation:\n",
        "finetuning: {tasks: {demo_entailment: {}}}\ntranslation:\n",
        "finetuning.tasks: got demo_entailment, expected none in an experiment with objective.task translation",
    ),
    "translation of text without pairs": (
        MINI,
        "test: {corpus: demo_parallel}",
        "test: {corpus: demo}",
        "translation.tests.test.corpus: got 'demo', which holds no pairs of sentences; expected a corpus whose sources "
        "have reader parallel_text",
    ),
    "learning to translate from text without pairs": (
        MINI,
        "\ncorpus: demo_parallel",
        "\ncorpus: demo",
        ": corpus: got 'demo', which holds no pairs of sentences",
    ),
    "leaving out a run that is not there": (
        MINI,
        "leave_out: [away_begins]",
        "leave_out: [away_begin]",
        "translation.leave_out: got 'away_begin', no such run; did you mean 'away_begins'? There are: no_bias, zero, "
        "unigram, unigram_as_published, unigram_larger, away_begins, away",
    ),
    "leaving out everything": (
        MINI,
        "leave_out: [away_begins]",
        'leave_out: ["*"]',
        "translation.leave_out: leaves no run that translates, expected one at least",
    ),
    "translation of a split that is not there": (
        MINI,
        "{corpus: demo_parallel_other}",
        "{corpus: demo_parallel_other, split: dev}",
        "translation.tests.other_domain.split: got 'dev', a split that the corpus 'demo_parallel_other' does not have; "
        "allowed are: test",
    ),
    "too few absolute positions": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {position_embedding: absolute, max_position_embeddings: 16}}",
        "runs.elc_bert: pretraining.sequence_length allows sequences of 32 tokens, but the model 'elc_demo' has "
        "absolute positions for 16: raise its max_position_embeddings, or shorten the sequences",
    ),
    "inputs longer than the positions": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {position_embedding: absolute, max_position_embeddings: 16}}",
        "max_length of finetuning.tasks.demo_entailment allows sequences of 32 tokens",
    ),
    "a corpus that samples itself": (
        "corpora/demo_books_sample.yaml",
        "corpus: demo_books",
        "corpus: demo_books_sample",
        "the corpus is made from itself: demo_books_sample -> demo_books_sample",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_that_names_file_key_and_what_is_allowed(
    mistake: str, configuration: Path
) -> None:
    assert_told(MISTAKES[mistake], configuration)
