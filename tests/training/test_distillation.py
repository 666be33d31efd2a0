"""Distillation: a run minimises its own loss and the divergence from its teachers, and resumes exactly."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hatchery.analysis.pretrained_run import pretrained_run
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.mask_rates import WEIGHTS
from hatchery.training.distillation import DistilledObjective, Teachers
from hatchery.training.distillation_settings import DistillationSettings
from hatchery.training.loop import loss_of
from hatchery.training.objective import Objective
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.hybrid import HybridObjective, HybridSettings
from hatchery.training.objectives.masked import MaskedObjective, MaskedSettings
from hatchery.training.precision import resolve_precision

Train = Callable[..., Manifest]
CPU = torch.device("cpu")
LABELS = torch.tensor([[0, -100, 2], [-100, 1, 1]])
POSITIONS = [0, 2, 4, 5]
# Logits of models with three words, at the four labels.
STUDENT = [[0.5, -1.0, 0.2], [1.5, 0.0, -0.5], [0.0, 0.3, 0.1], [-2.0, 1.0, 0.0]]
FIRST = [[2.0, 0.0, -1.0], [0.0, 1.0, 0.0], [0.3, 0.2, 0.1], [1.0, -1.0, 0.5]]
SECOND = [[-1.0, 0.5, 0.0], [0.7, 0.0, 2.0], [0.0, 0.0, 0.0], [0.1, 0.2, -3.0]]
WORDS = [0, 2, 1, 1]


class Fixed(nn.Module):
    """A teacher with the same logits for every batch."""

    def __init__(self, logits: list[list[float]]) -> None:
        super().__init__()
        self.found = nn.Parameter(torch.tensor(logits))

    def forward(self, _: Tensor, __: Any, labels: Tensor, labelled: Tensor, causal: Any) -> LanguageModelOutput:
        assert not self.training and labelled.tolist() == POSITIONS
        return LanguageModelOutput(self.found, labels.flatten()[labelled], labelled)


def distilled(objective: Objective, *teachers: list[list[float]], **settings: float) -> DistilledObjective:
    models: Any = [Fixed(logits) for logits in teachers]
    there = Teachers(models, CPU, resolve_precision("fp32", CPU))
    return DistilledObjective(objective, there, DistillationSettings(**settings))


def batch_of(**more: Tensor) -> dict[str, Tensor]:
    return {"input_ids": torch.zeros(2, 3, dtype=torch.int64), "labels": LABELS, **more}


def output_of(labels: Tensor = LABELS) -> LanguageModelOutput:
    positions = torch.tensor(POSITIONS)
    return LanguageModelOutput(torch.tensor(STUDENT, requires_grad=True), labels.flatten()[positions], positions)


def softmax(logits: list[float], temperature: float) -> list[float]:
    powers = [math.exp(one / temperature) for one in logits]
    return [one / sum(powers) for one in powers]


def divergence_by_hand(label: int, teachers: list[Any], temperature: float) -> float:
    """Return KL(mean of the teachers || student) of one label, in nats."""
    found = [softmax(teacher[label], temperature) for teacher in teachers]
    mean = [sum(values) / len(found) for values in zip(*found, strict=True)]
    student = softmax(STUDENT[label], temperature)
    return sum(p * math.log(p / q) for p, q in zip(mean, student, strict=True))


def cross_entropy_by_hand(label: int) -> float:
    return -math.log(softmax(STUDENT[label], 1)[WORDS[label]])


@pytest.mark.parametrize("teachers", [[FIRST], [FIRST, SECOND]], ids=["one", "two"])
@pytest.mark.parametrize(("weight", "temperature"), [(0.3, 1.0), (0.75, 2.5), (1.0, 2.0)])
@pytest.mark.parametrize("objective", [MaskedObjective(MaskedSettings()), CausalObjective(CausalSettings())])
def test_the_loss_is_that_of_the_formula(
    objective: Objective, weight: float, temperature: float, teachers: list[Any]
) -> None:
    (term,) = distilled(objective, *teachers, weight=weight, temperature=temperature).terms(output_of(), batch_of())
    own = sum(map(cross_entropy_by_hand, range(4)))
    divergence = sum(divergence_by_hand(label, teachers, temperature) for label in range(4))
    expected = (1 - weight) * own + weight * temperature**2 * divergence
    assert float(loss_of([term], (4.0,)).detach()) == pytest.approx(expected / 4, rel=1e-5)
    assert float(term.loss_sum.detach()) == pytest.approx(own, rel=1e-5), "the reported loss is that of the labels"
    assert float(term.sums[-1]) == pytest.approx(divergence, rel=1e-5)


def test_gradients_are_those_of_the_student_alone() -> None:
    """d KL / d z = (q - p) / T, so with weight 1 the gradient is T * (q - p) for any labels."""
    for labels in (LABELS, LABELS.clamp(min=0)):
        output, temperature = output_of(labels), 2.0
        taught = distilled(CausalObjective(CausalSettings()), FIRST, SECOND, weight=1, temperature=temperature)
        loss_of(taught.terms(output, batch_of()), (1.0,)).backward()
        first, second, own = (torch.tensor([softmax(row, 2.0) for row in rows]) for rows in (FIRST, SECOND, STUDENT))
        assert output.logits.grad is not None
        torch.testing.assert_close(output.logits.grad, temperature * (own - (first + second) / 2), rtol=1e-4, atol=1e-6)
        models: Any = taught.teachers._models
        assert all(model.found.grad is None for model in models)


def test_weights_of_labels_count_in_the_divergence_as_in_the_loss() -> None:
    weights = torch.tensor([[2.0, 9.0, 0.5], [9.0, 0.0, 1.0]])
    settings = MaskedSettings()
    (term,) = distilled(MaskedObjective(settings), FIRST, weight=0.4).terms(output_of(), batch_of(**{WEIGHTS: weights}))
    each = [2.0, 0.5, 0.0, 1.0]
    expected = sum(
        count * (0.6 * cross_entropy_by_hand(label) + 0.4 * divergence_by_hand(label, [FIRST], 1))
        for label, count in enumerate(each)
    )
    assert float(loss_of([term], (1.0,)).detach()) == pytest.approx(expected, rel=1e-5)


def test_each_kind_of_a_hybrid_batch_has_its_own_divergence_and_weight() -> None:
    objective = HybridObjective(HybridSettings(causal_share=0.25, z_loss=0.01))
    taught = distilled(objective, FIRST, weight=0.4)
    terms = taught.terms(output_of(), batch_of(causal=torch.tensor([False, True])))
    assert taught.columns[1] == ("next_token_loss", "next_token_accuracy", "next_token_teacher_divergence")
    parts = []
    for labels in ((0, 1), (2, 3)):
        own = sum(
            cross_entropy_by_hand(label) + 0.01 * math.log(sum(map(math.exp, STUDENT[label]))) ** 2 for label in labels
        )
        parts.append((0.6 * own + 0.4 * sum(divergence_by_hand(label, [FIRST], 1) for label in labels)) / 2)
    assert float(loss_of(terms, (2.0, 2.0)).detach()) == pytest.approx(0.75 * parts[0] + 0.25 * parts[1], rel=1e-5)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_hybrid_run_of_one_kind_counts_that_kind(share: float) -> None:
    taught = distilled(HybridObjective(HybridSettings(causal_share=share)), FIRST, weight=1)
    (term,) = taught.terms(output_of(), batch_of(causal=torch.full((2,), share == 1)))
    expected = sum(divergence_by_hand(label, [FIRST], 1) for label in range(4))
    assert float(loss_of([term], (1.0,)).detach()) == pytest.approx(expected, rel=1e-5)


def test_rows_of_the_vocabulary_that_only_one_model_has() -> None:
    """A row that the teacher lacks has teacher probability 0; a row that the student lacks is ignored."""
    narrow, wide = [row[:2] for row in FIRST], [[*row, 5.0] for row in FIRST]
    for teacher, known in ((narrow, 2), (wide, 3)):
        (term,) = distilled(CausalObjective(CausalSettings()), teacher, weight=1).terms(output_of(), batch_of())
        expected = 0.0
        for row, own in zip(FIRST, STUDENT, strict=True):
            pairs = zip(softmax(row[:known], 1), softmax(own, 1), strict=False)
            expected += sum(p * math.log(p / q) for p, q in pairs)
        assert float(loss_of([term], (1.0,)).detach()) == pytest.approx(expected, rel=1e-5)


def rows(manifest: Manifest) -> list[dict[str, Any]]:
    return [json.loads(line) for line in manifest.file("metrics.jsonl").read_text("utf-8").splitlines()]


def test_weight_0_gives_the_bits_of_plain_training(train_here: Train) -> None:
    teacher = train_here("teacher", steps=2, seed=7).path
    plain = train_here("plain", steps=4)
    taught = train_here("taught", steps=4, teachers=[teacher], distillation={"weight": 0})
    assert "teachers" not in taught.measures
    for name in ("model.safetensors", "metrics.jsonl"):
        assert taught.file(name).read_bytes() == plain.file(name).read_bytes(), name


def test_a_run_learns_from_two_teachers_that_its_manifest_names(train_here: Train) -> None:
    teachers = [train_here(f"teacher_{seed}", steps=2, seed=seed).path for seed in (1, 2)]
    plain = train_here("plain", steps=4)
    taught = train_here("taught", steps=4, teachers=teachers, distillation={"weight": 0.5, "temperature": 2.0})
    digests = [read_manifest(path).digest for path in teachers]
    assert [taught.inputs["teacher"], taught.inputs["teacher_2"]] == digests
    assert taught.file("model.safetensors").read_bytes() != plain.file("model.safetensors").read_bytes()
    first = rows(taught)[0]
    assert first["loss"] == rows(plain)[0]["loss"], "before the first update the labels are predicted alike"
    assert first["teacher_divergence"] > 0
    # A forward pass of a model of the same size costs a third of its training, and there are two teachers.
    alone, more = pretrained_run(plain).facts, pretrained_run(taught).facts
    assert more["training_flops"] == pytest.approx(alone["training_flops"] * (1 + 2 / 3))


def test_a_model_diverges_not_from_itself(train_here: Train) -> None:
    still = {"model__hidden_dropout_prob": 0.0, "model__attention_probs_dropout_prob": 0.0}
    teacher = train_here("teacher", steps=0, **still).path
    taught = train_here("taught", steps=2, teachers=[teacher], distillation={"weight": 1}, **still)
    first = rows(taught)[0]
    assert abs(first["teacher_divergence"]) < 1e-6 and first["gradient_norm"] < 1e-5
    other = train_here("other", steps=0, seed=3, **still).path
    taught = train_here("again", steps=2, teachers=[other], distillation={"weight": 1}, **still)
    assert rows(taught)[0]["teacher_divergence"] > 1e-4 and rows(taught)[0]["gradient_norm"] > 1e-3


def test_the_job_refuses_teachers_that_cannot_predict_its_labels(train_here: Train, tmp_path: Path) -> None:
    teacher = train_here("teacher", steps=0).path
    chosen = {"distillation": {"weight": 0.5}, "teachers": [teacher]}
    with pytest.raises(
        ConfigError, match="the teacher is not a causal model, expected a model that was trained, like this run"
    ):
        train_here("causal", objective={"task": "causal"}, **chosen)
    with pytest.raises(ConfigError, match="but this run predicts a masked token at the position before the token"):
        train_here("shifted", objective={"task": "hybrid", "causal_share": 0.0}, **chosen)
    limited = train_here("limited", steps=0, model__position_embedding="absolute").path
    with pytest.raises(ConfigError, match="has positions for 64 tokens, expected at least 65, the longest sequence"):
        train_here("long", sequence_length=65, **{**chosen, "teachers": [limited]})
    with pytest.raises(ConfigError, match="expected at least 128, the longest sequence"):
        train_here("later", sequence_length=32, long=(0.5, 4), **{**chosen, "teachers": [limited]})
    train_here("as_long", steps=1, sequence_length=64, **{**chosen, "teachers": [limited]})
    with pytest.raises(ConfigError, match="there are no teachers, expected the manifest of at least one model"):
        train_here("alone", distillation={"weight": 0.5})
    with pytest.raises(ConfigError, match=r"but pretraining\.distillation is not set"):
        train_here("unasked", teachers=[teacher])
    with pytest.raises(
        ConfigError, match=r"distillation: got .*expected null with task translation, preference or sentence_pairs"
    ):
        train_here("pairs", objective={"sentence_pairs": "document"}, **chosen)
    # The weights are the same, but two words are swapped in the vocabulary.
    odd = tmp_path / "odd" / "manifest.json"
    odd.parent.mkdir()
    made = read_manifest(teacher)
    tokenizer = json.loads(made.file("tokenizer.json").read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    one, two = list(vocabulary)[-2:]
    vocabulary[one], vocabulary[two] = vocabulary[two], vocabulary[one]
    with stage_run(odd, dict(made.settings)) as run:
        (odd.parent / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
        (odd.parent / "config.json").write_bytes(made.file("config.json").read_bytes())
        save_file(load_file(made.file("model.safetensors")), odd.parent / "model.safetensors")
        for name in ("tokenizer.json", "config.json", "model.safetensors"):
            run.add_output(odd.parent / name)
    with pytest.raises(ConfigError, match=r"odd/manifest\.json: the teacher has another vocabulary than .*tokenizer"):
        train_here("odd_student", **{**chosen, "teachers": [odd]})
    # The objective of an imported model is unknown, but its configuration states whether the model is causal.
    imported = tmp_path / "imported" / "manifest.json"
    imported.parent.mkdir()
    with stage_run(imported, {"stage": "import_checkpoint"}) as run:
        for name in ("tokenizer.json", "config.json", "model.safetensors"):
            (imported.parent / name).write_bytes(made.file(name).read_bytes())
            run.add_output(imported.parent / name)
    with pytest.raises(ConfigError, match="the teacher is not causal, expected a teacher that is causal, like the"):
        train_here("causal_student", objective={"task": "causal"}, **{**chosen, "teachers": [imported]})
    train_here("student", steps=1, **{**chosen, "teachers": [imported]})


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits_and_starts_anew_for_another_teacher(
    make_command: Callable[..., Any],
) -> None:
    teachers = [make_command(steps=2, seed=seed) for seed in (1, 2)]
    for teacher in teachers:
        teacher.finish()
    first, second = (teacher.output for teacher in teachers)
    asked = {"distillation": {"weight": 0.5, "temperature": 2.0}}
    whole = make_command(teachers=[first, second], **asked)
    whole.finish()
    killed = make_command(teachers=[first, second], **asked)
    killed.kill_after(12)
    folder = killed.run_folder
    killed.finish()
    assert killed.provenance()["resumed_from_step"] > 0
    assert killed.digests() == whole.digests()
    other = make_command(teachers=[second, first], **asked)
    other.kill_after(1)
    assert other.run_folder.name != folder.name
