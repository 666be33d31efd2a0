"""Tables of the page: bold numbers, intervals, and the details below a run."""

import re
from pathlib import Path
from typing import Any

import pytest
from page_links import read_page
from page_site import METRICS, ROWS, Site, two_runs

from hatchery.units import number, power
from hatchery.views.page_runs import pretrained_on, runs


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return two_runs(tmp_path)


def test_the_best_number_of_a_row_is_bold_and_ties_and_single_models_are_not(site: Site) -> None:
    rows = [
        "elc,blimp,agreement,accuracy_percent,61.0400,0.0,2,0,,0,,,,,",
        "elc,blimp,islands,accuracy_percent,50.0000,0.0,2,0,,0,,,,,",
        "elc,pretraining,development,perplexity,9.0000,0.0,2,0,,0,,,,,",
        "ltg,blimp,agreement,accuracy_percent,61.0100,0.0,2,0,,0,,,,,",
        "ltg,blimp,islands,accuracy_percent,50.1000,0.0,2,0,,0,,,,,",
        "ltg,pretraining,development,perplexity,8.0000,0.0,2,0,,0,,,,,",
        "roberta,blimp,agreement,accuracy_percent,60.0000,0.0,2,0,,0,,,,,",
        "roberta,blimp,only,accuracy_percent,60.0000,0.0,2,0,,0,,,,,",
    ]
    # Numbers that are equal after rounding tie, lower perplexity is better, and a number without rivals is not bold.
    assert best_of(site.write(rows)) == {
        "elc-blimp-agreement-accuracy_percent",
        "ltg-blimp-agreement-accuracy_percent",
        "ltg-blimp-islands-accuracy_percent",
        "ltg-pretraining-development-perplexity",
    }


def best_of(page: str) -> set[str]:
    return set(re.findall(r'<strong class="best"><a href="provenance\.html#row-([^"]+)"', page))


@pytest.mark.parametrize(
    ("numbers", "bold"),
    [
        # With several seeds, noise combines both deviations. Numbers within noise of the best are bold, unless all are.
        ((("80.0", "1.0", "|,"), ("79.0", "0.1", "|,"), ("78.9", "0.2", "|,")), "ab"),
        ((("80.0", "1.0", "|,"), ("79.5", "0.1", "|,")), ""),
        ((("80.0", "1.0", "|,"), ("75.0", "4.0", "|,")), "a"),
        ((("80.0", "1.0", "|,"), ("75.0", "5.0", "|,"), ("70.0", "0.1", "|,")), "ab"),
        # Models with one pretraining seed are never bold, and no number is bold if such a model is within noise of the
        # best: an unknown deviation counts as the best model's (noise 1.41), a sampling deviation 1.96 times (noise
        # 2.2).
        ((("80.0", "1.0", "|,"), ("78.7", "", "|,"), ("60.0", "", "|,")), ""),
        ((("80.0", "1.0", "|,"), ("78.5", "", "|,"), ("60.0", "", "|,")), "a"),
        ((("80.0", "1.0", "|,"), ("77.9", "", "|1.0,"), ("60.0", "1.0", "|,")), ""),
        ((("80.0", "1.0", "|,"), ("77.7", "", "|1.0,"), ("60.0", "1.0", "|,")), "a"),
        ((("80.0", "", "|1.0,"), ("60.0", "", "|1.0,")), ""),
        ((("80.0", "", "|,"), ("60.0", "1.0", "|,")), ""),
        # No number is bold unless the best number beats a blind guess beyond noise.
        ((("49.0", "0.5", "|,50.0"), ("45.0", "0.5", "|,50.0")), ""),
        ((("50.4", "0.5", "|,50.0"), ("45.0", "0.5", "|,50.0")), ""),
        ((("50.6", "0.5", "|,50.0"), ("45.0", "0.5", "|,50.0")), "a"),
    ],
)
def test_a_number_is_bold_only_beyond_noise_and_a_blind_guess(site: Site, numbers: Any, bold: str) -> None:
    rows = [
        f"{name},blimp,agreement,accuracy_percent,{mean},{std},{2 if std else 1},0,,0,,,,,{noise}"
        for name, (mean, std, noise) in zip("abc", numbers, strict=False)
    ]
    assert best_of(site.write(rows)) == {f"{name}-blimp-agreement-accuracy_percent" for name in bold}


