"""Screened decisions equal those of fp32; a bound that is too small is raised."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hatchery.errors import ConfigError
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.minimal_pairs import likelihoods, score_suite
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.measurements import basis_of_suite
from hatchery.evaluation.minimal_pairs.screening import SAFETY, in_bf16, screened
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, HatcheryModel
from hatchery.evaluation.settings import EvaluationRuntime, ScoringSettings

CPU = torch.device("cpu")
VOCABULARY = 51


def suite_of(margins: list[float], errors: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return bf16 and fp32 scores of pairs with these fp32 margins; `errors` are the errors of the bf16 margins."""
    full = np.array([[margin, 0.0] for margin in margins]) - 20.0
    return full + np.array([[error, 0.0] for error in errors]), full


def screen(half: np.ndarray, full: np.ndarray, counts: list[int] | None = None) -> tuple[object, list[list[int]]]:
    asked: list[list[int]] = []

    def in_fp32(numbers: np.ndarray) -> np.ndarray:
        asked.append(numbers.tolist())
        return full[numbers]

    return screened(half, counts or [half.shape[1]] * len(half), in_fp32, seed=0), asked


def test_margins_below_four_times_the_largest_error_of_the_sample_are_computed_again() -> None:
    # All errors are 0.25, so the bound is 1: items with a bf16 margin of at most 1 are computed again.
    margins = [0.125 * (number % 40) for number in range(400)]
    half, full = suite_of(margins, [0.25] * 400)
    found, asked = screen(half, full)
    assert found.bound == 1.0 and found.largest_error == 0.25 and SAFETY == 4.0
    close = {number for number, margin in enumerate(margins) if margin + 0.25 <= 1}
    assert len(asked[0]) == 64 and set(asked[0]) | close == set(np.flatnonzero(found.in_fp32))
    assert sorted(number for numbers in asked for number in numbers) == np.flatnonzero(found.in_fp32).tolist()
    assert (found.scores[found.in_fp32] == full[found.in_fp32]).all()
    assert (found.scores[~found.in_fp32] == half[~found.in_fp32]).all()
    assert found.facts == {
        "computed_twice": round(float(found.in_fp32.mean()), 6),
        "bound": 1.0,
        "largest_error": 0.25,
    }


@pytest.mark.parametrize(("items", "sampled"), [(63, 63), (2_000, 100), (11_000, 512)])
def test_the_sample_is_a_twentieth_of_the_items_at_least_64_and_at_most_512(items: int, sampled: int) -> None:
    half, full = suite_of([5.0] * items, [0.0] * items)
    found, asked = screen(half, full)
    assert [len(numbers) for numbers in asked] == [sampled] and found.bound == 0
    other = screened(half, [2] * items, lambda numbers: full[numbers], seed=1)
    assert (other.in_fp32 == found.in_fp32).all() == (sampled == items), "the seed draws the sample"


def test_an_error_above_the_bound_raises_it_and_selects_further_items() -> None:
    """The drawn sample has no error, a close item has one: items beyond the first bound are then computed again."""
    half, full = suite_of([5.0] * 400, [0.0] * 400)
    _, asked = screen(half, full)
    rest = [number for number in range(400) if number not in asked[0]]
    close, flipped, exact = rest[:3]
    half[close], full[close] = (0.0, 0.0), (0.5, 0.0)
    # The larger bf16 score is wrong, and its margin is between the first bound and the raised one.
    half[flipped], full[flipped] = (0.0, 0.75), (0.25, 0.0)
    # The last selected item has no error, and the bound remains that of the largest error of all rounds.
    half[exact] = full[exact] = (3.0, 0.0)
    found, asked = screen(half, full)
    assert asked[1:] == [[close], [flipped], [exact]] and found.largest_error == 1.0
    assert (found.scores.argmax(axis=1) == full.argmax(axis=1)).all() and found.bound == 4.0
    assert found.scores[flipped].tolist() == [0.25, 0.0]


def test_ties_scores_that_are_not_finite_and_missing_candidates() -> None:
    half, full = suite_of([5.0] * 100, [0.0] * 100)
    half, full = (np.pad(scores, ((0, 0), (0, 1)), constant_values=np.nan) for scores in (half, full))
    _, asked = screen(half, full, [2] * 100)
    tie, lost, three = [number for number in range(100) if number not in asked[0]][:3]
    half[tie, :2] = full[tie, :2] = 1.0
    half[lost, 1] = np.nan
    # The margin of three candidates is that of the best two.
    half[three], full[three] = (-9.0, 1.0, 1.0), (-9.0, 1.0, 1.5)
    counts = [3 if number == three else 2 for number in range(100)]
    found, _ = screen(half, full, counts)
    assert found.in_fp32[[tie, lost, three]].all() and found.scores[three].tolist() == [-9.0, 1.0, 1.5]
    assert found.scores[lost, :2].tolist() == full[lost, :2].tolist()


@pytest.fixture(scope="module")
def uneven(small_model):
    """Return a masked or a causal model with random weights and distinct token probabilities."""

    def make(causal: bool) -> HatcheryModel:
        network = small_model(VOCABULARY, causal=causal).eval()
        torch.manual_seed(3)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        model = HatcheryModel(network, SimpleNamespace(cls_id=1, end_ids=[2], mask_id=4), CPU)

        def encode(texts, words=False, given=None, official=False):
            found = [tuple(map(int, text.split())) for text in texts]
            return [
                EncodedSentence(ids, given=len(text[:before].split()))
                for ids, text, before in zip(found, texts, given or [0] * len(texts), strict=True)
            ]

        model.encode = encode
        return model

    return make


