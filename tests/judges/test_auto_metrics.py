"""Metrics as judges: the programs with canned replies, then the numbers themselves."""

import sys
from dataclasses import replace

import numpy as np
import PIL.ExifTags
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFilter
import pytest

from tests.pictures import encoded
from tests.playing import play, prepared
from tests.refusals import refuses
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics import pixel_metrics as backend
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.backends.metrics.pixel_metrics import WORKING_SIDE, measure
from vieval_plugin.judges import auto_metrics
from vieval_plugin.judges.auto_metrics import judge, verdict_of
from vieval_plugin.judges.protocol import Measure, Measurement
from vieval_plugin.judges.spec import missing_inputs_reason

METRICS = {metric.name: metric for metric in auto_metrics.METRICS}
ROLES = ("output", "source", "mask", "subject", "control", "concepts")


def sample(*roles):
    images = {role: Image(role.encode()) for role in roles}
    return Sample(SampleId("b", "tie", "m", "u"), images)


def drive(metric, asked_sample_count, *replies):
    """Runs a judge on canned replies: what it asked, and its verdict."""
    played = play(judge(metric)(asked_sample_count), *([reply] for reply in replies))
    return played.rounds, played.verdict


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_asks_once_and_rates_its_aspect_in_the_order_of_values(metric):
    [[ask]], verdict = drive(metric, sample(*ROLES), Measurement(0.5))
    assert ask.metric == metric.name
    assert ask.images["image"] == Image(b"output")
    assert set(verdict.scores) == {metric.aspect}
    assert verdict.status is Status.OK
    assert verdict.trace[0].scores == (0.5,)
    values = [-1.0, 0.0, 0.3, 0.9, 1.0, 12.0, 30.0, 49.0, 100.0]
    played = [drive(metric, sample(*ROLES), Measurement(value)) for value in values]
    scores = [verdict.scores[metric.aspect] for _, verdict in played]
    assert scores == sorted(scores)
    assert (scores[0], scores[-1]) == (0.0, 1.0)


def test_the_histogram_takes_the_concepts_where_there_is_no_subject():
    shown = sample("output", "concepts")
    [[ask]], _ = drive(METRICS["histogram"], shown, Measurement(1))
    assert ask.images["reference"] == Image(b"concepts")


def png(pixels):
    is_picture = isinstance(pixels, PIL.Image.Image)
    return Image(encoded(pixels if is_picture else PIL.Image.fromarray(pixels)))