@pytest.mark.parametrize(
    ("numbers", "bold"),
    [
        # Two of b's three runs failed. In the first row, b is as good as a without these runs.
        ((("96.0", "2.5", 0, ""), ("66.0", "26.9", 2, "97.0"), ("56.0", "3.0", 0, "")), "ab"),
        ((("96.0", "2.5", 0, ""), ("66.0", "26.9", 2, "80.0"), ("56.0", "3.0", 0, "")), "ab"),
        ((("96.0", "2.5", 0, ""), ("66.0", "12.0", 2, "80.0"), ("56.0", "3.0", 0, "")), "a"),
        # Without its failed runs, b is within the noise of a.
        ((("96.0", "2.5", 0, ""), ("66.0", "2.5", 2, "95.0"), ("56.0", "3.0", 0, "")), "ab"),
        # A best number may be due to failed runs with constant predictions, such as 61.4 on WSC.
        ((("61.4", "0.1", 2, "55.0"), ("58.0", "0.5", 0, ""), ("50.0", "0.5", 0, "")), "ab"),
    ],
)
def test_where_runs_failed_a_number_is_below_the_best_only_with_and_without_them(
    site: Site, numbers: Any, bold: str
) -> None:
    rows = [
        f"{name},glue,rte,accuracy_percent,{mean},{std},3,{failed},{without},0,,,,,"
        for name, (mean, std, failed, without) in zip("abc", numbers, strict=True)
    ]
    assert best_of(site.write(rows)) == {f"{name}-glue-rte-accuracy_percent" for name in bold}


def test_a_perplexity_above_that_of_word_frequencies_is_no_best_and_their_column_stands_beside_it(site: Site) -> None:
    rows = [
        f"{name},pretraining,development,perplexity,{value}.0,1.0,2,0,,0,,,,,|,{blind}"
        for name, value, blind in (("ltg", 310, 300.2), ("elc", 400, 300.2))
    ]
    text = site.write(rows)
    assert best_of(text) == set()
    assert '<th scope="col" class="number">blind guess</th>' in text
    assert ">300.20</td>" in text
    assert best_of(site.write([row.replace("310", "290") for row in rows])) == {
        "ltg-pretraining-development-perplexity"
    }


def test_blind_guesses_that_differ_between_models_are_told_from_the_lowest_to_the_highest(site: Site) -> None:
    guesses = {"ltg": 50.0, "elc": 20.0, "roberta": 25.0}
    site.write([f"{name},blimp,a,accuracy_percent,60.0,1.0,2,0,,0,,,,,|,{guess}" for name, guess in guesses.items()])
    assert read_page(site.page).text.count(" n=2 20.0 to 50.0") == 2


def test_a_single_run_of_minimal_pairs_has_an_interval(site: Site) -> None:
    site.write(["ltg,blimp,agreement,accuracy_percent,99.0,,1,0,,0,,,,,|1.0,50.0"])
    assert "99.0 97.0 to 100.0, n=1" in read_page(site.page).text


@pytest.fixture
def empty_site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def details_of(site: Site, run: str) -> str:
    """Return the HTML of a run's details."""
    return site.write(ROWS).partition(f'<div id="run-{run}">')[2].partition("</details>")[0]


def shared_settings(site: Site) -> dict[str, str]:
    text = site.page.read_text(encoding="utf-8")
    return rows_of(text.partition("<summary>Settings that all")[2].partition("</details>")[0])


def rows_of(html: str) -> dict[str, str]:
    rows = re.findall(r'<th scope="row">(.*?)</th><td[^>]*>(.*?)</td>', html.replace("<wbr>", ""), re.DOTALL)
    return {name: value.strip() for name, value in rows}


def test_settings_of_all_runs_stand_once_and_those_that_differ_below_each(empty_site: Site) -> None:
    empty_site.add_run("ltg", METRICS)
    empty_site.add_run("elc", METRICS, {"optimizer": {"name": "lamb", "learning_rate": 0.007}, "precision": "bf16"})
    assert rows_of(details_of(empty_site, "elc-s1")) == {
        "FLOPs of training": "5.00e6",
        "optimizer.learning_rate": "0.007",
        "precision": "bf16",
    }
    assert rows_of(details_of(empty_site, "ltg-s1")) == {
        "FLOPs of training": "5.00e6",
        "optimizer.learning_rate": "0.005",
    }
    shared = shared_settings(empty_site)
    assert shared["model.hidden_size"] == "16" and shared["optimizer.name"] == "lamb"