def drawn_items(count: int) -> list[Item]:
    """Return pairs of random sentences that differ in one token; every fifth item has three endings of one prefix."""
    draw = np.random.default_rng(7)
    items = []
    for number in range(count):
        ids = draw.integers(7, VOCABULARY, size=10)
        if number % 5:
            other = ids.copy()
            other[draw.integers(10)] = draw.integers(7, VOCABULARY)
            candidates = tuple(Candidate(" ".join(map(str, one))) for one in (ids, other))
        else:
            prefix = " ".join(map(str, ids))
            candidates = tuple(Candidate(f" {one} {one + 1}", prefix) for one in draw.integers(7, 50, size=3))
        items.append(Item(f"p{number % 3}", "f", str(number), candidates))
    return items


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("per_token", [False, True])
def test_decisions_are_those_of_fp32(uneven, monkeypatch, causal, per_token) -> None:
    monkeypatch.setattr(score_suite, "computes_bf16_fast", lambda device: True)
    seeds: list[int] = []
    monkeypatch.setattr(score_suite, "screened", lambda *of: seeds.append(of[-1]) or screened(*of))
    model, suite = uneven(causal), score_suite.Suite(drawn_items(250))
    found = {
        precision: score_suite.score(
            model,
            suite,
            ScoringSettings(suite="mine", precision=precision, per_token=per_token, seed=3),
            EvaluationRuntime(tokens_per_batch=512),
        )
        for precision in ("fp32", "screened")
    }
    assert seeds == [3]
    full, quick = (found[name].tables["scores.parquet"] for name in ("fp32", "screened"))
    assert quick["outcome"].to_pylist() == full["outcome"].to_pylist()
    assert found["screened"].frame("accuracy.csv").equals(found["fp32"].frame("accuracy.csv"))
    facts, in_fp32 = found["screened"].facts["screening"], np.array(quick["in_fp32"])
    assert facts["computed_twice"] == round(in_fp32.mean(), 6)
    assert 64 < in_fp32.sum() < 0.9 * 250, "the sample and close items"

    assert "screening" not in found["fp32"].facts and "in_fp32" not in full.column_names
    errors = []
    for own, other, exact in zip(quick["scores"].to_pylist(), full["scores"].to_pylist(), in_fp32, strict=True):
        differences = np.array(own) - np.array(other)
        errors.append(np.ptp(differences))
        assert (np.abs(differences).max() < 1e-5) == exact, "clear items have scores in bf16"
    assert 0 < max(errors) < facts["bound"], "the bound holds for the items that were never computed in fp32"


def test_without_instructions_for_bf16_everything_is_computed_in_fp32(uneven, monkeypatch) -> None:
    monkeypatch.setattr(score_suite, "computes_bf16_fast", lambda device: False)
    suite = score_suite.Suite(drawn_items(20))
    settings = ScoringSettings(suite="mine", precision="screened"), ScoringSettings(suite="mine")
    quick, full = (score_suite.score(uneven(False), suite, one, EvaluationRuntime()) for one in settings)
    assert quick.tables["scores.parquet"].equals(full.tables["scores.parquet"]) and quick.facts == full.facts


def test_normalisers_in_bf16_are_those_of_rounded_products(monkeypatch) -> None:
    monkeypatch.setattr(likelihoods, "ITEMS_PER_TILE", 7)
    draw = torch.Generator().manual_seed(1)
    features, weight, bias = (torch.randn(shape, generator=draw) for shape in ((5, 16), (20, 16), (20,)))
    of, targets = torch.tensor([0, 2, 4]), torch.tensor([3, 19, 8])
    with in_bf16(CPU):
        found = likelihoods.tiled_log_probabilities(features, weight, bias, of, targets)
    exact = torch.log_softmax(features.double() @ weight.double().T + bias.double(), dim=-1)[of, targets]
    assert found.dtype == torch.float32 and found.tolist() == pytest.approx(exact.tolist(), abs=0.03)
    assert found.tolist() != pytest.approx(exact.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        {"temperatures": True},
        {"format": "wug", "edition": 2026},
        {"track": "multilingual", "edition": 2026, "format": "multiple_choice"},
    ],
)
def test_evaluations_that_report_scores_are_not_screened(given) -> None:
    with pytest.raises(ConfigError, match=r"precision: got 'screened', expected fp32 or tf32, because the format wug"):
        ScoringSettings(suite="mine", precision="screened", **given)
    ScoringSettings(suite="mine", **given)


def test_accuracies_compare_with_those_of_fp32() -> None:
    def basis_in(precision: str) -> str:
        measures = {"scoring": "pll", "architecture": "masked"}
        made = SimpleNamespace(
            stage="pretrain", settings={"seed": 0, "precision": precision}, measures=measures, inputs={"source": "1"}
        )
        return basis_of_suite(Evaluated(made, made, "mine"), 10)

    assert basis_in("screened") == basis_in("fp32") != basis_in("tf32")
