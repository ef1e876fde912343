"""The synthetic benchmark: the same everywhere, rated by its defects, and measurable where a
metric can see them.
"""

import hashlib
import importlib.util
import re
import sys
from functools import cache
from shlex import split

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.extras import needs
from tests.refusals import refusal
from tests.work import run_process
from vieval_plugin.backends.metrics.pixel_metrics import measure
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo import (
    IMAGE_MODELS,
    INSTRUCTIONS,
    NAME,
    TASKS,
    backgrounds,
    defects,
    drawing,
    plan,
    scenes,
    toys,
)
from vieval_plugin.benchmarks.vieval_demo.outputs import png, samples
from vieval_plugin.benchmarks.vieval_demo.plan import QUALITY_DEFECTS
from vieval_plugin.benchmarks.vieval_demo.spoiling import spoil
from vieval_plugin.images import decode
from vieval_plugin.judges import auto_metrics
from vieval_plugin.judges.protocol import Measure, Measurement, SampleId

CONCEPTS = ("concept_1", "concept_2")
ROLES = {
    "tig": ({"output"}, {"prompt"}),
    "mie": ({"output", "source", "mask"}, {"instruction"}),
    "tie": ({"output", "source"}, {"instruction"}),
    "sdig": ({"output", "subject"}, {"prompt", "subject"}),
    "sdie": ({"output", "source", "subject"}, {"subject"}),
    "mcic": ({"output", "concepts", *CONCEPTS}, {"prompt", *CONCEPTS}),
    "cig": ({"output", "control"}, {"prompt"}),
}

# What each metric can see. SSIM and PSNR also see whether the edit was done, but the wrong way
# round: an output that leaves the source as it was is most like it. Noise and watermarks look
# sharp. Nothing here reads tig's prompt.
SEEN = {
    "ssim": {"over_edited"},
    "psnr": {"over_edited"},
    "edge_f1": {"ignored_control"},
    "histogram": {"wrong_colour", "wrong_subject", "missing_object"},
    "sharpness": {"blur"},
}
METRICS = {metric.name: metric for metric in auto_metrics.METRICS}
PAIRS = [(metric.name, task) for metric in METRICS.values() for task in metric.kinds]

ON_TIE = ("mie", "tie", "sdie")
BY_SUBJECT = ("sdig", "sdie", "mcic")
#: How steadily the value of a metric falls at least as one defect of a task's outputs grows.
FALLS = [
    *(("ssim", task, "over_edited", 0.99) for task in ON_TIE),
    *(("psnr", task, "over_edited", 0.99) for task in ON_TIE),
    ("edge_f1", "cig", "ignored_control", 0.99),
    *(("histogram", task, "wrong_colour", 0.6) for task in BY_SUBJECT),
    *(("histogram", task, "wrong_subject", 0.5) for task in BY_SUBJECT),
    ("histogram", "mcic", "missing_object", 0.6),
]

drawn = cache(samples)


def measured(metric, task, kinds):
    """The metric's value for those samples of a task whose defect is one of `kinds`."""
    found = []
    for sample in drawn(task):
        planned = defects(sample.id)
        if {planned.content, planned.quality} & kinds:
            found.append((sample, value(metric, sample.images)))
    return found


def value(metric, images):
    roles = METRICS[metric].images
    chosen = {
        role: next(images[name] for name in names if name in images)
        for role, names in roles.items()
    }
    reply = measure(Measure(metric, chosen, (metric,)))
    assert isinstance(reply, Measurement), reply
    return reply.value


@pytest.mark.parametrize("task", TASKS)
def test_sixteen_instructions_by_three_image_models_in_order(task):
    ids = [sample.id for sample in drawn(task)]
    uids = sorted({sample_id.uid for sample_id in ids})
    assert len(uids) == INSTRUCTIONS
    found = [SampleId(NAME, task, model, uid) for uid in uids for model in IMAGE_MODELS]
    assert ids == found


