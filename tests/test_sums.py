from hatchery.sums import plain_sum


def test_floats_are_added_one_by_one_whatever_sum_does_in_this_python() -> None:
    # Python 3.12's `sum` gives 1.0.
    assert plain_sum([0.1] * 10) == 0.9999999999999999
    assert plain_sum([]) == 0.0
