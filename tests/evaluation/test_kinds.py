"""The kinds of evaluation, in the order in which tables and summaries list them."""

from hatchery.evaluation.kinds import evaluations


def test_kinds_are_in_the_order_of_their_places_and_of_their_names_at_one_place() -> None:
    kinds = ["perplexity", "translation", "minimal_pairs", "surprisal", "reading", "acquisition", "reading_times"]
    assert list(evaluations()) == [*kinds, "finetuning"]
