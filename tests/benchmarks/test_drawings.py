"""Drawings for training and for the held-out test: nothing is in both, and nothing of vieval_demo is trained on."""

from dataclasses import fields, replace

import numpy as np
import pytest

from bench.vieval_small.synthetic.samples import KINDS, case, draw_with_defect, several
from bench.vieval_small.synthetic.worlds import HELD_OUT
from bench.vieval_small.unseen import SEED
from bench.vieval_small.world import TRAINED
from tests.extras import needs
from vieval_plugin.benchmarks.vieval_demo import INSTRUCTIONS, scenes
from vieval_plugin.benchmarks.vieval_demo.backgrounds import PHOTOGRAPHS, PLACES

needs_photographs = needs("skimage", "sklearn", "matplotlib", "pywt")


def kinds_of(world, name):
    held = getattr(world, name)
    if callable(held) or isinstance(held, float):
        return {held}
    return {defect for some in held.values() for defect in some} if name == "defects" else set(held)


@pytest.mark.parametrize("name", [field.name for field in fields(TRAINED)])
def test_the_two_worlds_share_nothing(name):
    # the names of two defects stand for changes of their own in each world, which share nothing either
    shared = kinds_of(TRAINED, name) & kinds_of(HELD_OUT, name)
    assert shared <= ({"surroundings", "outlines"} if name == "defects" else set())


@needs_photographs
def test_strange_places_are_words_alone():
    """Their stream is apart, so that a prompt may name another place and the pictures stay what they are."""
    plain = replace(TRAINED, rename=HELD_OUT.rename)
    both = [list(several(world, "tig", 5, 6, 1)) for world in (TRAINED, plain)]
    prompts = [[asked.texts["prompt"] for asked, _ in some] for some in both]
    assert sum(a != b for a, b in zip(*prompts, strict=True)) > 2
    pictures = [[np.asarray(made.picture) for _, [made] in some] for some in both]
    assert all(np.array_equal(a, b) for a, b in zip(*pictures, strict=True))


def test_no_background_of_the_demo_is_drawn_on():
    files = {f"skimage/data/{file}" for file, _ in PHOTOGRAPHS.values()}
    for world in (TRAINED, HELD_OUT):
        assert not files & set(world.photographs.values())
        assert not set(PLACES.values()) & set(world.places)


@needs_photographs
def test_no_instruction_of_the_demo_is_drawn():
    demo = {text for kind in KINDS for n in range(INSTRUCTIONS) for text in scenes.case(kind, n).texts.values()}
    rng = np.random.RandomState(0)
    asked = {
        case(TRAINED, kind, rng).texts[name]
        for kind, name in (("tig", "prompt"), ("mie", "instruction"), ("tie", "instruction"), ("mcic", "prompt"))
        for _ in range(15)
    }
    assert len(asked) > 55
    assert not asked & demo


@needs_photographs
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_and_another_does_not(kind):
    [one], [again], [other] = (list(several(TRAINED, kind, seed, 1, 2)) for seed in (7, 7, 8))
    pixels = [[output.picture.tobytes() for output in outputs] for _, outputs in (one, again, other)]
    assert pixels[0] == pixels[1] != pixels[2]
    assert one[0].texts == again[0].texts


@needs_photographs
@pytest.mark.parametrize("world", [TRAINED, HELD_OUT], ids=["trained", "held out"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_defect_of_content_changes_the_picture(kind, world):
    rng = np.random.RandomState(SEED if world is HELD_OUT else 0)
    asked = case(world, kind, rng)
    whole, none = draw_with_defect(asked, asked.defects[0], 0, np.random.RandomState(1))
    assert none == 0
    for defect in set(asked.defects):
        spoilt, strength = draw_with_defect(asked, defect, 1, np.random.RandomState(1))
        assert strength == 1
        assert np.abs(np.asarray(whole.picture, float) - np.asarray(spoilt.picture, float)).max() > 20, defect


@pytest.mark.parametrize(
    "defect", dict.fromkeys((*TRAINED.quality, *HELD_OUT.quality)), ids=lambda defect: defect.__name__
)
def test_a_stronger_defect_of_quality_is_farther_from_the_picture(defect):
    x = np.random.RandomState(3).uniform(40, 200, (16, 16, 3)).repeat(16, 0).repeat(16, 1)
    away = [
        np.mean(
            [np.abs(np.clip(defect(x.copy(), s, np.random.RandomState(seed)), 0, 255) - x).mean() for seed in range(4)]
        )
        for s in (0.1, 0.4, 1)
    ]
    assert away == sorted(away)
    assert away[0] < 0.8 * away[2]
