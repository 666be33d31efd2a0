"""Watchers see every step, measure when they are due, end a run, and resume from a checkpoint."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchery.errors import ConfigError, TrainingError
from hatchery.training import run as run_module
from hatchery.training import run_parts, run_watchers
from hatchery.training.inputs import Inputs
from hatchery.training.objectives import objective_of
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import pretrain_settings
from hatchery.training.topology import SINGLE_PROCESS
from hatchery.training.watchers import Watcher


@pytest.fixture
def train_with(train_here: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Train with watchers besides those of the settings; returns the rows of the metrics."""
    built = run_parts.run_watchers

    def train(*watchers: Watcher, name: str = "run", **changes: Any) -> list[dict[str, Any]]:
        monkeypatch.setattr(run_parts, "run_watchers", lambda *given: [*built(*given), *watchers])
        text = train_here(name, **changes).file("metrics.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    return train


def test_development_text_is_scored_at_the_interval_at_marks_and_at_the_end(pretrain_slice: Any) -> None:
    due = run_watchers.evaluated_steps(pretrain_settings(pretrain_slice(steps=10, evaluation_interval_steps=4)), [7])
    assert [step for step in range(12) if due(step)] == [4, 7, 8, 10]


class Counter(Watcher):
    """Counts updates, and keeps the count after a kill."""

    def __init__(self, last: int = 10**6, value: float = 0.0) -> None:
        self.last, self.value, self.updates, self.loaded = last, value, 0, [0.0]

    def after_step(self, step: int, model: Any) -> None:
        self.updates += 1

    def due(self, step: int) -> bool:
        return step % 4 == 0

    def scores(self, step: int, engine: Any) -> dict[str, float]:
        return {"updates": self.updates, "strange_number": self.value}

    @property
    def reason_to_stop(self) -> str | None:
        return f"{self.last} updates are enough" if self.updates >= self.last else None

    def state(self) -> dict[str, Tensor]:
        return {"counter": torch.tensor(self.updates)}

    def load(self, tensors: Any, rows: Any) -> None:
        self.updates = int(tensors["counter"])
        self.loaded = [row["step"] for row in rows if "updates" in row]


def test_scores_stand_in_the_rows_of_the_due_steps_and_change_nothing_else(train_with: Any) -> None:
    plain, watched = train_with(name="plain", steps=9), train_with(Counter(), name="watched", steps=9)
    assert [row["updates"] for row in watched if "updates" in row] == [0, 4, 8]
    assert watched[0] == {"step": 0, "tokens": 0, "words": 0, "updates": 0, "strange_number": 0.0}
    stripped = [{key: row[key] for key in row if key not in ("updates", "strange_number")} for row in watched[1:]]
    assert stripped == plain


def test_a_watcher_ends_a_run(train_with: Any, capfd: pytest.CaptureFixture[str]) -> None:
    rows = train_with(Counter(last=6), steps=20)
    assert [row["step"] for row in rows][-1] == 6
    assert "stopped early after step 6: 6 updates are enough" in capfd.readouterr().err


def test_a_number_that_is_not_finite_ends_the_run_and_is_named(train_with: Any) -> None:
    with pytest.raises(TrainingError, match=r"^step 0: the strange number is nan; there is no checkpoint yet"):
        train_with(Counter(value=math.nan), steps=4)


def test_after_a_failure_a_watcher_goes_on_from_the_last_checkpoint(train_with: Any) -> None:
    class Fails(Counter):
        def after_step(self, step: int, model: Any) -> None:
            super().after_step(step, model)
            if self.updates == 8:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_with(Fails(), steps=12)
    again = Counter()
    rows = train_with(again, steps=12)
    assert again.loaded == [4] and again.updates == 12
    assert rows == train_with(Counter(), name="whole", steps=12)


def test_the_watcher_of_the_documentation_measures_the_noise_of_the_gradient(
    repository: Path, train_with: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(
        r"```python\n(from hatchery\.training\.watchers.*?)```", (repository / "docs/extending.md").read_text(), re.S
    )
    named: dict[str, Any] = {}
    exec(code, named)
    gradients: list[Tensor] = []

    def keep(optimizer: Any, *_: Any) -> None:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        gradients.append(torch.cat([each.grad.flatten() for each in parameters if each.grad is not None]).double())

    built = run_module.build_optimizer

    def build(*given: Any) -> Any:
        optimizer = built(*given)
        optimizer.register_step_pre_hook(keep)
        return optimizer

    monkeypatch.setattr(run_module, "build_optimizer", build)
    # Disable clipping, because this hook runs after clipping and would record clipped gradients.
    rows = train_with(named["GradientNoise"](), steps=20, optimizer__max_gradient_norm=None)
    found = {row["step"]: row["gradient_noise"] for row in rows if "gradient_noise" in row}
    assert list(found) == [10, 20]
    for step, noise in found.items():
        # The weights of the averages fall by the factor beta with every step and are divided by their sum.
        first, second = (torch.tensor([beta ** (step - 1 - t) for t in range(step)]).double() for beta in (0.9, 0.98))
        seen = torch.stack(gradients[:step])
        mean, square = first @ seen / first.sum(), second @ seen.square() / second.sum()
        assert noise == pytest.approx(float((square.sum() - mean.square().sum()) / mean.square().sum()), rel=1e-3)
    assert len(gradients) == 20 and found[10] > 0


@pytest.mark.parametrize(("asked", "sizes"), [(3, (3, 3)), (4, (4, 4)), (10, (10, 4))])
def test_divergences_are_measured_on_no_more_than_their_number_of_development_sequences(
    monkeypatch: pytest.MonkeyPatch, token_data: Any, pretrain_slice: Any, asked: int, sizes: tuple[int, int]
) -> None:
    monkeypatch.setattr(run_watchers, "PROBED_SEQUENCES", 4)
    settings = pretrain_settings(pretrain_slice(evaluation_sequences=asked))
    inputs = Inputs(token_data.tokens, token_data.tokenizer)
    found = run_watchers._development_sets(
        settings, objective_of(settings.objective), RuntimeSettings(), inputs, SINGLE_PROCESS
    )
    assert tuple(sum(len(batch["labels"]) for batch in each.batches) for each in found if each) == sizes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"divergences": True}, "pretraining.divergences: got true, expected a development split and evaluation_seq"),
        (
            {"early_stopping": {"patience_evaluations": 1}},
            "pretraining.early_stopping: expected a development split and evaluation_sequences above 0, because the "
            "development loss decides when to stop",
        ),
    ],
)
def test_without_development_text_what_reads_it_is_refused(
    token_data: Any, pretrain_slice: Any, changes: dict[str, Any], message: str
) -> None:
    settings = pretrain_settings(pretrain_slice(evaluation_sequences=0, **changes))
    inputs, model = Inputs(token_data.tokens, token_data.tokenizer), torch.nn.Linear(1, 1)
    objective = objective_of(settings.objective)
    with pytest.raises(ConfigError, match=message):
        list(
            run_watchers.run_watchers(
                settings,
                RuntimeSettings(),
                inputs,
                SINGLE_PROCESS,
                objective,
                model,
                lambda: None,  # type: ignore[arg-type,return-value]
            )
        )
