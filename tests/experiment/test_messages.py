"""Mistakes in the configuration: each is told in one line with file, key and what is allowed."""

from pathlib import Path

import pytest
from shipped import DEMO, edit, load_everything

from hatchery.errors import ConfigError

MINI = "experiments/natural_bias_mini.yaml"

Mistake = tuple[str, str, str, str]
"""The file, what stands there, what somebody writes instead, and what is told."""

IN_ONE_FILE: dict[str, Mistake] = {
    "unknown key": (DEMO, "batch_size: 32", "batchsize: 32\n  batch_size: 32", "pretraining.batchsize: unknown key"),
    "nearest key": (DEMO, "sequence_length", "sequence_lenght", "did you mean 'sequence_length'?"),
    "wrong type": (DEMO, "steps: 1700", "steps: many", "pretraining.steps: got 'many', expected a whole number"),
    "a float where a whole number belongs": (DEMO, "steps: 1700", "steps: 7.5", "got 7.5, expected a whole number"),
    "true where a whole number belongs": (DEMO, "steps: 1700", "steps: true", "got True, expected a whole number"),
    "nothing where keys belong": (DEMO, "{mask_probability: 0.4}", "3", "objective: got 3, expected keys with values"),
    "true where null or a whole number belongs": (
        DEMO,
        "warmup_fraction: 0.05",
        "warmup_steps_limit: true",
        "pretraining.schedule.warmup_steps_limit: got True, expected a whole number or null",
    ),
    "out of range": (DEMO, "batch_size: 32", "batch_size: 0", "pretraining.batch_size: got 0, expected at least 1"),
    "missing key": (DEMO, "  steps: 1700\n", "", "pretraining.steps: the key is missing"),
    "unknown choice": (
        "tokenizers/demo.yaml",
        "kind: wordpiece",
        "kind: wordpice",
        "kind: got 'wordpice'; did you mean 'wordpiece'? Allowed are: wordpiece, byte_bpe, bpe, unigram",
    ),
    "not the one choice": (
        "vocabularies/demo.yaml",
        "embedded: childes",
        "embedded: chides",
        "vocabularies/demo.yaml: embedded: got 'chides'; did you mean 'childes'? Allowed are: childes",
    ),
    "duplicate key": (DEMO, "corpus: demo", "corpus: demo\ncorpus: demo", "the key 'corpus' occurs twice"),
    "not YAML": (DEMO, "runs:", "runs: [", "demo.yaml:"),
    "a tab": (DEMO, "runs:\n ", "runs:\n\t", "found character '\\t' that cannot start any token"),
    "override of the wrong type": (DEMO, "{steps: 0}", "{steps: none}", "runs.random.pretraining.steps: got 'none'"),
    "heads do not divide": ("models/ltg_mini.yaml", "heads: 4", "heads: 3", "expected a divisor of hidden_size (128)"),
    "unknown family": (
        "models/ltg_mini.yaml",
        "hidden_size",
        "family: robrta\nhidden_size",
        "family: got 'robrta'; did you mean 'roberta'? Allowed are: encoder_decoder, ltg, roberta",
    ),
    "a key of the other family": (
        "models/ltg_mini.yaml",
        "hidden_size",
        "embedding_size: 32\nhidden_size",
        "embedding_size: unknown key",
    ),
    "affine norms of the final model": (
        "models/ltg_mini.yaml",
        "hidden_size",
        "block_norm_affine: true\nhidden_size",
        "block_norm_affine: got True, expected null with normalisation normformer",
    ),
    "pairs of packed text": (
        DEMO,
        "{mask_probability: 0.4}",
        "{mask_probability: 0.4, segments: packed, sentence_pairs: order}",
        "objective.sentence_pairs: got 'order' with segments 'packed', expected none",
    ),
    "predicted padding of packed text": (
        DEMO,
        "{mask_probability: 0.4}",
        "{mask_probability: 0.4, segments: packed, padding_in_loss: true}",
        "objective.padding_in_loss: got true, expected false",
    ),
    "masked tokens shown otherwise": (
        DEMO,
        "{mask_probability: 0.4}",
        "{mask_probability: 0.4, random_probability: 0.75, keep_probability: 0.5}",
        "objective.random_probability and keep_probability: got 1.25, expected together at most 1",
    ),
    "a mask for a model that has none": (
        DEMO,
        "{mask_probability: 0.4}",
        "{task: causal, mask_probability: 0.4}",
        "objective.mask_probability: unknown key here: it belongs to task masked; allowed are: reset_attention",
    ),
    "a start without a place": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, pretraining: {initialise_from: {take: weights}}}",
        "runs.elc_bert.pretraining.initialise_from: got neither, expected either `run` or `path`",
    ),
    "GPUs of a type where there are none": (
        "config.yaml",
        "gpu_type: null",
        "gpu_type: a100",
        "cluster.gpu_type: got 'a100', expected null with gpus_per_node 0",
    ),
    "unknown start of the bias": (
        DEMO,
        "  schedule: {warm",
        "  output_bias: {kind: unigramm}\n  schedule: {warm",
        "output_bias.kind: got 'unigramm'; did you mean 'unigram'? Allowed are: zero, unigram, none",
    ),
    "two sources of one name": (
        "corpora/demo.yaml",
        "name: cbt,",
        "name: bnc,",
        "the name 'bnc' is given 2 times",
    ),
    "reader option": ("corpora/demo.yaml", "{corpus: cbt}", "{corpus: cbd}", "sources.3.options.corpus: got 'cbd'"),
    "a seed twice": (
        DEMO,
        "seeds: [12, 642, 369]",
        "seeds: [12, 12]",
        "finetuning.protocol.seeds: got 12 more than once, expected each entry once",
    ),
    "metric that nobody knows": (
        "tasks/demo_acceptability.yaml",
        "accuracy",
        "acuracy",
        "got 'acuracy'; did you mean 'accuracy'? Allowed are: accuracy, answer_f1, clean_micro_f1",
    ),
    "a warm-up longer than the training": (
        DEMO,
        "warmup_fraction: 0.05",
        "warmup_steps: 1701",
        "demo.yaml: pretraining.schedule.warmup_steps: got 1701, expected at most 1700, the steps of the shortest",
    ),
    "two keys of the warm-up": (
        DEMO,
        "warmup_fraction: 0.05",
        "warmup_fraction: 0.05, warmup_steps: 100",
        "pretraining.schedule.warmup_fraction: got 0.05, expected no such key with warmup_steps",
    ),
    "two keys of the warm-up in one run": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, pretraining: {schedule: {warmup_fraction: 0.05, warmup_steps: 100}}}",
        "runs.elc_bert.pretraining.schedule.warmup_fraction: got 0.05, expected no such key with warmup_steps",
    ),
    "an evaluation after the end": (
        DEMO,
        "evaluation_interval_steps: 250",
        "evaluation_interval_steps: 1701",
        "demo.yaml: pretraining.evaluation_interval_steps: got 1701, expected at most 1700, the steps of the longest",
    ),
    "an evaluation after the end of one run": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, pretraining: {evaluation_interval_steps: 1701}}",
        "runs.elc_bert.pretraining.evaluation_interval_steps: got 1701, expected at most 1700, the steps of the",
    ),
    "tokenizer options that exclude each other": (
        "tokenizers/demo.yaml",
        "kind: wordpiece",
        "kind: unigram",
        "pre_tokenizer: unigram needs metaspace, got 'byte_level'",
    ),
    "unknown encoding": (
        "experiments/my_text.yaml",
        "options: {}",
        "options: {encoding: utf8ish}",
        "corpus: sources.0.options.encoding: there is no encoding of text called 'utf8ish'",
    ),
    "sentences of a language without a model": (
        "experiments/my_text.yaml",
        "options: {}",
        'options: {sentences: "punkt:german"}',
        "corpus.sources.0.options.sentences: got 'punkt:german', but only the model of English comes with Hatchery; "
        "set `sentence_model: nltk_punkt`",
    ),
    "sentences that are not known": (
        "experiments/my_text.yaml",
        "options: {}",
        "options: {sentences: lines}",
        "corpus.sources.0.options.sentences: got 'lines', expected line, none, or punkt: and a language, such as "
        "punkt:english",
    ),
    "settings of a task that exclude each other": (
        "tasks/demo_acceptability.yaml",
        "labels:",
        "head: {kind: regression}\nlabels:",
        "labels: got (0, 1), expected none with the head regression",
    ),
    "a path of nothing": (
        "config.yaml",
        "  my_text:\n    path: null",
        '  my_text:\n    path: ""',
        "data.my_text.path: got '', expected text that is not empty",
    ),
    "a name of a run": (
        DEMO,
        "  random: ",
        "  ran-dom: ",
        "runs: got the name 'ran-dom', expected letters a-z and A-Z, digits and _, beginning with a letter or digit",
    ),
    "a name longer than files may have": (
        DEMO,
        "  random: ",
        f"  {'long' * 75}: ",
        "digits and _, beginning with a letter or digit, 150 at most",
    ),
    "a commit that is none": (
        "config.yaml",
        "revision: bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
        "revision: main",
        "data.glue_cola.hub.revision: got 'main', expected a commit - 40 digits 0-9 and a-f",
    ),
    "a model of the hub without its commit": (
        "config.yaml",
        "      revision: cd5ef92a9fb2f889e972770a36d4ed042daf221e\n",
        "",
        "data.bert_base_cased.hub_model: got none of these, expected exactly one of: `revision: <40 digits 0-9 and a-f>"
        "` (A commit from the history of its files on the hub)",
    ),
    "a model of the hub at a branch": (
        "config.yaml",
        "revision: cd5ef92a9fb2f889e972770a36d4ed042daf221e",
        "revision: main",
        "data.bert_base_cased.hub_model.revision: got 'main', expected a commit from the history of its files",
    ),
    "a number without end": (
        DEMO,
        "steps: 1700",
        "steps: 1700\n  optimizer: {learning_rate: 1e999}",
        "the number 1e999 is too large, expected at most 1.8e308",
    ),
    "nesting without end": (
        DEMO,
        "runs:",
        "description: " + "[" * 100_000 + "\nruns:",
        "nested more than 50 levels deep",
    ),
    "aliases of aliases": (
        DEMO,
        "runs:",
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
        + "runs:",
        "aliases stand for more than 100,000 values; write less under their anchors",
    ),
    "no choice at all": (
        "suites/blimp.yaml",
        "data: blimp\n",
        "",
        "blimp.yaml: got none of these, expected exactly one of: `data: my_pairs` (A raw input of config.yaml); or",
    ),
}

ACROSS_FILES: dict[str, Mistake] = {
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

MISTAKES = {**IN_ONE_FILE, **ACROSS_FILES}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_that_names_file_key_and_what_is_allowed(
    mistake: str, configuration: Path
) -> None:
    """Nothing is told twice, or in the words of a program."""
    name, old, new, expected = MISTAKES[mistake]
    edit(configuration, name, old, new)

    with pytest.raises(ConfigError) as caught:
        load_everything(configuration)

    lines = str(caught.value).splitlines()
    matching = [line for line in lines if expected.replace("{configuration}", str(configuration)) in line]
    assert matching, f"expected {expected!r} in {lines}"
    assert all(line.startswith(str(configuration)) for line in lines), lines
    assert len(set(lines)) == len(lines), f"told twice: {lines}"
    said = str(caught.value).lower()
    assert not any(word in said for word in ("[a-z", "regex", "does not match", "non-unique", ": :", "\\s")), lines
