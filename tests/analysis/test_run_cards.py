"""A run card says what was trained, what it cost and where it ran; only its two volatile sections change."""

import json
from pathlib import Path

import pytest
from page_links import read_page
from page_site import CARD, Site

from hatchery.analysis.read_tables import read_runs
from hatchery.artifacts.atomic import write_text
from hatchery.errors import EvaluationError, ManifestError
from hatchery.units import duration, mebibytes, number, power
from hatchery.views.pages.runs import runs
from hatchery.views.run_cards.facts import read_run
from hatchery.views.run_cards.stage import write_run_card

METRICS = [
    {"step": step, "tokens": 128 * step, "loss": 9.0 - step, "learning_rate": 0.001 * step, "gradient_norm": 2.0}
    for step in (1, 2, 3, 4)
]
METRICS[3] |= {"development_loss": 6.5, "development_perplexity": 665.1416}
PROBED = [{"step": 0, "tokens": 0, "kl_unigram": 3.5, "kl_uniform": 0.25}]
PROBED += [row | {"kl_unigram": 3.5 - 0.5 * row["step"], "kl_uniform": 0.25} for row in METRICS]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def card_of(site: Site, run: str) -> tuple[str, str, str]:
    """Text of the page, Markdown and drawing."""
    card = site.write_card(run)
    return (
        read_page(card).text,
        card.with_suffix(".md").read_text(encoding="utf-8"),
        card.with_suffix(".svg").read_text(encoding="utf-8"),
    )


def test_the_card_tells_settings_cost_results_and_digests(site: Site) -> None:
    manifest = site.add_run("elc", METRICS, {"precision": None})
    words, markdown, drawing = card_of(site, "elc-s1")
    for told in (
        "Run card: elc-s1 of demo A model.",
        "parameters 12,345",
        "tokens seen 512",
        "training loss at the last step (nats) 5",
        "development perplexity 665.1",
        "FLOPs of training 5.00e6",
        "planned for 1 x cpu at 30 % of the peak",
        "time in the training loop 2 min 05 s (125.0 s)",
        "tokens per second 1,024.5",
        # 5,000,000 operations in 125 s.
        "FLOPs per second (estimated FLOPs / time in the loop) 4.00e4",
        "hidden_size 16",
        "learning_rate 0.005",
        "precision none",
    ):
        assert told in words
    assert "| tokens seen | 512 |" in markdown.replace("\\", "")
    run = read_run("elc-s1", manifest)
    assert run.manifest.digest in words
    assert all(output.sha256 in words for output in run.manifest.outputs)
    assert markdown.count(run.manifest.digest) == 1
    assert "<svg" in drawing
    assert "Divergences" not in words


def test_divergences_are_told_where_they_were_measured(site: Site) -> None:
    site.add_run("elc", PROBED)
    words, _, _ = card_of(site, "elc-s1")
    assert "KL(unigram, model) 5 3.5000 (0) 1.5000 (4)" in words
    assert "KL(uniform, model) 5 0.2500 (0) 0.2500 (4)" in words
    assert "KL(label, model)" not in words


def test_a_model_that_was_not_trained_has_a_card_without_curves(site: Site) -> None:
    site.add_run("random")
    words, _, drawing = card_of(site, "random-s1")
    assert "The model was initialised and not trained: a baseline." in words
    assert "Nothing was measured" in words
    assert "<title>not trained</title>" in drawing
    assert "training loss" not in words