def test_a_model_that_was_only_initialised_does_not_keep_others_from_sharing(empty_site: Site) -> None:
    empty_site.add_run("elc", METRICS)
    empty_site.add_run("random", settings={"optimizer": None, "batch_size": 4})
    assert "batch_size" not in rows_of(details_of(empty_site, "elc-s1"))
    assert rows_of(details_of(empty_site, "random-s1"))["optimizer"] == "null"
    shared = shared_settings(empty_site)
    assert shared["optimizer.name"] == "lamb"


def test_losses_are_drawn_from_the_first_step_to_the_last_within_the_frame(empty_site: Site) -> None:
    empty_site.add_run("elc", METRICS)
    html = details_of(empty_site, "elc-s1")
    lines = dict(re.findall(r'<polyline class="(\w+)" points="([^"]+)"', html))
    # Training losses 8, 7 and 6 at steps 1 to 3 are drawn over a height of 130 units; the one development loss is 6.5.
    assert lines == {"training": "133.3,0.0 266.7,65.0 400.0,130.0", "development": "400.0,97.5"}
    assert "8 nats" in html and "6 nats" in html
    assert 'aria-label="Losses of elc, seed 1 from 8 to 6"' in html


def test_long_runs_are_drawn_with_a_hundred_points(empty_site: Site) -> None:
    empty_site.add_run("elc", [{"step": step, "tokens": step, "loss": 9.0 - step / 1000} for step in range(1, 5001)])
    (points,) = re.findall(r'points="([^"]+)"', details_of(empty_site, "elc-s1"))
    assert len(points.split()) == 100


def test_a_model_that_was_not_trained_has_no_drawing(empty_site: Site) -> None:
    empty_site.add_run("random")
    assert "<polyline" not in details_of(empty_site, "random-s1")


def test_what_was_continued_and_stopped_early_is_told(empty_site: Site) -> None:
    initial = {"take": "weights", "earlier_steps": 70, "earlier_tokens": 9000}
    stopping = {"stopped_early": True, "exported_step": 2, "best_development_loss": 6.25}
    empty_site.add_run("elc", METRICS, measures={"initial_model": initial, "early_stopping": stopping})
    rows = rows_of(details_of(empty_site, "elc-s1"))
    assert rows["initial_model.earlier_steps"] == "70"
    assert rows["early_stopping.exported_step"] == "2"
    assert "384 + 9,000 before" in read_page(empty_site.page).text


def test_the_days_of_training_are_from_the_first_to_the_last() -> None:
    days = ("2024-03-01", None, "2024-02-29", "soon", "2024-03-02")
    assert pretrained_on([{"day": day} for day in days]) == "from 29 February 2024 to 2 March 2024"
    assert pretrained_on([{"day": None}]) == ""


def test_only_the_first_runs_are_listed_each_with_its_losses_and_its_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hatchery.views.page_runs.RUNS_SHOWN", 2)
    losses = {"loss": 2.5, "development_loss": 3.5, "development_perplexity": 33.1154, "development_bits_per_byte": 1.2}
    counts = {"parameters": 1000, "steps": 20, "tokens": 3000, "initial": "", "label": "m"}
    rows = [losses | counts | {"run": f"m-s{seed}", "seed": seed, "manifest": f"{seed}" * 64} for seed in (1, 2, 3)]
    # The first run has a section, and only the second run's manifest is on the provenance page.
    made = runs(rows, ["m-s1"], Path("r/provenance.html"), Path("r/index.html"), {"2" * 64})
    assert made.headings[4:8] == ["last training loss", "development loss", "perplexity", "bits per byte"]
    cells = [list(row.cells) for row in made.rows]
    assert [row[1:-1] for row in cells] == [["1,000", "20", "3,000", "2.500", "3.500", "33.115", "1.200"]] * 2
    assert [(row[0].text, row[0].link) for row in cells] == [("m, seed 1", "#run-m-s1"), ("m, seed 2", "")]
    begun = rows[0] | {"initial": "weights", "earlier_tokens": None}
    assert next(iter(runs([begun], [], Path("p"), Path("i"), ()).rows)).cells[3] == "3,000 + unknown before"
    links = ["provenance.html", f"provenance.html#m-{'2' * 12}"]
    assert [(row[-1].text, row[-1].link) for row in cells] == list(zip(["1" * 12, "2" * 12], links, strict=True))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (power("77200000000000000000"), "7.72e19"),
        (power(0.0), "-"),
        (number(345.5001), "345.5"),
        (number(12345.6), "12,346"),
    ],
)
def test_numbers_are_told_in_units_that_people_grasp(shown: str, expected: str) -> None:
    assert shown == expected
