"""The leaderboard of six published logs: no number depends on a third judge."""

import pytest

from tests.six_logs import board, six_runs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(shared_data):
    return six_runs(shared_data)


def require_equal(more, fewer):
    """No estimate, interval or test of the fewer judges is another among more."""
    for number in fewer.numbers:
        one, again = number.estimate, more.number_of(number.system).estimate
        assert (one.value, one.low, one.high) == (again.value, again.low, again.high)
    for pair in fewer.comparison.all_pairs:
        found = more.comparison.pair_of(pair.first, pair.second).result
        assert found == pair.better_first().result


def test_numbers_of_two_are_the_same_with_and_without_a_third(runs):
    labels = ("gpt4o_0shot", "gpt4v_0shot", "llava_0shot")
    three = [runs[label] for label in labels]
    with_llava = board(three)
    require_equal(with_llava, board(three[:2]))
    assert [number.system for number in with_llava.ranked] == [*labels[:2]]


@pytest.mark.extras
def test_numbers_of_five_are_the_same_with_and_without_a_sixth(runs):
    """Their ranks and marks are in `tests/approved/test_pages`."""
    six = board(list(runs.values()))
    found = six.comparison.pair_of("gpt4o_0shot", "gpt4o_1shot").result.p
    assert found == pytest.approx(0.011, abs=0.005)
    five = [run for label, run in runs.items() if label != "llava_0shot"]
    require_equal(six, board(five))