def test_it_is_drawn_once_a_process(tmp_path):
    first, second = (vieval_demo.BENCHMARK.load(tmp_path, "tig") for _ in range(2))
    assert first is not second
    assert first == drawn("tig")
    assert all(a is b for a, b in zip(first, second, strict=True))
    found = {(sample.kind, sample.group == sample.id.uid) for sample in first}
    assert found == {("tig", True)}
    assert {task: len(drawn(task)) for task in TASKS} == vieval_demo.BENCHMARK.parts
    assert "These are not human ratings" in vieval_demo.BENCHMARK.note


@pytest.mark.parametrize("task", TASKS)
def test_a_sample_has_the_images_and_texts_of_its_task(task):
    images, texts = ROLES[task]
    for sample in drawn(task):
        assert set(sample.images) == images
        assert set(sample.texts) == texts
        assert all(sample.texts.values())
        for role, image in sample.images.items():
            found = decode(image).size
            assert found == ((512, 256) if role == "concepts" else (256, 256))


@pytest.mark.parametrize("task", TASKS)
def test_instructions_differ(task):
    edits = dict.fromkeys(("tie", "mie", "sdie"), "source")
    condition = {**edits, "cig": "control"}.get(task, "output")
    seen = {
        (tuple(sample.texts.values()), sample.images[condition].source)
        for sample in drawn(task)[:: len(IMAGE_MODELS)]
    }
    assert len(seen) == INSTRUCTIONS


@pytest.mark.parametrize("task", TASKS)
def test_ratings_follow_from_the_defects_by_quarters(task):
    for sample in drawn(task):
        wrong = defects(sample.id)
        [sc], [pq], [overall] = (sample.ratings[aspect] for aspect in ("SC", "PQ", "O"))
        assert abs(sc - (1 - wrong.content_strength)) <= 0.125
        assert abs(pq - (1 - wrong.quality_strength)) <= 0.125
        assert {sc % 0.25, pq % 0.25} == {0}
        assert overall == (sc * pq) ** 0.5
        assert wrong.content in plan.content_defects(task, int(sample.id.uid[5:7]))
        assert wrong.quality in QUALITY_DEFECTS


@pytest.mark.parametrize("image_model", IMAGE_MODELS)
@pytest.mark.parametrize("task", TASKS)
def test_ratings_vary_within_every_image_model(task, image_model):
    models = [sample for sample in drawn(task) if sample.id.image_model == image_model]
    rated = [sample.ratings for sample in models]
    for aspect in ("SC", "PQ", "O"):
        assert len({ratings[aspect] for ratings in rated}) >= 4
    for aspect in ("SC", "PQ"):
        assert {0.0, 1.0} <= {value for ratings in rated for value in ratings[aspect]}


def test_every_defect_occurs():
    planned = [defects(sample.id) for task in TASKS for sample in drawn(task)]
    assert {one.quality for one in planned if one.quality_strength} == set(
        QUALITY_DEFECTS
    )
    content = {wrong.content for wrong in planned if wrong.content_strength}
    assert content == set(
        split(
            "wrong_count wrong_colour missing_object edit_not_done over_edited "
            "wrong_subject ignored_control"
        )
    )


@pytest.mark.parametrize("task", TASKS)
def test_an_output_without_defects_is_what_was_asked_for(task):
    """All content defects of strength 0 give one picture, and no quality defect of strength 0
    changes it.
    """
    for index in range(0, INSTRUCTIONS, 5):
        case = scenes.case(task, index)
        kinds = plan.content_defects(task, index)
        clean = [case.draw(kind, 0.0).tobytes() for kind in kinds]
        worst = [case.draw(kind, 1.0).tobytes() for kind in kinds]
        assert set(clean) == {clean[0]}
        assert clean[0] not in worst
        for defect in QUALITY_DEFECTS:
            assert spoil(case.draw("", 0.0), defect, 0.0, seed=1).tobytes() == clean[0]


