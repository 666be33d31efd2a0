"""Translation training with the common engine: the loss, kills, several processes, and the output bias's starts."""

import csv
import itertools
import math
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import hatchery
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ConfigError, TrainingError
from hatchery.evaluation import translation
from hatchery.evaluation.scores import csv_of
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.stages.measure_perplexity import measure_perplexity
from hatchery.evaluation.stages.translate_tests import translate_tests
from hatchery.evaluation.translation import Translator, best_beam, read_pairs
from hatchery.evaluation.translation_settings import (
    BeamChoice,
    HeldOutPairs,
    TranslationChoice,
    TranslationTests,
    translated_runs,
)
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import build_language_model, initialise_
from hatchery.modeling.store import save_model
from hatchery.runner import run_stage
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.training.development_translations import TranslatedSet
from hatchery.training.objectives.translation import TranslationObjective, TranslationSettings
from hatchery.training.run_parts import require_shares
from hatchery.training.settings import TrainingSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS, Topology
from hatchery.translation.settings import SearchSettings
from hatchery.typed import build

Make = Callable[..., Any]

STEPS = 24
MODEL = {
    "family": "encoder_decoder",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
OBJECTIVE = {"task": "translation", "longest_ratio": None, "development_translations": 6, "early_evaluations": 1}
CHANGES: dict[str, Any] = {
    "steps": STEPS,
    "long": None,
    "model": MODEL,
    "objective": OBJECTIVE,
    "batch_size": 200,
    "sequence_length": 30,
    "optimizer__name": "adamw",
    "optimizer__learning_rate": 0.01,
    "optimizer__weight_decay": 0.0,
    "evaluation_interval_steps": 8,
    "evaluation_sequences": 20,
    "early_stopping": {"patience_evaluations": 100},
}


@pytest.fixture
def translation_command(make_command: Make, pair_data: Any) -> Make:
    def make(runtime: Mapping[str, Any] | None = None, **changes: Any) -> Any:
        command = make_command(runtime, **{**CHANGES, **changes})
        command.tokens, command.tokenizer = pair_data.tokens, pair_data.tokenizer
        return command

    return make


@pytest.mark.slow
def test_a_killed_translation_run_goes_on_to_the_same_bits(translation_command: Make) -> None:
    undisturbed, command = translation_command(), translation_command({"checkpoint_interval_steps": 1})
    undisturbed.finish()
    for wanted, number in ((4, signal.SIGKILL), (11, signal.SIGTERM), (19, signal.SIGKILL)):
        process = command.start()
        command.wait_for_step(process, max(wanted, command.finished_steps() + 1))
        process.send_signal(number)
        process.communicate(timeout=60)
    command.finish()
    assert command.digests() == undisturbed.digests()
    measured = [row["step"] for row in command.rows() if "development_bleu" in row]
    assert measured == [0, 4, 8, 16, 24]
    stopping = read_manifest(command.output).measures["early_stopping"]
    best = max(
        (row for row in command.rows()[1:] if "development_bleu" in row), key=lambda row: row["development_bleu"]
    )
    assert stopping["best_development_bleu"] == best["development_bleu"]
    assert stopping["exported_step"] == best["step"]


@pytest.mark.slow
def test_a_run_that_goes_on_with_another_loss_has_not_diverged(translation_command: Make) -> None:
    shared: dict[str, Any] = {
        "optimizer__learning_rate": 0.03,
        "schedule": {"name": "constant", "final_fraction": 0.1, "warmup_steps": 2},
    }
    plain = OBJECTIVE | {"development_translations": 0}
    first = translation_command(objective=plain | {"unigram_penalty": 0.98}, keep_training_state=True, **shared)
    first.finish()
    going_on = {"steps": STEPS + 2, "objective": plain, "initialise_from": {"take": "training"}}
    second = translation_command(**going_on, **shared)
    second.initial = first.output
    second.finish()
    losses = [row["loss"] for row in second.rows() if "loss" in row]
    # The loss rises by more than the loss of a uniform guess, the limit for a diverged run.
    assert min(losses[STEPS:]) > min(losses[:STEPS]) + math.log(160)


@pytest.mark.slow
def test_pairs_in_memory_and_a_corpus_have_the_numbers_of_the_stage(
    translation_command: Make, pair_data: Any, tmp_path: Path
) -> None:
    command = translation_command(steps=2)
    command.finish()
    settings = {"stage": "translate_tests", "tests": {"test": {"corpus": "pairs", "split": "dev"}}}
    output = tmp_path / "translations/manifest.json"
    run_stage(translate_tests, settings, output, runtime={}, model=command.output, corpus={"test": pair_data.corpus})
    made = read_manifest(output)
    pairs = read_pairs(pair_data.corpus, HeldOutPairs(corpus="pairs", split="dev"), "forward")
    for data in (pair_data.corpus.parent, list(zip(*pairs, strict=True))):
        found = hatchery.evaluate(command.output, "translation", data, split="dev", device="cpu")
        assert csv_of(found.tables["scores.csv"]) == made.file("scores.csv").read_text(encoding="utf-8")
        assert found.texts["test.txt"] == made.file("test.txt").read_text(encoding="utf-8")
        assert found.facts == made.measures and set(found.summary["metric"]) == {"bleu", "chrf"}


def test_the_beam_with_the_highest_bleu_of_validation_text_is_chosen_and_of_equal_ones_the_smallest() -> None:
    assert best_beam({1: 20.0, 5: 21.5, 10: 21.0}) == 5
    assert best_beam({10: 21.5, 5: 21.5, 1: 20.0}) == 5


def test_the_chosen_beam_also_translates_the_test_sets_that_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(network: Any, tokenizer: Any, sources: list[str], search: SearchSettings, *_: Any) -> list[str]:
        return [f"{source} with a beam of {search.beam}" for source in sources]

    monkeypatch.setattr(translation, "translate", fake)
    # Only beam 4 gives the reference of the validation text; the model's own beam is 5.
    pairs = {"dev": (["A cat"], ["A cat with a beam of 4"]), "other": (["A dog"], ["One dog"])}
    tests = {name: HeldOutPairs(corpus="pairs") for name in pairs}
    settings = TranslationTests(tests=tests, beams=BeamChoice(test="dev", sizes=(1, 4, 6)))
    nothing: Any = None
    translator = Translator(nothing, nothing, SearchSettings(beam=5), 30, "forward", torch.device("cpu"))
    found = translation.score(translator, pairs, settings, EvaluationRuntime())
    assert found.facts["beam"] == 4 and found.texts["other.txt"] == "A dog with a beam of 4\n"
    assert found.texts["other.reference.txt"] == "One dog\n"
    assert found.frame("scores.csv").select("test", "corpus", "split", "pairs", "metric").rows() == [
        (name, "pairs", "test", 1, metric) for name in pairs for metric in ("bleu", "chrf")
    ]
    assert found.frame("beams.csv").select("beam", "metric", "chosen").rows() == [
        (beam, metric, int(beam == 4)) for beam in (1, 4, 6) for metric in ("bleu", "chrf")
    ]


def test_all_runs_translate_the_test_sets_but_those_that_are_left_out() -> None:
    choice = TranslationChoice(tests={"a": HeldOutPairs(corpus="pairs")}, leave_out=("base*", "other-s2"))
    runs = ["mine-s1", "base-s1", "other-s1", "other-s2"]
    assert translated_runs(choice, runs) == ["mine-s1", "other-s1"]
    assert translated_runs(TranslationChoice(), runs) == []


def test_where_a_beam_is_chosen_no_test_set_may_be_called_so() -> None:
    tests = {"beam": {"corpus": "pairs", "split": "dev"}}
    build(TranslationTests, {"tests": tests}, "translation")
    with pytest.raises(ConfigError, match=r"translation\.tests\.beam: got the name 'beam', expected another"):
        build(TranslationTests, {"tests": tests, "beams": {"test": "beam", "sizes": [1]}}, "translation")


@pytest.mark.slow
def test_all_test_sets_are_translated_with_the_beam_that_is_best_on_the_one_that_decides(
    translation_command: Make, pair_data: Any, tmp_path: Path
) -> None:
    command = translation_command(steps=4)
    command.finish()
    held_out = {"corpus": "pairs", "split": "dev"}

    def translated(name: str, **more: Any) -> Any:
        output = tmp_path / name / "manifest.json"
        settings = {"stage": "translate_tests", "tests": {"one": held_out, "two": held_out}, **more}
        corpora = dict.fromkeys(("one", "two"), pair_data.corpus)
        run_stage(translate_tests, settings, output, runtime={}, model=command.output, corpus=corpora)
        return read_manifest(output)

    chosen = translated("chosen", beams={"test": "two", "sizes": [1, 4]})
    with chosen.file("beams.csv").open(encoding="utf-8", newline="") as handle:
        rows = {(int(row["beam"]), row["metric"]): row for row in csv.DictReader(handle)}
    scored = {beam: float(rows[beam, "bleu"]["score"]) for beam in (1, 4)}
    assert chosen.measures["beam"] == best_beam(scored)
    assert [rows[beam, "bleu"]["chosen"] for beam in (1, 4)] == [str(int(beam == best_beam(scored))) for beam in (1, 4)]
    # Both sets contain the same text, so the chosen beam gives the same output.
    assert chosen.file("one.txt").read_bytes() == chosen.file("two.txt").read_bytes()
    with pytest.raises(ConfigError, match=r"beams\.test: got 'three', expected one of `tests`: one, two"):
        translated("refused", beams={"test": "three", "sizes": [1]})


@pytest.mark.slow
def test_two_processes_learn_and_translate_what_one_does(translation_command: Make) -> None:
    alone, together = translation_command(), translation_command()
    alone.finish()
    together.finish(2)
    assert len(alone.rows()) == len(together.rows()) == STEPS + 1
    for one, two in zip(alone.rows(), together.rows(), strict=True):
        assert one.keys() == two.keys()
        for name in one.keys() - {"gradient_norm"}:
            assert two[name] == pytest.approx(one[name], abs=1e-4), (one["step"], name)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_the_loss_is_that_of_smoothed_labels_less_the_divergence_from_unigram(
    pair_data: Any, smoothing: float, penalty: float
) -> None:
    objective = TranslationObjective(TranslationSettings(label_smoothing=smoothing, unigram_penalty=penalty))
    shards = objective.open(pair_data.tokens, "train")
    batch = objective.examples(shards, 30).batch(0, 0, [0, 1, 2])
    model = build_language_model(model_config({**MODEL, "vocab_size": shards.vocabulary_size}))
    initialise_(model, 1)
    (term,) = objective.terms(model(**batch), batch)
    with torch.no_grad():
        hidden, targets = model.labelled_hidden(batch)
        logits = model.logits_at(hidden).double()
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    counts = objective.target_counts(shards)
    omega = torch.from_numpy((counts + 1) / (counts + 1).sum())
    divergences = (omega * (omega.log() - logits.log_softmax(dim=-1))).sum(dim=-1)
    assert float(term.loss_sum) == pytest.approx(float(expected - penalty * divergences.sum()), rel=1e-5)
    likelihood = F.cross_entropy(logits, targets, reduction="sum")
    assert float(term.sums[1]) == pytest.approx(float(likelihood), rel=1e-5)
    # The gradient of B.3 at the logits: (1 - lambda) p - q + lambda omega.
    gradient_at = torch.autograd.grad(term.loss_sum, model.head.vocabulary_bias)[0]
    smoothed = (1 - smoothing) * F.one_hot(targets, logits.shape[1]) + smoothing / logits.shape[1]
    probabilities = logits.softmax(dim=-1)
    by_hand = ((1 - penalty) * probabilities - smoothed + penalty * omega).sum(dim=0)
    assert torch.allclose(gradient_at.double(), by_hand, atol=1e-4)


def test_target_counts_have_the_end_of_every_pair_and_nothing_of_the_source(pair_data: Any) -> None:
    shards = TokenShards.open(pair_data.tokens, "train")
    there, back = (
        TranslationObjective(TranslationSettings(direction=direction)).target_counts(shards)  # type: ignore[arg-type]
        for direction in ("forward", "backward")
    )
    start, pad, end = 0, 1, 2
    assert there[start] == there[pad] == 0
    assert there[end] == back[end] == shards.n_documents
    ends = np.bincount([end], minlength=shards.vocabulary_size) * 2 * shards.n_documents
    whole = sum(np.bincount(document.ids, minlength=shards.vocabulary_size) for document in shards)
    assert np.array_equal(there + back, whole + ends)


def test_a_tokenizer_that_marks_paragraphs_is_refused(token_data: Any) -> None:
    with pytest.raises(ConfigError, match=r"ends paragraphs with \[PAR\].*special_tokens: roberta"):
        TranslationObjective(TranslationSettings()).open(token_data.tokens, "train")


def test_the_perplexity_of_a_model_that_translates_is_that_of_every_target_token(
    pair_data: Any, tmp_path: Path
) -> None:
    model_file, output = tmp_path / "model/manifest.json", tmp_path / "perplexity/manifest.json"
    dev = TokenShards.open(pair_data.tokens, "dev")
    network = build_language_model(model_config({**MODEL, "vocab_size": dev.vocabulary_size}))
    initialise_(network, 1)
    with torch.no_grad():
        network.head.vocabulary_bias.copy_(torch.linspace(-2, 2, dev.vocabulary_size))
    model_file.parent.mkdir()
    inputs = {"tokens": pair_data.tokens, "tokenizer": pair_data.tokenizer}
    with stage_run(model_file, {"stage": "pretrain", "stage_version": 1, "objective": OBJECTIVE}, inputs) as run:
        for path in save_model(model_file.parent, network):
            run.add_output(path)
        tokenizer = model_file.with_name("tokenizer.json")
        tokenizer.write_bytes(read_manifest(pair_data.tokenizer).file("tokenizer.json").read_bytes())
        run.add_output(tokenizer)
    settings = {"splits": ["dev"], "sequence_length": 40, "frequency_bin_nats": 20.0}
    run_stage(
        measure_perplexity,
        {"stage": "measure_perplexity", **settings},
        output,
        runtime={"tokens_per_batch": 100},
        model=model_file,
        tokens=pair_data.tokens,
    )
    pairs = TranslationObjective(TranslationSettings(longest_ratio=None)).examples(dev, 40)
    losses: list[float] = []
    for index in range(len(pairs)):
        hidden, targets = network.eval().labelled_hidden(pairs.batch(0, 0, [index]))
        losses += F.cross_entropy(network.logits_at(hidden).double(), targets, reduction="none").tolist()
    (row,) = csv.DictReader((output.parent / "perplexity.csv").open())
    assert (int(row["sequences"]), int(row["labelled_tokens"])) == (len(pairs), len(losses))
    assert float(row["loss_nats"]) == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    bins = {row["metric"]: row for row in csv.DictReader((output.parent / "frequency.csv").open()) if row["lowest"]}
    # One bin of twenty nats contains all frequencies.
    assert float(bins["log_probability_nats"]["value"]) == pytest.approx(-float(row["loss_nats"]), rel=1e-6)
    assert not (output.parent / "words.csv").exists()


def test_more_processes_than_pairs_in_a_batch_are_refused_before_the_first_step(pair_data: Any) -> None:
    objective = TranslationObjective(TranslationSettings(longest_ratio=None))
    shards = objective.open(pair_data.tokens, "train")
    assert objective.smallest_batch(objective.examples(shards, 30), 200) > 4
    smallest = objective.smallest_batch(objective.examples(shards, 30), 20)
    require_shares(smallest, 20, 1)
    with pytest.raises(ConfigError, match=r"batch_size: got 20, .* sequences? for 64 processes; raise batch_size"):
        require_shares(smallest, 20, 64)


def test_the_manifest_says_how_many_pairs_are_trained_on_and_how_many_are_not(pair_data: Any) -> None:
    objective = TranslationObjective(TranslationSettings(longest_ratio=1.0))
    shards = objective.open(pair_data.tokens, "train")
    found = objective.measures(objective.examples(shards, 30))
    assert found["pairs"] > 0 and found["left_out"] > 0
    assert found["pairs"] + found["left_out"] == shards.n_documents


def test_an_epoch_of_pairs_has_as_many_steps_as_batches_of_its_tokens(pair_data: Any) -> None:
    objective = TranslationObjective(TranslationSettings())
    pairs = objective.examples(objective.open(pair_data.tokens, "train"), 30)
    run = {"batch_size": 100, "sequence_length": 30, "objective": objective.settings}
    plan = StepPlan(TrainingSettings(steps=10_000, **run))
    order = objective.order(plan, 1, lambda length: pairs)
    steps = next(step for step in itertools.count() if order(plan.at(step))[-1].epoch == 2)
    assert steps > 2 and objective.epochs(pairs, StepPlan(TrainingSettings(steps=steps, **run))) == 2


def test_development_references_are_whole_where_sources_are_cut(pair_data: Any) -> None:
    settings = TranslationSettings(development_translations=5)
    objective, references = TranslationObjective(settings), []
    tokenizer = partial(load_tokenizer, read_manifest(pair_data.tokenizer).file("tokenizer.json"))
    for longest in (3, 200):
        examples = objective.examples(objective.open(pair_data.tokens, "dev"), longest)
        found = objective.development(examples, 5, 5, SINGLE_PROCESS, tokenizer)
        references.append(found._references)  # type: ignore[attr-defined]
    assert references[0] == references[1]


def test_all_of_the_development_text_is_translated_unless_a_limit_is_set(pair_data: Any) -> None:
    tokenizer = partial(load_tokenizer, read_manifest(pair_data.tokenizer).file("tokenizer.json"))
    numbers = []
    for limit in (None, 5):
        objective = TranslationObjective(TranslationSettings(development_translations=limit))
        assert objective.criterion.column == "development_bleu"
        examples = objective.examples(objective.open(pair_data.tokens, "dev"), 30)
        found = objective.development(examples, 5, 5, SINGLE_PROCESS, tokenizer)
        assert isinstance(found, TranslatedSet)
        numbers.append((len(found._sources), len(found._references)))
    assert numbers == [(len(examples),) * 2, (5, 5)] and len(examples) > 5
    # The processes share five sentences; the first of six processes translates all five.
    for processes, shares in ((2, [2, 3]), (6, [5, 0, 0, 0, 0, 0])):
        parts = [
            objective.development(examples, 6, 6, Topology(rank, processes, rank, "a", 1), tokenizer)
            for rank in range(processes)
        ]
        sources = [part._sources for part in parts]  # type: ignore[attr-defined]
        assert [len(part) for part in sources] == shares
        assert [source for part in sources for source in part] == found._sources


def test_a_document_that_is_no_pair_is_told_with_its_shards(token_data: Any) -> None:
    objective = TranslationObjective(TranslationSettings())
    with pytest.raises(
        TrainingError, match=rf"^{token_data.tokens}: document 1 of the split has \d+ sentences?, expected"
    ):
        objective.target_counts(TokenShards.open(token_data.tokens, "train"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zero", "unigram", "none"])
def test_every_start_of_the_output_bias_trains_and_the_unigram_starts_at_the_targets(
    translation_command: Make, kind: str
) -> None:
    bias = {"kind": kind, "counts": "corpus", "weight_scale": 0.01}
    command = translation_command(output_bias=bias, divergences=True, steps=4)
    command.finish()
    first = command.rows()[0]
    assert first["step"] == 0
    if kind == "unigram":
        assert first["kl_unigram"] == pytest.approx(0, abs=0.01)
    else:
        assert first["kl_unigram"] > 0.3