def scene(side=128):
    """A few hard shapes on a gradient: has edges, colours and smooth parts."""
    y, x = np.mgrid[0:side, 0:side] / side
    pixels = np.stack([x, y, 1 - x], axis=-1) * 255
    pixels[side // 8 : side // 2, side // 8 : side // 3] = (220, 40, 40)
    pixels[(x - 0.65) ** 2 + (y - 0.6) ** 2 < 0.04] = (30, 90, 220)
    return PIL.Image.fromarray(pixels.astype(np.uint8))


def noisy(deviation):
    noise = np.random.RandomState(0).standard_normal((128, 128, 3)) * deviation
    pixels = np.clip(np.asarray(scene()) + noise, 0, 255)
    return PIL.Image.fromarray(pixels.astype(np.uint8))


def blurred(radius):
    return scene().filter(PIL.ImageFilter.GaussianBlur(radius))


def shifted(pixels):
    return PIL.Image.fromarray(np.roll(np.asarray(scene()), pixels, axis=1))


def value(metric, image, reference=None):
    images = {"image": png(image)}
    images |= {} if reference is None else {"reference": png(reference)}
    return measure(Measure(metric, images, (metric,))).value


@pytest.mark.parametrize(
    ("metric", "best"), [("ssim", 1), ("psnr", 100), ("edge_f1", 1), ("histogram", 1)]
)
def test_equal_images_are_as_alike_as_can_be(metric, best):
    assert value(metric, scene(), scene()) == pytest.approx(best)


@pytest.mark.parametrize(
    ("metric", "degraded"),
    [
        ("ssim", [noisy(d) for d in (0, 5, 20, 60)]),
        ("ssim", [blurred(r) for r in (0, 1, 3, 8)]),
        ("psnr", [noisy(d) for d in (5, 20, 60)]),
        ("psnr", [blurred(r) for r in (1, 3, 8)]),
        ("edge_f1", [shifted(d) for d in (0, 3, 6, 24)]),
        ("sharpness", [blurred(r) for r in (0, 1, 3, 8)]),
    ],
)
def test_the_worse_an_image_the_lower_its_value(metric, degraded):
    reference = None if metric == "sharpness" else scene()
    values = [value(metric, image, reference) for image in degraded]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 0.1


def plain_grey(level):
    return PIL.Image.new("RGB", (16, 16), (level,) * 3)


def test_psnr_is_the_formula():
    """Off by 10 grey levels everywhere: 10 log10(255^2 / 100)."""
    found = value("psnr", plain_grey(100), plain_grey(110))
    assert found == pytest.approx(28.1308, abs=1e-4)


@pytest.mark.parametrize("side", [96, 256, 512])
def test_a_line_drawing_agrees_with_the_shapes_it_outlines(side):
    corners = (side // 5, side // 4, side * 3 // 5, side * 4 // 5)
    shape = PIL.Image.new("RGB", (side, side), "khaki")
    lines = PIL.Image.new("L", (side, side))
    PIL.ImageDraw.Draw(shape).ellipse(corners, fill="navy")
    PIL.ImageDraw.Draw(lines).ellipse(corners, outline=255, width=max(1, side // 100))
    assert value("edge_f1", shape, lines) > 0.95
    assert value("edge_f1", shape.rotate(90), lines) < 0.3
    assert value("edge_f1", lines, lines) == 1


def test_images_without_edges_agree_only_with_each_other():
    assert value("edge_f1", plain_grey(255), plain_grey(128)) == 1
    assert value("edge_f1", plain_grey(255), scene()) == 0


def test_histograms_know_colours_and_not_places():
    assert value("histogram", scene().rotate(180), scene()) == pytest.approx(1)
    red, blue = (PIL.Image.new("RGB", (9, 9), colour) for colour in ("red", "blue"))
    assert value("histogram", red, blue) < 0.1


@pytest.mark.parametrize("metric", ["ssim", "psnr", "edge_f1", "histogram"])
def test_a_reference_of_another_size_is_resized(metric):
    small = value(metric, scene(128), scene(256))
    large = value(metric, scene(256), scene(128))
    worst = value(metric, scene(128), PIL.Image.new("RGB", (128, 128)))
    assert min(small, large) > worst


def test_huge_images_are_measured_at_a_working_size(monkeypatch):
    shapes = []
    noting = lambda images: shapes.append(images["image"].shape) or 0.0
    monkeypatch.setitem(backend.METRICS, "shape", noting)
    value("shape", PIL.Image.new("RGB", (3 * WORKING_SIDE, WORKING_SIDE)))
    assert shapes == [(683, WORKING_SIDE, 3)]


def test_an_unknown_metric_and_a_role_that_lacks_are_named():
    known = "'sism'.*edge_f1, histogram, psnr, sharpness, ssim"
    for metric, said in (("sism", known), ("ssim", "'reference'")):
        refuses(said, measure, Measure(metric, {"image": png(scene())}, ()))


SMALL, FLAT = (PIL.Image.new("RGB", (side, side), "grey") for side in (4, 64))


@pytest.mark.parametrize(
    ("metric", "image", "reason"),
    [
        ("sharpness", Image(b"nothing"), "7 bytes"),
        ("ssim", png(SMALL), ""),
        ("sharpness", png(FLAT), ""),
        ("sharpness", png(scene().crop((0, 0, 2, 1))), ""),
    ],
)
def test_an_image_that_cannot_be_measured_is_a_tool_error(metric, image, reason):
    reply = measure(Measure(metric, {"image": image, "reference": image}, ()))
    assert reply.status is Status.TOOL_ERROR
    assert reason in reply.reason


def test_without_scikit_image_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.metrics", None)
    image = png(scene())
    asked = Measure("ssim", {"image": image, "reference": image}, ())
    refuses(r'pip install "\.\[metrics\]"', measure, asked)


def _flat(width, height, orientation=1, form="PNG"):
    exif = PIL.Image.Exif()
    exif[PIL.ExifTags.Base.Orientation] = orientation
    picture = PIL.Image.new("RGB", (width, height), "teal")
    return Image(encoded(picture, form, exif=exif))


@pytest.mark.parametrize(
    ("metric", "image", "reference", "finding"),
    [
        ("ssim", _flat(32, 32), _flat(32, 32), ()),
        ("ssim", _flat(64, 32), _flat(32, 32), (backend.OTHER_SHAPE,)),
        ("psnr", _flat(32, 64), _flat(32, 32), (backend.OTHER_SHAPE,)),
        ("edge_f1", _flat(64, 64), _flat(32, 32), (backend.OTHER_SIZE,)),
        ("psnr", _flat(63, 32), _flat(32, 16), (backend.OTHER_SIZE,)),
        ("histogram", _flat(64, 32), _flat(32, 32), ()),
        ("psnr", _flat(32, 64), _flat(64, 32, 6, "JPEG"), ()),
        ("psnr", _flat(32, 64), _flat(64, 32, 6, "PNG"), ()),
        ("psnr", _flat(64, 32), _flat(64, 32, 6, "JPEG"), (backend.OTHER_SHAPE,)),
    ],
)
def test_a_reference_of_another_size_is_a_finding(metric, image, reference, finding):
    batcher, shown = Batcher(Usage()), {"image": image, "reference": reference}
    [reply] = batcher.measure([Measure(metric, shown, (metric,))])
    batcher.close()
    assert isinstance(reply, Measurement)
    assert reply.notes == finding


NETWORKS = {metric.name: metric for metric in auto_metrics.NETWORK_METRICS}
IMAGES = {role: Image(role.encode()) for role in ROLES}
TEXTS = {"prompt": "a red toy", "instruction": "make it blue"}
TEXTS |= {"source_caption": "a red toy", "target_prompt": "a blue toy"}


def full_sample(kind):
    return Sample(SampleId("b", kind, "m", "u"), IMAGES, TEXTS)


def only_ask(judge, asked):
    """What a judge asks about a sample."""
    [ask] = play(prepared(judge).program(asked), [Measurement(0.5)]).asks
    return ask


@pytest.mark.parametrize("spec", auto_metrics.NETWORK_SPECS, ids=lambda spec: spec.name)
def test_each_asks_the_scorer_of_its_name_and_is_reported_against_all(spec):
    assert spec.scored
    assert spec.against_all
    for kind in spec.needs:
        program = prepared(spec.name).program(full_sample(kind))
        played = play(program, [Measurement(0.5, "weights@1", ("truncated",))])
        [ask] = played.asks
        assert isinstance(ask, Measure)
        assert (ask.metric, ask.backbone) == (spec.name, spec.name)
        [step] = played.verdict.trace
        assert (step.scores, step.reason) == ((0.5,), "weights@1")


@pytest.mark.parametrize(
    ("judge", "kinds", "reference"),
    [
        ("clip_score", ["tig"], None),
        ("clip_i", ["mie", "tie", "sdig", "sdie", "mcic"], "subject"),
        ("dino", ["mie", "tie", "sdig", "sdie", "mcic"], "subject"),
        ("lpips", ["mie", "tie", "cig"], "source"),
    ],
)
def test_each_is_asked_on_the_kinds_of_the_paper(judge, kinds, reference):
    assert list(prepared(judge).spec.needs) == kinds
    ask = only_ask(judge, full_sample(kinds[0]))
    assert ask.images["image"] == Image(b"output")
    assert ask.images.get("reference") == (reference and Image(reference.encode()))
    assert ask.texts == ({} if reference else {"text": "a red toy"})


@pytest.mark.parametrize("judge", ["clip_i", "dino"])
def test_an_edit_is_compared_with_its_source(judge):
    shown = {role: IMAGES[role] for role in ("output", "source")}
    edit = replace(full_sample("tie"), images=shown)
    assert not missing_inputs_reason(prepared(judge).spec, edit)
    assert only_ask(judge, edit).images["reference"] == Image(b"source")


def test_the_direction_of_an_edit_needs_both_captions():
    ask = only_ask("clip_direction", full_sample("tie"))
    assert ask.texts == {"source_text": "a red toy", "output_text": "a blue toy"}
    assert ask.images["source"] == Image(b"source")
    bare = replace(full_sample("tie"), texts={"source_caption": "a red toy"})
    spec = prepared("clip_direction").spec
    lacking = "output_caption or target_prompt"
    assert lacking in missing_inputs_reason(spec, bare)


def test_a_sample_without_a_prompt_is_not_applicable():
    bare = replace(full_sample("tig"), texts={"prompt": " "})
    lacking = missing_inputs_reason(prepared("clip_score").spec, bare)
    assert lacking == "the sample has no prompt text"


def score_of(name, value):
    return verdict_of(NETWORKS[name], Measurement(value)).scores["SC"]


def test_a_distance_is_turned_round_and_two_that_differ_stay_apart():
    distances = [0.0, 0.021079, 0.02108, 0.999999, 1.0, 1.176306]
    scores = [score_of("lpips", distance) for distance in distances]
    assert scores == sorted({*scores}, reverse=True)
    assert -1 <= scores[-1] < 0 < scores[2] <= scores[0] <= 1


@pytest.mark.parametrize("name", ["clip_score", "clip_i", "clip_direction", "dino"])
def test_a_similarity_keeps_its_value(name):
    for value, score in ((-0.1, -0.1), (0.25, 0.25), (1.0, 1.0), (1.0001, 1.0)):
        assert score_of(name, value) == score
