"""Opening of models for direct evaluations: names on the hub, folders without a model, and modules of users."""

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from torch import nn

from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ManifestError, ModelError
from hatchery.evaluation.opening import HUB_FILES, OTHER_WEIGHTS, fetched, open_model
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.evaluation.trained_objective import Use, common_masks, default_objective
from hatchery.evaluation.user_modules import UserEncoder
from hatchery.training.own_model import OwnModel


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize(("name", "revision"), [("bert-base", None), ("bert-base@v1/x", "v1/x")])
def test_a_name_on_the_hub_is_fetched_with_its_revision_and_other_weights_only_if_needed(
    name: str, revision: str | None, weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / weights).touch()
    asked: list[tuple[str, str | None, list[str]]] = []

    def download(repository: str, revision: str | None, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        asked.append((repository, revision, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert fetched(name) == tmp_path
    patterns = [[*HUB_FILES], [*HUB_FILES, *OTHER_WEIGHTS]][: 1 + (weights == "pytorch_model.bin")]
    assert asked == [("bert-base", revision, each) for each in patterns]


def test_only_a_text_that_is_no_folder_here_is_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(repository: str, **options: Any) -> str:
        raise OSError(f"no {repository}\nmore")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    for name in ("org/bert", "bert"):
        with pytest.raises(ModelError, match=rf"^{name}: .* no model of this name could be fetched .*: no {name}$"):
            open_model(name)
    # A folder next to `bert` would be in the existing folder `here`.
    for name in ("here/bert", "here", "./bert", ".bert", "a/b/c"):
        with pytest.raises(ManifestError, match="this folder contains no model"):
            open_model(name)


@pytest.mark.parametrize(
    ("number", "end"), [(30, r"There are: ltg-s01, .*, ltg-s30$"), (31, r"did you mean '[^']*'\?$")]
)
def test_a_wrong_folder_is_reported_with_up_to_thirty_folders_next_to_it(number: int, end: str, tmp_path: Path) -> None:
    for seed in range(1, number + 1):
        (tmp_path / f"ltg-s{seed:02}").mkdir()
        (tmp_path / f"ltg-s{seed:02}/manifest.json").touch()
    with pytest.raises(ManifestError, match=f"expected a folder such as results/.*{end}"):
        open_model(tmp_path / "ltg-s99")


def test_results_without_a_model_of_hatchery_are_refused(tmp_path: Path, model_manifest: Path) -> None:
    with stage_run(tmp_path / "corpus/manifest.json", {"stage": "convert_corpus"}) as run:
        (run.folder / "text.txt").touch()
        run.add_output(run.folder / "text.txt")
    with pytest.raises(ManifestError, match="the stage convert_corpus makes no model"):
        open_model(tmp_path / "corpus")
    settings = {"stage": "pretrain", "model": {"module": "mine.Model"}}
    with stage_run(tmp_path / "own/manifest.json", settings) as run:
        run.add_output(run.folder / "tokenizer.json").write_bytes(
            model_manifest.with_name("tokenizer.json").read_bytes()
        )
    with pytest.raises(ManifestError, match=r"is the module mine\.Model of your own code; pass the module"):
        open_model(tmp_path / "own")


class Layers(nn.Module):
    """Three states of the width 4, and dropout with a probability that is a plain number."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(9, 4), nn.Dropout(0.5)
        self.attention_dropout = 0.5

    def hidden_states(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> list[torch.Tensor]:
        first = self.embedding(input_ids)
        return [first, first + 1, first + 2]


def test_the_encoder_of_a_module_has_its_layers_and_sets_every_dropout() -> None:
    module = Layers().eval()
    encoder = UserEncoder(OwnModel(module, 9), causal=True, some_id=1)
    assert (encoder.config.hidden_size, encoder.n_layers, encoder.first_token_is_blind) == (4, 2, True)
    rows = torch.tensor([3, 0])
    ids = torch.tensor([[1, 2], [3, 4]])
    expected = module.embedding(torch.tensor([4, 1])) + 2
    assert torch.equal(encoder.hidden_at(ids, None, rows), expected)
    encoder.set_dropout(0.25)
    assert (module.dropout.p, module.attention_dropout) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (Use(("masked",)), None),
        (Use(("translation",)), None),
        (Use(("causal",)), ("causal", "packed")),
        (Use(("causal",), appends_end_token=False), ("causal", "blocks")),
        (Use(("masked", "causal"), 1), ("hybrid", "packed")),
    ],
)
def test_a_model_of_unknown_training_has_the_default_objective_of_its_uses(
    use: Use, expected: tuple[str, str] | None
) -> None:
    found = default_objective(use)
    assert (found and (found.task, getattr(found, "segments", ""))) == expected


def test_common_masks_are_those_of_the_settings_of_perplexity() -> None:
    chosen = {"mask_probability": 0.3, "random_probability": 0.2, "keep_probability": 0.4, "segments": "documents"}
    masks = common_masks(PerplexitySettings(splits=("dev",), sequence_length=16, **chosen)).settings
    assert {name: getattr(masks, name) for name in chosen} == chosen
    assert (masks.kind, masks.short_probability) == ("subword", 0.0)
