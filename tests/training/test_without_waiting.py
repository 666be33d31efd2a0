"""No training step reads a value from its device: all steps run on the meta device, whose tensors have no values.

A read makes the host wait for the GPU and then leaves the GPU idle, so the host must only queue work. The meta device
takes the branches of a GPU and raises an error if a value is read (`item`, `bool`, `nonzero`). Parts that do not run
there are replaced: DeepSpeed, which with one process only calls model and optimiser, page-locked memory and autocast.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hatchery.evaluation.finetuning.loop import FiniteWatch
from hatchery.modeling.heads.registry import build_task_model
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.modeling.language_model import UNLABELLED, LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training import engine as engine_module
from hatchery.training.batches import StepBatch
from hatchery.training.engine import Engine
from hatchery.training.loop import LossAverage, StepMeasures, accumulate_gradients
from hatchery.training.objectives import OBJECTIVES, objective_of
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import LossScaler, Precision
from hatchery.training.topology import SINGLE_PROCESS

META = torch.device("meta")
LENGTH, SEQUENCES, VOCABULARY = 24, 4, 50
# PyTorch raises one of these errors if code reads the value of a tensor on the meta device. Three tests expect them, to
# prove that a read would be noticed; no unfinished code raises them.
ASKED, WORDS = (RuntimeError, NotImplementedError), r"item\(\)|copy out of meta"


class Undistributed:
    """The methods of DeepSpeed's engine that we call, as with one process."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def train(self) -> None:
        self.model.train()

    def __call__(self, **inputs: Tensor) -> Any:
        return self.model(**inputs)

    def backward(self, loss: Tensor, scale_wrt_gas: bool) -> None:
        loss.backward()

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def destroy(self) -> None:
        pass


@pytest.fixture
def _no_gpu_needed(monkeypatch: pytest.MonkeyPatch, single_process: None) -> Iterator[None]:
    deepspeed = SimpleNamespace(
        init_distributed=lambda **_: None,
        initialize=lambda model, optimizer, **_: (Undistributed(model, optimizer),),
    )
    monkeypatch.setattr(engine_module, "import_deepspeed", lambda device: deepspeed)
    for cast in ("autocast", "one_cast"):
        monkeypatch.setattr(Precision, cast, lambda self, device_type: nullcontext())
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(Tensor, "is_pinned", lambda self: True)
    # The meta device has operations on many tensors at once, but torch's list of devices does not name it.
    monkeypatch.setattr("torch.nn.utils.clip_grad._device_has_foreach_support", lambda device: True)
    yield


def model_on_meta(**changes: Any) -> LanguageModel:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2}
    model = LanguageModel(LtgBertConfig(vocab_size=VOCABULARY, position_bucket_size=8, **sizes, **changes))
    initialise_(model, 1)
    return model.to(META)


def drawn_batch(causal: bool, pairs: bool) -> dict[str, Tensor]:
    """Return a batch on the CPU, as from a loader, with padding or, if causal, with packed pieces."""
    ids = torch.randint(5, VOCABULARY, (SEQUENCES, LENGTH))
    lengths = torch.tensor([LENGTH, LENGTH - 3, LENGTH, 7])
    mask = torch.arange(LENGTH) < lengths[:, None]
    labels = ids.where((torch.rand(ids.shape) < 0.3) & mask, UNLABELLED)
    batch = {"input_ids": ids, "labels": labels, "attention_mask": mask}
    if causal:
        batch["attention_mask"] = mask[:, :, None] & mask[:, None, :]
        batch["causal"] = torch.ones(SEQUENCES, dtype=torch.bool)
    if pairs:
        batch["pair_labels"] = torch.tensor([0, 1, 1, 0])
    return batch


