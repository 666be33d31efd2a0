"""What is bold on the page: the best of a row, as far as it is beyond noise and a blind guess; and intervals."""

import re
from pathlib import Path
from typing import Any

import pytest
from page_links import read_page
from page_site import Site, two_runs


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
    # What looks the same is as good; less perplexity is better; a number without rivals is not the best of any.
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
        # One deviation of the best over seeds: all within it, as in LTG-BERT's captions, but not all there are.
        ((("80.0", "1.0", "|,"), ("79.0", "0.1", "|,"), ("78.9", "3.0", "|,")), "ab"),
        ((("80.0", "1.0", "|,"), ("79.5", "0.1", "|,")), ""),
        # A single run: 1.96 x 1.4142 deviations of sampling, 2.77 here.
        ((("80.0", "", "|1.0,"), ("77.3", "", "|1.0,"), ("77.2", "", "|1.0,")), "ab"),
        ((("80.0", "", "|1.0,"), ("77.3", "", "|1.0,")), ""),
        # A single run without known noise is no best.
        ((("80.0", "", "|,"), ("60.0", "1.0", "|,")), ""),
        # No best of several that are no better than a blind guess.
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


def test_a_single_run_of_minimal_pairs_has_an_interval(site: Site) -> None:
    site.write(["ltg,blimp,agreement,accuracy_percent,99.0,,1,0,,0,,,,,|1.0,50.0"])
    assert "99.0 97.0 to 100.0, n=1" in read_page(site.page).text
