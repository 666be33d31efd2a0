"""Mistakes in the configuration: each message is one line with file, key and the allowed values."""

from pathlib import Path

import pytest
from shipped import DEMO, edit

from hatchery.experiment.kinds import FOLDERS
from hatchery.experiment.project import Project
from hatchery.settings.problems import Problems
from hatchery.workflow.plan_checks import collect_problems

MINI = "experiments/natural_bias_mini.yaml"

Mistake = tuple[str, str, str]
"""Text of the file, its replacement, and the expected message."""

MISTAKES: dict[str, dict[str, Mistake]] = {
    DEMO: {
        "nearest key": ("sequence_length", "sequence_lenght", "did you mean 'sequence_length'?"),
        "true where null or a whole number belongs": (
            "warmup_fraction: 0.05",
            "warmup_steps_limit: true",
            "pretraining.schedule.warmup_steps_limit: got true, expected a whole number or null",
        ),
        "duplicate key": ("corpus: demo", "corpus: demo\ncorpus: demo", "the key 'corpus' occurs twice"),
        "a leading zero": (
            "steps: 700",
            "steps: 010",
            "a number that begins with 0, which YAML 1.1 reads as octal: 010;",
        ),
        "a tab": ("runs:\n ", "runs:\n\t", "found character '\\t' that cannot start any token"),
        "predicted padding of packed text": (
            "{mask_probability: 0.4, kind: subword}",
            "{mask_probability: 0.4, segments: packed, padding_in_loss: true}",
            "objective.padding_in_loss: got true, expected false",
        ),
        "masked tokens shown otherwise": (
            "{mask_probability: 0.4, kind: subword}",
            "{mask_probability: 0.4, random_probability: 0.75, keep_probability: 0.5}",
            "objective.random_probability + keep_probability: got 1.25, expected a sum of at most 1",
        ),
        "a mask for a model that has none": (
            "{mask_probability: 0.4, kind: subword}",
            "{task: causal, mask_probability: 0.4}",
            "objective.mask_probability: unknown key here: it belongs to task masked; allowed are: reset_attention",
        ),
        "a key one level too high": (
            "optimizer: {learning_rate: 0.01}",
            "learning_rate: 0.01",
            "pretraining.learning_rate: unknown key here: it belongs under `optimizer`; allowed are: batch_size",
        ),
        "a key of the main configuration": (
            "steps: 700",
            "steps: 700\n  jobs_per_gpu: 2",
            "pretraining.jobs_per_gpu: unknown key here: it belongs under `cluster` of config/config.yaml; allowed",
        ),
        "a small unit": (
            "  steps: 700\n",
            "  budget: {words_seen: 60k}\n",
            "budget.words_seen: got '60k', expected a whole number, or a number such as 100K or 100M; did you mean 60K",
        ),
        "one mark twice": (
            "  steps: 700\n",
            "  budget: {words_seen: 60K}\n  checkpoints_at: [20K, 20000]\n",
            "pretraining.checkpoints_at: got 20000 more than once, expected each entry once",
        ),
        "a budget below the first mark": (
            "  steps: 700\n",
            "  budget: {words_seen: 999999}\n  checkpoints_at: babylm\n",
            "checkpoints_at: got 'babylm', expected numbers of words up to the budget of 999,999 words: the first",
        ),
        "a budget of less than a step": (
            "  steps: 700\n",
            "  budget: {words_seen: 31}\n",
            "pretraining.budget.words_seen: got 31, expected at least 32 words, one word for each sequence of a step",
        ),
        "a no-break space before a key": (
            "  batch_size: 32",
            "\u00a0 batch_size: 32",
            "demo.yaml:9: mapping values are not allowed here; line 8 has U+00A0 (no-break space) instead of",
        ),
        "a no-break space behind a colon": (
            "batch_size: 32",
            "objective:\n    kind:\u00a0subword",
            "the value 'kind:\\xa0subword' contains U+00A0 (no-break space) instead of a space; write a normal space",
        ),
        "a key of the whole inside": (
            "steps: 700",
            "steps: 700\n  corpus: demo",
            "pretraining.corpus: unknown key here: it belongs to the top level; allowed are: batch_size",
        ),
        "more steps than a plan holds": (
            "steps: 700",
            "steps: 2000000000",
            "pretraining.steps: got 2000000000, expected at most 100,000,000 steps",
        ),
        "a budget of more steps": (
            "steps: 700",
            "budget: {words_seen: 1000000000000}",
            "pretraining.budget: got 1582031250, expected at most 100,000,000 steps",
        ),
        "more digits than a number has": (
            "batch_size: 32",
            "batch_size: 99999999999999999999999",
            "demo.yaml:8: a number of 23 digits, expected at most 18",
        ),
        "a second document": (
            "runs:",
            "---\nruns:",
            "expected a single document in the stream, but found another document",
        ),
        "an encoder-decoder by the rules of 2026": (
            "minimal_pairs: [demo_pairs]",
            "minimal_pairs: [demo_pairs, demo_babylm_ewok]\nbaselines: [babylm_t5_base]",
            "minimal_pairs: 'demo_babylm_ewok' does not fit babylm_t5_base: scoring 'auto' by the rules of 2026 "
            "predicts the masked tokens of an encoder-decoder, which Hatchery does not support; use a suite of",
        ),
        "words that a masked model cannot be asked for": (
            "minimal_pairs: [demo_pairs]",
            "minimal_pairs: [demo_pairs]\nsurprisal: {mine: {embedded: minimal_pairs, scoring: mntp}}",
            "surprisal.mine does not fit random, ltg_bert, elc_bert: scoring 'mntp' needs a model that was "
            "trained with task hybrid, but this model is masked; use pll or masked or pll_within_word_l2r",
        ),
        "a warm-up longer than the training": (
            "warmup_fraction: 0.05",
            "warmup_steps: 701",
            "demo.yaml: pretraining.schedule.warmup_steps: got 701, expected at most 700, the steps of the shortest",
        ),
        "two keys of the warm-up": (
            "warmup_fraction: 0.05",
            "warmup_fraction: 0.05, warmup_steps: 100",
            "pretraining.schedule.warmup_fraction: got 0.05, which cannot be combined with `warmup_steps`",
        ),
        "an evaluation after the end": (
            "evaluation_interval_steps: 175",
            "evaluation_interval_steps: 701",
            "demo.yaml: pretraining.evaluation_interval_steps: got 701, expected at most 700, the steps of the longest",
        ),
        "a number without end": (
            "steps: 700",
            "steps: 700\n  optimizer: {learning_rate: 1e999}",
            "the number 1e999 is too large, expected at most 1.8e308",
        ),
        "nesting without end": (
            "runs:",
            "description: " + "[" * 100_000 + "\nruns:",
            "nested more than 50 levels deep",
        ),
        "aliases of aliases": (
            "runs:",
            "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
            + "runs:",
            "aliases repeat more than 100,000 values; use fewer aliases, or anchors with fewer values",
        ),
        "a misspelt change of a model whose file names no family": (
            "elc_demo_small,",
            "elc_demo_small, model_changes: {feed_forward_activaton: gelu},",
            "runs.elc_bert.model_changes: feed_forward_activaton: unknown key; did you mean 'feed_forward_activation'? "
            "Allowed are: attention_probs_dropout_prob, block_norm_affine,",
        ),
        "a change to another family": (
            "elc_demo_small,",
            "elc_demo_small, model_changes: {family: roberta},",
            "runs.elc_bert.model_changes: family: a run cannot change it",
        ),
        "scale of a tied matrix": (
            "  schedule: {warm",
            "  output_bias: {kind: unigram, weight_scale: frobenius}\n  schedule: {warm",
            "output_bias.weight_scale: got 'frobenius', expected own",
        ),
        "metric that the task lacks": (
            "demo_acceptability: {epochs: 5}",
            "demo_acceptability: {selection_metric: f1}",
            "selection_metric: got 'f1', the metrics of this task are: accuracy, mcc",
        ),
        "an encoder and a decoder that does not translate": (
            "elc_demo_small,",
            "nmt_demo,",
            "runs.elc_bert.pretraining.objective.task: got 'masked', expected translation for the model 'nmt_demo' "
            "of the family encoder_decoder",
        ),
    },
    "tokenizers/demo.yaml": {
        "unknown choice": (
            "kind: wordpiece",
            "kind: wordpice",
            "kind: got 'wordpice'; did you mean 'wordpiece'? Allowed are: wordpiece, byte_bpe, bpe, unigram",
        ),
    },
    "models/ltg_mini.yaml": {
        "a size that the tokenizer decides": (
            "hidden_size",
            "vocab_size: 8192\nhidden_size",
            "vocab_size: unknown key here: it follows from the tokenizer (its vocabulary_size); allowed are: attention",
        ),
        "affine norms of the final model": (
            "hidden_size",
            "block_norm_affine: true\nhidden_size",
            "block_norm_affine: got true, expected null, because `normalisation: normformer`",
        ),
    },
    "config.yaml": {
        "a path of nothing": (
            "  my_text:\n    path: null",
            '  my_text:\n    path: ""',
            "data.my_text.path: got '', expected text that is not empty",
        ),
        "a model of the hub without its commit": (
            "      revision: cd5ef92a9fb2f889e972770a36d4ed042daf221e\n",
            "",
            "data.bert_base_cased.hub_model: got none of these, expected exactly one of: `revision: <40 digits 0-9 "
            "and a-f>` (Commit in the history of the model's files on the hub)",
        ),
    },
    "corpora/demo.yaml": {
        "two sources of one name": ("name: cbt,", "name: bnc,", "got 2 sources called 'bnc', expected different names"),
    },
    "experiments/my_text.yaml": {
        "sentences of a language without a model": (
            "options: {}",
            'options: {sentences: "punkt:german"}',
            "corpus.sources.0.options.sentences: got 'punkt:german', but only the model of English comes with "
            "Hatchery; set `sentence_model: nltk_punkt`",
        ),
        "sentences that are not known": (
            "options: {}",
            "options: {sentences: lines}",
            "corpus.sources.0.options.sentences: got 'lines', expected line, none, or punkt: and a language, such as "
            "punkt:english",
        ),
        "perplexity of a split without text": (
            "perplexity: {splits: [dev], segments: packed}",
            "perplexity: {splits: [dev, test], segments: packed}",
            "perplexity.splits: got 'test', a split that the corpus 'my_text' does not have; see split.test_fraction "
            "in {configuration}/experiments/my_text.yaml: corpus",
        ),
    },
    "experiments/strict.yaml": {
        "unknown protocol": (
            "{base: elc_bert}",
            "{base: elc_bret}",
            "finetuning.protocol.base: got 'elc_bret', no such protocol; did you mean 'elc_bert'? There are: babylm",
        ),
    },
    "experiments/bnc.yaml": {
        "track of a paper without tracks": (
            "paper: ltg_bert",
            "paper: ltg_bert\n  track: strict",
            "published.track: got 'strict', allowed are: none",
        ),
    },
    MINI: {
        "translation by a model that is not trained for it": (
            "zero: {model: nmt_demo, seeds: [0, 1]}",
            "zero: {model: ltg_demo, pretraining: {objective: {task: causal}}}",
            "runs.zero.pretraining.objective.task: got 'causal', expected translation in an experiment with "
            "translation.tests; put other models in an experiment of their own",
        ),
        "an encoder alone that translates": (
            "zero: {model: nmt_demo,",
            "zero: {model: ltg_demo,",
            "runs.zero.model: got 'ltg_demo' of the family ltg, expected a model of the family encoder_decoder",
        ),
        "minimal pairs of translating models": (
            "translation:\n",
            "minimal_pairs: [demo_pairs]\ntranslation:\n",
            "minimal_pairs: got demo_pairs, expected none in an experiment with objective.task translation",
        ),
        "translation of text without pairs": (
            "test: {corpus: demo_parallel}",
            "test: {corpus: demo}",
            "translation.tests.test.corpus: got 'demo', which contains no sentence pairs; expected a corpus whose "
            "sources have reader parallel_text",
        ),
        "leaving out a run that is not there": (
            "leave_out: [away_begins]",
            "leave_out: [away_begin]",
            "translation.leave_out: got 'away_begin', no such run; did you mean 'away_begins'? There are: no_bias, "
            "zero, unigram, unigram_as_published, unigram_larger, away_begins, away",
        ),
        "leaving out everything": (
            "leave_out: [away_begins]",
            'leave_out: ["*"]',
            "translation.leave_out: leaves no run that translates, expected at least one",
        ),
        "translation of a split that is not there": (
            "{corpus: demo_parallel_other}",
            "{corpus: demo_parallel_other, split: dev}",
            "translation.tests.other_domain.split: got 'dev', a split that the corpus 'demo_parallel_other' does not "
            "have; allowed are: test",
        ),
    },
}