def two_steps(
    model: LanguageModel, objective: Any, optimizer: OptimizerSettings, average: LossAverage = "tokens", **options: Any
) -> StepMeasures:
    """Take two steps of two micro-batches each, as `train` does; return the measures, which are not yet read."""
    objective = objective_of(objective)
    built = build_optimizer(model, optimizer)
    precision = options.pop("precision", Precision("fp32"))
    causal, pairs = "causal" in objective.settings.kinds, model.config.sentence_pair_head
    hybrid = len(objective.settings.kinds) > 1
    with Engine(model, built, optimizer.max_gradient_norm, precision, META, SINGLE_PROCESS, **options) as engine:
        measures = StepMeasures(average, SINGLE_PROCESS, META, objective.columns)
        for step in range(2):
            parts = [drawn_batch(causal, pairs) for _ in range(2)]
            labelled = sum(int((part["labels"] != UNLABELLED).sum()) for part in parts)
            counted = (labelled, 2 * SEQUENCES) if pairs or hybrid else (labelled,)
            batch = StepBatch(parts, counted, tokens=2 * SEQUENCES * LENGTH)
            engine.begin_step(42, step, 0.01)
            sums = accumulate_gradients(engine, batch, average, objective)
            measures.add(step, batch, sums, engine.step(), stop=False)
    return measures


# Layers do not depend on the objective, so each weighting has one objective, and each objective two weightings.
@pytest.mark.parametrize(
    ("task", "weighting"),
    [
        *(("masked", weighting) for weighting in ("none", "biased", "zero", "normalized", "weighted_output")),
        *((task, weighting) for task in ("causal", "hybrid") for weighting in ("none", "biased")),
    ],
)
@pytest.mark.usefixtures("_no_gpu_needed")
def test_a_step_of_either_objective_and_any_layer_weighting_asks_for_nothing(task: str, weighting: str) -> None:
    objective = OBJECTIVES[task][0]()
    model = model_on_meta(layer_weighting=weighting)
    two_steps(model, objective, OptimizerSettings())


@pytest.mark.parametrize(
    "changes",
    [
        {"normalisation": "post_norm"},
        {"position_embedding": "absolute", "max_position_embeddings": 64},
        {"position_head_layout": "bnc", "position_to_content_index": "key_minus_query"},
    ],
    ids=lambda changes: "-".join(changes),
)
@pytest.mark.usefixtures("_no_gpu_needed")
def test_nor_does_one_of_an_ablation(changes: dict[str, Any]) -> None:
    two_steps(model_on_meta(**changes), MaskedSettings(), OptimizerSettings())


@pytest.mark.parametrize("average", ["tokens", "processes"])
@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
@pytest.mark.usefixtures("_no_gpu_needed")
def test_nor_do_optimisers_averages_and_sentence_pairs(optimizer: Any, average: LossAverage) -> None:
    objective = MaskedSettings(sentence_pairs="document")
    model = model_on_meta(sentence_pair_head=True)
    two_steps(model, objective, OptimizerSettings(name=optimizer), average)


@pytest.mark.usefixtures("_no_gpu_needed")
def test_nor_do_layers_that_are_computed_again() -> None:
    two_steps(model_on_meta(), MaskedSettings(), OptimizerSettings(), recomputed=True)


@pytest.mark.usefixtures("_no_gpu_needed")
def test_losses_are_asked_for_where_they_are_read_and_nowhere_else() -> None:
    measures = two_steps(model_on_meta(), MaskedSettings(), OptimizerSettings())
    with pytest.raises(ASKED, match=WORDS):
        measures.read()


@pytest.mark.usefixtures("_no_gpu_needed")
def test_fp16_alone_asks_in_every_step_whether_gradients_are_finite() -> None:
    with pytest.raises(ASKED, match=WORDS):
        two_steps(model_on_meta(), MaskedSettings(), OptimizerSettings(), precision=Precision("fp16", LossScaler()))


def test_fine_tuning_asks_every_fiftieth_step() -> None:
    model = build_task_model("sequence_classification", model_on_meta().encoder, HeadContext(2, 0.1, 1, 3)).to(META)
    watch = FiniteWatch(META)
    inputs = {key: value.to(META) for key, value in drawn_batch(causal=False, pairs=False).items() if key != "labels"}
    labels = torch.zeros(SEQUENCES, dtype=torch.int64, device=META)
    loss = model.train().loss(model(**inputs), labels).mean
    loss.backward()
    for _ in range(49):
        watch.add(loss.detach())
    with pytest.raises(ASKED, match=WORDS):
        watch.add(loss.detach())
