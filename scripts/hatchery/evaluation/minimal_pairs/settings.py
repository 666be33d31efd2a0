"""What is scored and how, as typed settings: a suite of minimal pairs, the way of scoring, and the kind of model.

A suite is one entry of config/suites, a public model to compare with one entry of config/baselines; the two meet in
`ScoringSettings`. What only changes the speed is in `ScoringRuntime` and no part of the result's identity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hatchery.errors import ConfigError
from hatchery.evaluation.runtime import DeviceName
from hatchery.settings.fields import Settings
from hatchery.typed import build, stage_body

Unit = Literal["paradigm", "file"]
Architecture = Literal["masked", "causal"]
ScoringName = Literal["auto", "pll", "pll_within_word_l2r", "left_to_right"]


@dataclass(frozen=True)
class ExpectedSize(Settings):
    """How large a suite is, so that the files of another one are recognised; None leaves a number open."""

    paradigms: int | None = None
    pairs: int | None = None


@dataclass(frozen=True)
class ExternalModel(Settings):
    """A public model in the layout of the library `transformers`, registered as a raw input of kind folder.

    `leading_blank` None does what the suite says; a value is for models whose published number was made otherwise.
    """

    architecture: Architecture
    leading_blank: bool | None = None


@dataclass(frozen=True)
class ScoringSettings(Settings):
    """What is scored; part of the result's identity.

    `unit` is what one row of the tables is: the record's paradigm, or the whole file (BabyLM's pooled files, where
    accuracy is example-weighted inside a file). `leading_blank` puts a blank in front of every sentence, as BabyLM's
    pipeline does. `scoring` "auto" is "pll" for masked models and "left_to_right" for causal ones.
    """

    suite: str
    format: Literal["blimp"]
    files: str
    pairs_per_paradigm: int | None
    seed: int
    scoring: ScoringName
    unit: Unit = "paradigm"
    leading_blank: bool = False
    expected: ExpectedSize | None = None
    model_kind: Literal["hatchery", "transformers"] = "hatchery"
    external: ExternalModel | None = None

    @property
    def blank(self) -> bool:
        """Whether sentences get a leading blank, with the model's own wish before the suite's."""
        if self.external is not None and self.external.leading_blank is not None:
            return self.external.leading_blank
        return self.leading_blank


@dataclass(frozen=True)
class ScoringRuntime(Settings):
    """How it is carried out: tokens per batch (special tokens included), device, CPU threads.

    `tokens_per_batch` None takes the size that was measured to be fastest on the device
    (benchmarks/score_minimal_pairs.py).
    """

    tokens_per_batch: int | None = None
    device: DeviceName = "auto"
    threads: int | None = None


def scoring_settings(settings: Mapping[str, Any]) -> ScoringSettings:
    """The typed settings of the stage. Raises ConfigError for wrong ones."""
    typed = build(ScoringSettings, stage_body(settings), "score_minimal_pairs")
    if (typed.model_kind == "transformers") != (typed.external is not None):
        raise ConfigError(
            f"score_minimal_pairs.external: got {typed.external!r} with model_kind {typed.model_kind!r}, "
            "expected a mapping (architecture, leading_blank) for 'transformers' and null for 'hatchery'"
        )
    return typed
