"""Test the choice of samples to label: even, proportional, seeded and fair."""

import itertools
from collections import Counter

from tests.refusals import refuses
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.labelling.choice import choose, strata, swapped


def sample(model, kind, uid, draw=0):
    return Sample(SampleId("own", kind, model, str(uid), draw), {})


def contest(models, uid):
    candidates = tuple(sample(model, "tie", uid) for model in models)
    identity = SampleId("own", "tie", "", f"{uid}#{'-'.join(models)}")
    return Contest(identity, candidates)


SAMPLES = [
    sample(m, k, uid)
    for m in "abc"
    for k, count in (("tig", 60), ("tie", 30))
    for uid in range(count)
]


def drawn(judged, count, seed=0):
    return [judged[number] for number in choose(judged, count, seed)]


def models_of(chosen):
    return Counter(one.id.image_model for one in chosen)


def test_image_models_get_as_many_labels_each_of_the_same_prompts_in_proportion():
    chosen = drawn(SAMPLES, 90)
    shares = (("tig", 20), ("tie", 10))
    assert strata(chosen) == {(kind, (m,)): n for m in "abc" for kind, n in shares}
    prompts = {(one.kind, one.id.uid) for one in chosen}
    assert len(prompts) == 30  # the same ones of each image model
    assert sorted(models_of(drawn(SAMPLES, 100)).values()) == [33, 33, 34]
    with_few = [*SAMPLES, *(sample("few", "tie", uid) for uid in range(4))]
    counted = models_of(drawn(with_few, 100))
    assert counted == {"few": 4, "a": 32, "b": 32, "c": 32}


def test_a_seed_gives_one_choice_in_one_order_whatever_the_order_of_the_file():
    chosen = drawn(SAMPLES, 20, seed=5)
    assert drawn(SAMPLES[::-1], 20, seed=5) == chosen
    assert {one.id for one in drawn(SAMPLES, 20, seed=6)} != {one.id for one in chosen}
    models = [one.id.image_model for one in drawn(SAMPLES, 270, seed=5)]
    assert models != sorted(models)


def test_every_output_is_as_likely_to_be_chosen_as_any_other():
    each = itertools.product("ab", ("tig", "tie"), range(5), range(2))
    few, seeds = [sample(*one) for one in each], 600
    times = Counter(one.id for seed in range(seeds) for one in drawn(few, 10, seed))
    # a quarter of 600: some 150, with a standard deviation of 11
    assert len(times) == len(few)
    assert all(100 < count < 200 for count in times.values())


def test_contests_are_even_over_pairs_and_sides():
    pairs = itertools.product(("ab", "ba", "bc", "ac"), range(20))
    chosen = drawn([contest(*pair) for pair in pairs], 30)
    assert strata(chosen) == {("tie", tuple(pair)): 10 for pair in ("ab", "bc", "ac")}
    sides = swapped(chosen, seed=0)
    assert sum(sides) == 15
    assert sides == swapped(chosen, seed=0)
    assert sides not in ([True] * 15 + [False] * 15, [False] * 15 + [True] * 15)


def test_more_than_there_are_is_all_of_them_and_none_are_refused():
    assert sorted(choose(SAMPLES[:7], 100, seed=0)) == list(range(7))
    refuses("no samples to label", choose, [], 5, seed=0)
