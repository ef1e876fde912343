"""The sample of a card: even, seeded, and the same in whatever order samples come."""

import random
from collections import Counter

import pytest

from tests.refusals import refusal
from vieval_plugin.card.plan import (
    PlannedCalls,
    draw_sample,
    even_sizes,
    require_budget,
)
from vieval_plugin.judges.protocol import Sample, SampleId

CELLS = {("tie", "A"): 40, ("tie", "B"): 40, ("tig", "A"): 12, ("sdie", "C"): 30}
SAMPLES = [
    Sample(SampleId("b", part, model, f"u{number}"), {})
    for (part, model), size in CELLS.items()
    for number in range(size)
]


def cells(samples):
    return Counter((sample.id.part, sample.id.image_model) for sample in samples)


def test_cells_are_filled_evenly_as_far_as_they_go():
    assert set(cells(draw_sample(SAMPLES, 40, 0)).values()) == {10}
    drawn = cells(draw_sample(SAMPLES, 80, 0))
    assert drawn["tig", "A"] == 12
    assert sorted(drawn.values())[1:] in ([22, 23, 23],)
    assert len(draw_sample(SAMPLES, 1000, 0)) == len(SAMPLES)


def test_the_order_of_samples_changes_nothing_and_the_seed_does():
    shuffled = random.Random(0).sample(SAMPLES, len(SAMPLES))
    assert draw_sample(shuffled, 50, 0) == draw_sample(SAMPLES, 50, 0)
    assert draw_sample(SAMPLES, 50, 0) != draw_sample(SAMPLES, 50, 1)


def test_a_larger_sample_holds_a_smaller_one():
    small, large = (
        {sample.id for sample in draw_sample(SAMPLES, n, 0)} for n in (40, 60)
    )
    assert small <= large


@pytest.mark.parametrize("seed", range(20))
def test_sizes_differ_by_one_at_most_where_there_is_room(seed):
    rng = random.Random(seed)
    capacities = [rng.randint(0, 30) for _ in range(rng.randint(1, 12))]
    n = rng.randint(0, sum(capacities) + 5)
    sizes = even_sizes(capacities, n, seed)
    assert sum(sizes) == min(n, sum(capacities))
    pairs = list(zip(sizes, capacities, strict=True))
    assert all(size <= capacity for size, capacity in pairs)
    room = [size for size, capacity in pairs if size < capacity]
    assert not room or max(sizes) - min(room) <= 1


def test_a_budget_counts_what_is_not_stored():
    calls = [PlannedCalls("one", 40, 100), PlannedCalls("other", 10, 10)]
    require_budget(calls, 50)
    require_budget(calls, None)
    assert "requires 50 calls, but --budget is 49" in refusal(require_budget, calls, 49)
