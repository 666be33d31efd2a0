"""What folds out below a run on the page: its losses and settings, and nothing of when and where it was."""

import json
import re
from pathlib import Path

import pytest
from page_links import read_page
from page_site import METRICS, Site
from test_page import ROWS

from hatchery.artifacts.atomic import write_text
from hatchery.errors import ManifestError
from hatchery.units import number, power


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def details_of(site: Site, run: str) -> str:
    """The fold-out of a run as HTML."""
    return site.write(ROWS).partition(f'<div id="run-{run}">')[2].partition("</details>")[0]


def rows_of(html: str) -> dict[str, str]:
    rows = re.findall(r'<th scope="row">(.*?)</th><td[^>]*>(.*?)</td>', html.replace("<wbr>", ""), re.DOTALL)
    return {name: value.strip() for name, value in rows}


def test_settings_of_all_runs_stand_once_and_those_that_differ_below_each(site: Site) -> None:
    site.add_run("ltg", METRICS)
    site.add_run("elc", METRICS, {"optimizer": {"name": "lamb", "learning_rate": 0.007}, "precision": "bf16"})
    assert rows_of(details_of(site, "elc-s1")) == {
        "FLOPs of training": "5.00e6",
        "optimizer.learning_rate": "0.007",
        "precision": "bf16",
    }
    assert rows_of(details_of(site, "ltg-s1")) == {"FLOPs of training": "5.00e6", "optimizer.learning_rate": "0.005"}
    shared = rows_of(
        site.page.read_text(encoding="utf-8").partition("<summary>Settings that all")[2].partition("</details>")[0]
    )
    assert shared["model.hidden_size"] == "16" and shared["optimizer.name"] == "lamb"


def test_a_model_that_was_only_initialised_does_not_keep_others_from_sharing(site: Site) -> None:
    site.add_run("elc", METRICS)
    site.add_run("random", settings={"optimizer": None, "batch_size": 4})
    assert "batch_size" not in rows_of(details_of(site, "elc-s1"))
    assert rows_of(details_of(site, "random-s1"))["optimizer"] == "null"
    shared = rows_of(
        site.page.read_text(encoding="utf-8").partition("<summary>Settings that all")[2].partition("</details>")[0]
    )
    assert shared["optimizer.name"] == "lamb"


def test_losses_are_drawn_from_the_first_step_to_the_last_within_the_frame(site: Site) -> None:
    site.add_run("elc", METRICS)
    html = details_of(site, "elc-s1")
    lines = dict(re.findall(r'<polyline class="(\w+)" points="([^"]+)"', html))
    # Training losses 8, 7 and 6 at steps 1 to 3, on 130 units; one development loss of 6.5.
    assert lines == {"training": "133.3,0.0 266.7,65.0 400.0,130.0", "development": "400.0,97.5"}
    assert "8 nats" in html and "6 nats" in html


def test_long_runs_are_drawn_with_a_hundred_points(site: Site) -> None:
    site.add_run("elc", [{"step": step, "tokens": step, "loss": 9.0 - step / 1000} for step in range(1, 5001)])
    (points,) = re.findall(r'points="([^"]+)"', details_of(site, "elc-s1"))
    assert len(points.split()) == 100


def test_a_model_that_was_not_trained_has_no_drawing(site: Site) -> None:
    site.add_run("random")
    assert "<polyline" not in details_of(site, "random-s1")


def test_what_was_continued_and_stopped_early_is_told(site: Site) -> None:
    initial = {"take": "weights", "earlier_steps": 70, "earlier_tokens": 9000}
    stopping = {"stopped_early": True, "exported_step": 2, "best_development_loss": 6.25}
    site.add_run("elc", METRICS, measures={"initial_model": initial, "early_stopping": stopping})
    rows = rows_of(details_of(site, "elc-s1"))
    assert rows["initial_model.earlier_steps"] == "70"
    assert rows["early_stopping.exported_step"] == "2"
    assert "384 + 9,000 before" in read_page(site.page).text


def test_the_page_does_not_change_when_the_same_work_is_done_again(site: Site) -> None:
    manifest = site.add_run("elc", METRICS)
    first = site.write(ROWS)
    write_text(manifest.with_name("provenance.json"), json.dumps({"host": "another", "wall_seconds": 3.0}))
    assert site.write(ROWS) == first


def test_an_altered_manifest_is_refused(site: Site) -> None:
    manifest = site.add_run("elc", METRICS)
    site.write(ROWS)
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("0.005", "0.006"), encoding="utf-8")
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        site.write(ROWS)


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
