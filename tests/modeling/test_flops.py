"""Operations are counted as torch counts them, and the papers' formulas give the papers' numbers."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from hatchery.errors import ConfigError
from hatchery.modeling.families import (
    family_of,
    forward_flops,
    model_config,
    training_flops,
    training_flops_per_sequence,
)
from hatchery.modeling.flops import STUDY_SEQUENCES, PassShape, StudyFormula, kaplan_flops, reduced_vocabulary_flops
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.objectives.masked import pair_term
from hatchery.training.speed import mfu, peak_flops, peak_flops_of

SIZES = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 2}
SMALL = {**SIZES, "position_bucket_size": 8, "max_position_embeddings": 32}
VOCABULARY, BATCH, LENGTH, LABELLED = 97, 5, 20, 17

MODELS: dict[str, dict[str, Any]] = {
    "ltg": SMALL,
    "bnc layout": {**SMALL, "position_head_layout": "bnc", "head_dropout": "before_norm"},
    "absolute positions": {**SMALL, "position_embedding": "absolute"},
    "plain gelu with biases": {**SMALL, "feed_forward_activation": "gelu", "feed_forward_bias": True},
    "pre-norm": {**SMALL, "normalisation": "pre_norm"},
    "post-norm": {**SMALL, "normalisation": "post_norm"},
    "untied": {**SMALL, "tie_word_embeddings": False, "vocabulary_bias": False},
    "exchanged index": {**SMALL, "position_to_content_index": "key_minus_query"},
    "sentence pairs": {**SMALL, "sentence_pair_head": True},
    "elc biased": {**SMALL, "layer_weighting": "biased"},
    "elc zero": {**SMALL, "layer_weighting": "zero"},
    "elc normalized": {**SMALL, "layer_weighting": "normalized"},
    "elc unit vector": {**SMALL, "layer_weighting": "normalized_unit_vector"},
    "elc weighted output": {**SMALL, "layer_weighting": "weighted_output"},
    "gpt_bert": {**SMALL, "family": "gpt_bert"},
    "gpt_bert without a gate": {**SMALL, "family": "gpt_bert", "attention_gate": False},
    "modern": {**SIZES, "family": "modern"},
    "modern with switches": {
        **SIZES,
        "family": "modern",
        "output_transform": True,
        "value_residual": True,
        "head_gate": True,
        "unet_skips": True,
    },
    "roberta tied": {**SIZES, "family": "roberta"},
    "roberta untied": {
        **SIZES,
        "family": "roberta",
        "embedding_size": 16,
        "tie_word_embeddings": False,
        "extra_vocabulary_rows": 10,
    },
    "roberta elc with pairs": {**SIZES, "family": "roberta", "layer_weighting": "zero", "sentence_pair_head": True},
}


def counted(values: dict[str, Any], mask: torch.Tensor | None = None, length: int = LENGTH) -> tuple[int, int]:
    """Return torch's counts of the operations of the forward pass, and of forward and backward.

    Dropout is on, because without dropout the CPU uses a fused kernel, whose operations torch does not count.
    """
    generator = torch.Generator().manual_seed(0)
    model = LanguageModel(model_config({**values, "vocab_size": VOCABULARY}))
    initialise_(model, 1)
    batch = {
        "input_ids": torch.randint(5, VOCABULARY, (BATCH, length), generator=generator),
        "attention_mask": torch.ones(BATCH, length, dtype=torch.bool) if mask is None else mask,
        "labels": torch.full((BATCH, length), UNLABELLED),
    }
    tokens = batch["attention_mask"].flatten().nonzero().squeeze(1)
    batch["labels"].flatten()[tokens[torch.randperm(len(tokens), generator=generator)[:LABELLED]]] = 7
    if values.get("sentence_pair_head"):
        batch["pair_labels"] = torch.randint(0, 2, (BATCH,), generator=generator)
    with FlopCounterMode(display=False) as forward:
        output = model(**batch)
        judged = 0 if output.pair_logits is None else pair_term(output.pair_logits, batch["pair_labels"]).loss_sum
        loss = output.loss_sum + judged
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    return forward.get_total_flops(), forward.get_total_flops() + backward.get_total_flops()


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_the_operations_that_torch_counts(name: str) -> None:
    config = model_config({**MODELS[name], "vocab_size": VOCABULARY})
    shape = PassShape(BATCH, LENGTH, LABELLED, pairs=config.sentence_pair_head)
    assert (sum(forward_flops(config, shape).values()), training_flops(config, shape)) == counted(MODELS[name])


@pytest.mark.parametrize("length", [2, 9, 31, 32, 50])
def test_only_the_reachable_rows_of_the_relative_embedding_are_counted(length: int) -> None:
    config = model_config({**SMALL, "vocab_size": VOCABULARY})
    # At length 2, the five sequences contain ten positions, so at most ten labels.
    shape = PassShape(BATCH, length, min(LABELLED, BATCH * length))
    assert training_flops(config, shape) == counted(SMALL, length=length)[1]


@pytest.mark.parametrize("name", ["ltg", "roberta untied"])
def test_padding_that_the_layers_leave_out_is_not_counted(name: str) -> None:
    mask = torch.arange(LENGTH)[None, :] < torch.tensor([20, 8, 3, 20, 11])[:, None]
    config = model_config({**MODELS[name], "vocab_size": VOCABULARY})
    shape = PassShape(BATCH, LENGTH, LABELLED, tokens=int(mask.sum()))
    assert training_flops(config, shape) == counted(MODELS[name], mask)[1]
    assert training_flops(config, shape) < training_flops(config, PassShape(BATCH, LENGTH, LABELLED))


@pytest.mark.parametrize("name", MODELS)
def test_a_sequence_takes_its_share_of_the_pass(name: str) -> None:
    share = LABELLED / (BATCH * LENGTH)
    per_sequence = training_flops_per_sequence(MODELS[name], VOCABULARY, LENGTH, share, BATCH)
    assert per_sequence == pytest.approx(counted(MODELS[name])[1] / BATCH, rel=1e-12)
    alone = training_flops_per_sequence(MODELS[name], VOCABULARY, LENGTH, share)
    assert alone == pytest.approx(training_flops_per_sequence(MODELS[name], VOCABULARY, LENGTH, share, 10**9), rel=1e-6)


def test_only_labelled_positions_meet_the_vocabulary() -> None:
    few, all_of_them = (training_flops_per_sequence(SMALL, 30_000, LENGTH, share) for share in (0.15, 1.0))
    vocabulary_and_head = 3 * 2 * LENGTH * 24 * (30_000 + 24)
    assert all_of_them - few == pytest.approx(0.85 * vocabulary_and_head)


@pytest.mark.parametrize(
    ("share", "length", "batch"), [(1.5, 20, None), (-0.1, 20, None), (0.1, 0, None), (0.1, 20, 0)]
)
def test_impossible_requests_are_refused(share: float, length: int, batch: int | None) -> None:
    with pytest.raises(ConfigError, match=r"got .*, expected"):
        training_flops_per_sequence(SMALL, VOCABULARY, length, share, batch)


# The totals (1e15) in the reduced-vocabulary study's Tables 3 and 7 are those of its code for 9,081,600 sequences,
# rounded to the nearest integer. Exceptions: some totals are rounded down, and one is computed without the projection.
ROUNDED_DOWN = {
    (64, 256, 1024, 8, 8),
    (256, 64, 1024, 8, 8),
    (256, 128, 1024, 8, 8),
    (256, 256, 256, 8, 8),
    (256, 256, 1024, 1, 8),
}
WITHOUT_PROJECTION = {(256, 64, 1024, 8, 8)}
# No formula and no rounding gives the printed total of this model, which is 1 % too low.
UNEXPLAINED = (128, 256, 1024, 8, 8)
# Totals of three models by the study's code. The table prints these totals with two decimals, but in reversed order.
REVERSED = {(32, 32, 64, 1, 1): 8.57, (32, 32, 128, 1, 1): 8.60, (32, 32, 128, 2, 2): 8.71}
FORMULAS: list[StudyFormula] = ["code", "code_without_projection", "printed", "complete"]


def total(sizes: tuple[int, ...], formula: StudyFormula = "code") -> float:
    embedding, hidden, inner, layers, heads = sizes
    per_sequence = reduced_vocabulary_flops(embedding, hidden, inner, layers, heads, formula)
    return per_sequence * STUDY_SEQUENCES / 1e15


def test_the_study_printed_what_its_code_counts(golden_directory: Path) -> None:
    published = {}
    for table in ("3", "7"):
        path = golden_directory / "published" / f"reduced_vocabulary_table{table}.csv"
        with path.open(encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                published[tuple(int(row[name]) for name in "EHILA")] = float(row["flops_1e15"])
    assert len(published) == 26 and published.keys() > {UNEXPLAINED, *REVERSED, *ROUNDED_DOWN}
    for sizes, printed in published.items():
        if sizes == UNEXPLAINED:
            totals = [total(sizes, formula) for formula in FORMULAS]
            assert all(printed not in (math.floor(value), round(value)) for value in totals)
            assert totals[0] == pytest.approx(printed, rel=0.015)
        elif sizes not in REVERSED:
            counted = total(sizes, "code_without_projection" if sizes in WITHOUT_PROJECTION else "code")
            assert (math.floor(counted) if sizes in ROUNDED_DOWN else round(counted)) == printed, sizes
    assert {sizes: round(total(sizes), 2) for sizes in REVERSED} == REVERSED
    assert [published[sizes] for sizes in REVERSED] == list(reversed(REVERSED.values()))


@pytest.mark.parametrize(
    ("sizes", "code", "without_projection", "printed", "complete"),
    [
        ((256, 256, 1024, 8, 8), 110.48, 110.02, 86.94, 115.97),
        ((256, 64, 1024, 8, 8), 51.08, 50.97, 44.51, 51.77),
        ((256, 256, 1024, 1, 8), 73.61, 73.15, 70.67, 74.30),
        ((32, 32, 128, 2, 2), 8.71, 8.71, 8.67, 8.78),
    ],
)
def test_the_readings_of_appendix_a_differ_as_the_reference_says(
    sizes: tuple[int, ...], code: float, without_projection: float, printed: float, complete: float
) -> None:
    assert [round(total(sizes, formula), 2) for formula in FORMULAS] == [code, without_projection, printed, complete]


@pytest.mark.parametrize(
    ("sizes", "mixed", "printed"),
    [
        ((256, 256, 1024, 8, 8), True, 32.87),
        ((256, 32, 1024, 8, 8), True, 47.59),
        ((256, 64, 1024, 8, 8), True, 44.01),
        ((256, 128, 1024, 8, 8), True, 38.99),
        ((256, 256, 1024, 1, 8), True, 49.44),
        ((256, 256, 1024, 2, 8), True, 46.12),
        ((256, 256, 1024, 4, 8), True, 40.66),
        ((32, 32, 128, 2, 2), False, 51.23),
        # The reference is 51.90; the table prints 51.89, which differs by one in the last digit.
        ((32, 32, 128, 1, 1), False, 51.90),
        ((32, 32, 64, 1, 1), False, 52.07),
    ],
)
def test_ten_thousand_more_types_cost_what_table_4_says(sizes: tuple[int, ...], mixed: bool, printed: float) -> None:
    embedding, hidden, inner, layers, heads = sizes
    formula: StudyFormula = "code_without_projection" if mixed else "code"
    small = reduced_vocabulary_flops(embedding, hidden, inner, layers, heads, formula)
    large = reduced_vocabulary_flops(embedding, hidden, inner, layers, heads, "code", vocabulary_rows=29_010)
    assert round(100 * (large / small - 1), 2) == printed


def test_the_study_s_formula_counts_each_length_and_the_added_rows_of_the_vocabulary() -> None:
    sizes = {"hidden_size": 6, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 3}
    own = {"embedding_size": 4, "tie_word_embeddings": False, "extra_vocabulary_rows": 10}
    config = model_config({"family": "roberta", **sizes, **own, "vocab_size": 20})
    # A lookup in 30 rows takes 30 x 4 + 4 x 6 products per token. A layer takes 6 x 5 x 36 + 2 x 25 x 6 + 3 x 25 x 3 +
    # 5 x 4 x 48 = 2,565 operations at length 5, and 900 at length 2.
    at_five, at_two = 2 * 5 * 144 + 2 * 2565 + 2 * 5 * 6 * 30, 2 * 2 * 144 + 2 * 900 + 2 * 2 * 6 * 30
    found = family_of(config).paper_flops(config, 0, [(3, 5), (2, 2)])
    assert found == 3 * (3 * at_five + 2 * at_two) == 93_906


def test_our_count_approaches_kaplans_where_parameters_outweigh_positions() -> None:
    wide = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 4, "num_attention_heads": 16}
    values = {**wide, "feed_forward_activation": "gelu", "position_embedding": "absolute"}
    matrices = 4 * (4 * 2048**2 + 2 * 2048 * 8192)
    ours = training_flops_per_sequence(values, 1_000, 64, 0.15)
    assert ours == pytest.approx(kaplan_flops(matrices, 64), rel=0.03)


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("NVIDIA H200", "bf16", 989.5),
        ("NVIDIA H200", "fp32", 67.0),
        ("NVIDIA H200 NVL", "bf16", 835.5),
        ("NVIDIA H100 80GB HBM3", "fp16", 989.5),
        ("NVIDIA H100 PCIe", "bf16", 756.0),
        ("NVIDIA H100 NVL", "bf16", 835.5),
        ("NVIDIA A100-SXM4-80GB", "bf16", 312.0),
        ("NVIDIA A100-PCIE-40GB", "fp32", 19.5),
        ("NVIDIA A100 80GB PCIe", "tf32", 156.0),
        ("Tesla V100-SXM2-32GB", "fp16", 125.0),
        ("Tesla V100-PCIE-16GB", "fp16", 112.0),
        ("Tesla V100S-PCIE-32GB", "fp16", 130.0),
        ("NVIDIA L40S", "bf16", 362.0),
        ("AMD Instinct MI250X", "bf16", 191.5),
        # Half of the TensorFloat-32 speeds that data sheets print for sparse matrices, and speeds in fp32.
        ("NVIDIA H200", "tf32", 989 / 2),
        ("NVIDIA H100 NVL", "tf32", 835 / 2),
        ("NVIDIA H100 NVL", "fp32", 60.0),
        ("NVIDIA H100 PCIe", "tf32", 756 / 2),
        ("NVIDIA H100 PCIe", "fp32", 51.0),
        ("NVIDIA L40S", "tf32", 366 / 2),
        ("NVIDIA L40S", "fp32", 91.6),
        ("Tesla V100-SXM2-32GB", "fp32", 15.7),
        ("Tesla V100-PCIE-16GB", "fp32", 14.0),
        ("Tesla V100S-PCIE-32GB", "fp32", 16.4),
        ("AMD Instinct MI250X", "fp32", 47.9),
    ],
)
def test_the_dense_peak_of_a_known_gpu(name: str, precision: str, tera: float) -> None:
    assert peak_flops(name, precision) == tera * 1e12


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("cpu", "fp32"),
        ("NVIDIA GeForce GTX 1080", "fp32"),
        ("Tesla V100-SXM2-32GB", "bf16"),
        ("AMD Instinct MI250X", "tf32"),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "bf16"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "bf16"),
        ("NVIDIA L40", "bf16"),
        ("NVIDIA A100-SXM-64GB", "bf16"),
    ],
)
def test_an_unknown_peak_is_not_guessed(name: str, precision: str) -> None:
    assert peak_flops(name, precision) is None


@pytest.mark.parametrize(("allowed", "tera"), [("highest", 67.0), ("high", 494.5)])
def test_fp32_is_measured_by_the_arithmetic_that_torch_may_use(
    monkeypatch: pytest.MonkeyPatch, allowed: str, tera: float
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: allowed)
    assert peak_flops_of(torch.device("cuda", 0), "fp32") == tera * 1e12
    assert peak_flops_of(torch.device("cuda", 0), "bf16") == 989.5e12
    assert peak_flops_of(torch.device("cpu"), "fp32") is None


def test_utilisation_is_a_share_of_all_devices() -> None:
    assert mfu(flops=6e14, seconds=2.0, devices=3, peak=1e15) == pytest.approx(0.1)
    assert mfu(flops=6e14, seconds=2.0, devices=3, peak=None) is None
