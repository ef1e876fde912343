"""A diffusers pipeline as a generator, with tiny random weights."""

import functools
import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.refusals import refuses

pytest.importorskip("diffusers", reason="diffusers is not installed")

from tests.fake_image_server import picture
from tests.tiny_pipeline import build_pipeline
from vieval_plugin.generation.diffusion import Diffusion, load, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Image, Sample, SampleId


@pytest.fixture(
    scope="module", params=[False, True], ids=["from text", "from image and text"]
)
def painter(request, tmp_path_factory):
    folder = build_pipeline(tmp_path_factory.mktemp("weights"), request.param)
    loaded = load(str(folder), "", "cpu", "float32", {})
    roles = {"source": Image(picture(b"source"))} if request.param else {}
    shape = {"strength": 0.9} if request.param else {"height": 32, "width": 32}

    def painting(out, batch=1, **further):
        call = {"num_inference_steps": 2, **shape, **further}
        return Diffusion(loaded, "tiny", out, call, batch)

    return painting, roles


def wanted(roles, uid, images=1):
    sample = Sample(SampleId("b", "tie", "", uid), roles, {})
    return ImageRequest(sample, f"photo of a red toy {uid}", images)


def made(diffusion, *asked):
    return [json.loads(one) for one in make(diffusion, asked, bar=False)]


BROKEN = RuntimeError("out of memory")


def watched(monkeypatch, diffusion, error=BROKEN, at=None):
    """What was asked of a pipeline, a list that grows; call number `at` ends in an error."""
    kind, calls = type(diffusion.pipeline), []
    call = kind.__call__

    @functools.wraps(call)
    def watching(self, *args, **kwargs):
        calls.append(kwargs["prompt"])
        if len(calls) == at:
            raise error
        return call(self, *args, **kwargs)

    monkeypatch.setattr(kind, "__call__", watching)
    return calls


def paths(answers):
    return [Path(path) for one in answers for path in one["images"]]


def contents(answers):
    return [path.read_bytes() for path in paths(answers)]


def pixels(answers):
    return [np.asarray(PIL.Image.open(path)).astype(int) for path in paths(answers)]


def test_batch_and_order_change_no_image(painter, tmp_path, monkeypatch):
    painting, roles = painter
    asked = [wanted(roles, uid, 2) for uid in "123"]
    alone = made(painting(tmp_path / "one"), *asked)
    assert len(set(contents(alone))) == 6
    assert all(one["seconds"] > 0 for one in alone)
    together = made(painting(tmp_path / "four", batch=4), *asked[::-1])
    for one, other in zip(pixels(alone), pixels(together[::-1]), strict=True):
        assert abs(one - other).max() <= 2  # a batch rounds otherwise
    calls = watched(monkeypatch, painting(tmp_path / "one"))
    again = made(painting(tmp_path / "one"), *asked)
    assert (calls, paths(again)) == ([], paths(alone))
    before = contents(alone)
    (tmp_path / "one" / paths(alone)[2].name).unlink()
    assert contents(made(painting(tmp_path / "one"), *asked)) == before
    assert len(calls) == 1


class Killed(BaseException):
    """Ends a process as a signal does."""


def test_a_pipeline_that_is_killed_makes_no_image_twice(painter, tmp_path, monkeypatch):
    painting, roles = painter
    calls = watched(monkeypatch, painting(tmp_path), Killed(), at=3)
    asked = [wanted(roles, uid) for uid in "1234"]
    with pytest.raises(Killed):
        made(painting(tmp_path), *asked)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.png")}
    assert len(before) == 2
    assert all(len(one["images"]) == 1 for one in made(painting(tmp_path), *asked))
    assert len(calls) == 3 + 2
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_what_a_pipeline_cannot_be_given_is_said(painter, tmp_path):
    painting, roles = painter
    other = {} if roles else {"source": Image(picture(b"source"))}
    [told] = made(painting(tmp_path), wanted(other, "1"))
    reason = "requires an image" if roles else "does not support source images"
    assert reason in told["text"]
    assert told["images"] == []
    coloured, asked = painting(tmp_path, colour="red"), [wanted(roles, "1")]
    refuses("has no argument 'colour'", make, coloured, asked, bar=False)


def test_a_pipeline_error_is_its_prompts_failure(painter, tmp_path, monkeypatch):
    painting, roles = painter
    watched(monkeypatch, painting(tmp_path), at=2)
    first, second = made(painting(tmp_path), wanted(roles, "1"), wanted(roles, "2"))
    assert len(first["images"]) == 1
    assert (second["images"], second["status"]) == ([], "tool_error")
    assert "out of memory" in second["text"]


def test_of_two_images_the_one_that_was_made_is_kept(painter, tmp_path, monkeypatch):
    painting, roles = painter
    calls = watched(monkeypatch, painting(tmp_path), at=2)
    [one] = made(painting(tmp_path), wanted(roles, "1", images=2))
    assert (len(one["images"]), one["status"]) == (1, "tool_error")
    [both] = made(painting(tmp_path), wanted(roles, "1", images=2))
    assert both["images"][:1] == one["images"]
    assert (len(both["images"]), len(calls)) == (2, 3)


def test_weights_that_are_not_there_are_one_line(tmp_path):
    own = (str(tmp_path), "cpu", "float32", {})
    for name, words in (("", "cannot load the"), ("Nothing", "no pipeline 'Nothing'")):
        refuses(words, load, own[0], name, *own[1:])