def check(folder: Path, file: str) -> list[str]:
    """Return the messages about the block of a file, and about all blocks that it names."""
    kind = {folder: kind for kind, folder in FOLDERS.items()}.get(Path(file).parent.name)
    asked, problems = (kind, Path(file).stem) if kind else ("experiment", "demo"), Problems()
    # Opening the project reads the main configuration.
    with problems.collecting():
        collect_problems(Project(folder), [asked], problems)
    return problems.lines


def test_a_list_with_a_wrong_entry_is_told_once(configuration: Path) -> None:
    edit(configuration, DEMO, "  steps: 700\n", "  budget: {words_seen: 60K}\n  checkpoints_at: [20k]\n")
    (line,) = check(configuration, DEMO)
    assert "pretraining.checkpoints_at.0: got '20k'" in line
    edit(configuration, DEMO, "checkpoints_at: [20k]", "checkpoints_at: [20K]")
    edit(configuration, DEMO, "learning_rates: [1.0e-3]", "learning_rates: [fast]")
    (line,) = check(configuration, DEMO)
    assert "learning_rates.0: got 'fast'" in line


@pytest.mark.parametrize(
    ("file", "mistake"), [(file, mistake) for file, found in MISTAKES.items() for mistake in found]
)
def test_a_mistake_is_told_in_one_line_that_names_file_key_and_what_is_allowed(
    file: str, mistake: str, configuration: Path
) -> None:
    """No message is repeated, and no message is the text of a Python exception."""
    old, new, expected = MISTAKES[file][mistake]
    edit(configuration, file, old, new)

    lines = check(configuration, file)

    matching = [line for line in lines if expected.replace("{configuration}", str(configuration)) in line]
    assert matching, f"expected {expected!r} in {lines}"
    assert all(line.startswith(str(configuration)) for line in lines), lines
    assert len(set(lines)) == len(lines), f"told twice: {lines}"
    text = "\n".join(lines).lower()
    assert not any(word in text for word in ("[a-z", "regex", "does not match", "non-unique", ": :", "\\s")), lines