HASH_ALL = """
import hashlib, socket
from vieval_plugin.benchmarks.vieval_demo.outputs import samples
def offline(*_, **__):
    raise AssertionError("the demo went to the network")
socket.socket = socket.create_connection = socket.getaddrinfo = offline
for task in ("tig", "tie", "mcic", "cig"):
    lines = [f"{s.id} {s.texts} {s.ratings} {r} {hashlib.sha256(i.source).hexdigest()}" for s in samples(task)
             for r, i in sorted(s.images.items())]
    print(task, hashlib.sha256("\\n".join(lines).encode()).hexdigest())
"""


@needs("skimage")
def test_another_process_without_a_network_draws_the_same():
    other = run_process([sys.executable, "-c", HASH_ALL], check=True).stdout
    here = ""
    for task in ("tig", "tie", "mcic", "cig"):
        lines = [
            f"{s.id} {s.texts} {s.ratings} {role} {hashlib.sha256(image.source).hexdigest()}"
            for s in drawn(task)
            for role, image in sorted(s.images.items())
        ]
        here += f"{task} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}\n"
    assert other == here


@pytest.mark.parametrize(("metric", "task"), PAIRS)
def test_a_metric_agrees_with_the_ratings_where_it_sees_the_defect(metric, task):
    """Spearman within image models, their mean, over the outputs with a defect this metric sees.

    The other aspect's defects are in these outputs too: noise spoils SSIM though the edit is as
    asked.
    """
    aspect = METRICS[metric].aspect
    rows = measured(metric, task, SEEN[metric])
    correlations = []
    for image_model in IMAGE_MODELS:
        own = [(s, number) for s, number in rows if s.id.image_model == image_model]
        pairs = [(s.ratings[aspect][0], number) for s, number in own]
        assert len(pairs) >= 5
        correlations.append(spearmanr(*zip(*pairs, strict=True)).statistic)
    assert np.mean(correlations) > 0.3


@pytest.mark.parametrize(("metric", "task", "defect", "at_least"), FALLS)
def test_alone_a_growing_defect_lowers_the_value(metric, task, defect, at_least):
    """By Spearman on some instructions: 1 is always, -1 is rises always."""
    strengths = [0.0, 0.25, 0.5, 0.75, 1.0]
    found = []
    for index in range(0, INSTRUCTIONS, 4):
        case = scenes.case(task, index)
        conditions = {role: png(picture) for role, picture in case.conditions.items()}
        outputs = [png(case.draw(defect, strength)) for strength in strengths]
        measured = [value(metric, {**conditions, "output": one}) for one in outputs]
        found.append(-spearmanr(strengths, measured).statistic)
    assert np.mean(found) > at_least


def test_unknown_tasks_and_samples_say_what_there_is():
    line = refusal(samples, "editing")
    known = "known parts: tig, mie, tie, sdig, sdie, mcic, cig"
    assert f"'editing' of vieval_demo; {known}" in line
    known = SampleId(NAME, "tie", "demo_a", "demo_00.png")
    assert defects(known)
    for wrong in (
        SampleId("imagenhub", "tie", "demo_a", "demo_00.png"),
        SampleId(NAME, "tie", "MagicBrush", "demo_00.png"),
        SampleId(NAME, "tie", "demo_a", "demo_16.png"),
        SampleId(NAME, "editing", "demo_a", "demo_00.png"),
    ):
        assert "has no sample" in refusal(defects, wrong)


def test_without_scikit_image_it_says_what_to_install(monkeypatch):
    backgrounds.photograph.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert 'pip install ".[metrics]"' in refusal(samples, "tie")


def test_what_was_added_for_training_is_in_no_picture_of_the_demo():
    shown = [toys.toy_number(index) for index in range(64)]
    for added, seen in (
        (toys.EARS, {toy.animal for toy in shown}),
        (toys.BELLIES, {toy.belly for toy in shown}),
        (toys.WEAR, {toy.wear for toy in shown}),
    ):
        assert seen == set([*added][:4])
    words = " ".join(
        " ".join(scenes.case(task, n).texts.values())
        for task in ("tig", "mie", "tie")
        for n in range(16)
    )
    found = [thing for thing in drawing.THINGS if re.search(rf"\b{thing}s?\b", words)]
    assert found == list(drawing.THINGS[:8])