def test_speed_and_memory_of_the_device_come_from_the_log_of_the_machine(site: Site) -> None:
    manifest = site.add_run("elc", METRICS)
    rows = [{"step": 2, "mfu": 0.2, "peak_memory_mib": 12288.0}, {"step": 4, "mfu": 0.4, "peak_memory_mib": 10.0}]
    write_text(manifest.with_name("speed.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    words, _, _ = card_of(site, "elc-s1")
    assert "FLOPs utilisation of the device (MFU) 30 %" in words
    assert "peak memory of the first device 12.0 GiB" in words


def test_a_resumed_run_says_what_its_times_leave_out(site: Site) -> None:
    manifest = site.add_run("elc", METRICS)
    write_text(manifest.with_name("provenance.json"), json.dumps({"resumed_from_step": 3, "training_seconds": 9.5}))
    words, _, _ = card_of(site, "elc-s1")
    assert "The last attempt went on from step 3: its times leave out what came before." in words
    assert "FLOPs per second" not in words


def test_only_the_volatile_sections_change_when_the_work_is_done_again(site: Site) -> None:
    manifest = site.add_run("elc", METRICS)
    first = site.write_card("elc-s1").read_text(encoding="utf-8")
    facts = {"host": "another", "wall_seconds": 3.0, "nodes": 4, "packages": {"torch": "9.9"}}
    write_text(manifest.with_name("provenance.json"), json.dumps(facts))
    second = site.write_card("elc-s1").read_text(encoding="utf-8")

    def lasting(page: str) -> list[str]:
        parts = page.split('<section aria-labelledby="')
        volatile = ("resources-used", "checkpoints", "hardware-and-software")
        return [part for part in parts if not part.startswith(volatile)]

    assert first != second
    assert lasting(first) == lasting(second)
    words = read_page(site.results / "run_cards" / "elc-s1.html").text
    # What nobody thought of when the card was written is told as well.
    assert "nodes 4" in words
    assert "torch 9.9" in words


def test_a_result_that_is_not_what_its_manifest_says_has_no_card(site: Site) -> None:
    manifest = site.add_run("elc", METRICS)
    write_text(manifest.with_name("metrics.jsonl"), "{}\n")
    with pytest.raises(ManifestError, match=r"metrics\.jsonl"):
        site.write_card("elc-s1")
    assert not (site.results / "run_cards" / "elc-s1.html").exists()


def test_an_estimate_without_the_run_is_named(site: Site) -> None:
    site.add_run("elc", METRICS)
    cost = site.write_cost()
    card = site.results / "card.html"
    settings = {**CARD, "run": {"name": "ltg-s1", "model": "ltg", "seed": 1}}
    with pytest.raises(EvaluationError, match=r"cost\.csv: there is no row of the run 'ltg-s1'"):
        write_run_card(
            settings, site.pretraining["elc-s1"], cost, card, card.with_suffix(".md"), card.with_suffix(".svg")
        )


def test_the_same_run_has_the_same_drawing(site: Site) -> None:
    site.add_run("elc", PROBED)
    assert card_of(site, "elc-s1")[2] == card_of(site, "elc-s1")[2]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (duration(4.06), "4.1 s"),
        (duration(59.6), "1 min 00 s"),
        (duration(3599.7), "1 h 00 min"),
        (duration(200_000), "2 d 08 h"),
        (power("77200000000000000000"), "7.72e19"),
        (power(0.0), "-"),
        (mebibytes(851.0), "851 MiB"),
        (number(345.5001), "345.5"),
        (number(12345.6), "12,346"),
    ],
)
def test_numbers_are_told_in_units_that_people_grasp(shown: str, expected: str) -> None:
    assert shown == expected


def test_the_card_and_the_page_say_what_was_continued_and_that_it_stopped_early(site: Site) -> None:
    stopping = {"stopped_early": True, "exported_step": 2, "best_step": 2, "best_development_loss": 6.25}
    initial = {"take": "weights", "earlier_steps": 70, "earlier_tokens": 9000}
    measures = {"initial_model": initial, "early_stopping": stopping}
    site.add_run("elc", METRICS, {"steps": 10}, measures)
    words, _, _ = card_of(site, "elc-s1")
    for told in (
        "started from the weights of a model",
        "optimiser steps, before them in that model 70",
        "tokens seen, before them in that model 9,000",
        "stopped early after step 4 of 10",
        "weights are those after step 2",
        "lowest development loss (nats) 6.25 after step 2",
    ):
        assert told in words
    # The estimate is that of all ten steps.
    assert "FLOPs per second" not in words
    table = runs(read_runs(site.write_runs()), {}, site.results / "provenance.html", site.results / "index.html")
    assert "512 + 9,000 before" in table.html()


def test_the_card_of_a_sweep_is_called_by_what_differs(site: Site) -> None:
    site.add_run("elc", METRICS)
    card = site.write_card("elc-s1", label="elc, learning_rate 0.005")
    assert "Run card: elc, learning_rate 0.005, seed 1 of demo" in read_page(card).text
