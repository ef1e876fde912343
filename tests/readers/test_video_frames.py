"""Frames of videos: which are taken, and what is said of videos that give none."""

import re
import struct
import sys
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from tests.refusals import refusal
from tests.tables import table
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.t2vscore import BENCHMARK
from vieval_plugin.readers import video_frames
from vieval_plugin.readers.video_frames import extract_all, frame_numbers

av = pytest.importorskip("av", reason='needs PyAV: pip install ".[video]"')
STEP = 12  # grey levels between frames, wide enough for lossy codecs
MIDDLES = [(16, 4, [2, 6, 10, 14]), (20, 1, [10]), (9, 9, list(range(9)))]
MIDDLES += [(10, 3, [1, 5, 8]), (3, 4, [0, 1, 1, 2]), (1, 4, [0, 0, 0, 0])]
CONTAINERS = {"v.mkv": "mpeg4", "v.avi": "mpeg4", "v.h264": "libx264"}
NOT_DECODED = "cannot be decoded (Invalid data found when processing input)"


def write_video(path, frames, codec="mpeg4", times=None, **options):
    """A video whose frame k is grey of level 12 k, its top left corner white."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=8)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            pixels = np.full((48, 64, 3), min(255, STEP * number), np.uint8)
            pixels[:16, :16] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            if times:
                frame.pts, frame.time_base = times[number], Fraction(1, 8)
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def extract(video, folder, count):
    assert extract_all([(video, folder)], count) == {}
    return [folder / f"{k}.jpg" for k in range(count)]


def numbers(paths):
    """Which frames of a drawn video these are."""
    found = []
    for path in paths:
        with Image.open(path) as picture:
            form = (picture.format, picture.mode, picture.size)
            assert form == ("JPEG", "RGB", (64, 48))
            assert picture.getpixel((4, 4))[0] > 230
            found.append(round(picture.getpixel((50, 40))[0] / STEP))
    return found


@pytest.mark.parametrize(("frames", "count", "expected"), MIDDLES)
def test_frames_are_the_middles_of_equal_parts(tmp_path, frames, count, expected):
    paths = extract(write_video(tmp_path / "v.mp4", frames), tmp_path / "to", count)
    assert numbers(paths) == expected
    assert sorted((tmp_path / "to").iterdir()) == sorted(paths)


@pytest.mark.parametrize(("name", "codec"), CONTAINERS.items())
def test_containers_without_durations_give_the_same_frames(tmp_path, name, codec):
    """Raw H.264 has no timestamps at all; there, all frames last equally long."""
    paths = extract(write_video(tmp_path / name, 8, codec), tmp_path / "to", 4)
    assert numbers(paths) == [1, 3, 5, 7]


def test_frames_are_spread_over_time_and_not_over_numbers(tmp_path):
    still = write_video(tmp_path / "v.mp4", 6, times=[0, 1, 2, 3, 4, 16])
    assert numbers(extract(still, tmp_path / "to", 4)) == [2, 4, 4, 4]


@pytest.mark.parametrize(*table("timestamps.jsonl"))
def test_timestamps_that_say_nothing_are_not_believed(times, last, count, expected):
    assert frame_numbers(times, last, count) == expected


def test_frames_are_upright(tmp_path):
    """A quarter turn in the container's track header, as telephones write it."""
    video = write_video(tmp_path / "v.mp4", 2)
    body = bytearray(video.read_bytes())
    # after version, times, id, duration, layer, group and volume
    matrix = body.index(b"tkhd") + 44
    turned = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30)
    body[matrix : matrix + 36] = turned
    video.write_bytes(body)
    (path,) = extract(video, tmp_path / "to", 1)
    with Image.open(path) as picture:
        assert picture.size == (48, 64)
        # clockwise: top left is now top right
        assert picture.getpixel((44, 4))[0] > 230
        assert picture.getpixel((4, 4))[0] < 40


def cut_video(path):
    body = write_video(path, 40, movflags="+faststart").read_bytes()
    path.write_bytes(body[: int(len(body) * 0.8)])


def no_video(path):
    with av.open(str(path), "w", format="wav") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        silence = np.zeros((1, 800), np.int16)
        frame = av.AudioFrame.from_ndarray(silence, format="s16", layout="mono")
        frame.rate = 8000
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)


BROKEN = {
    "absent": (lambda path: None, "no such file"),
    "a folder": (lambda path: path.mkdir(), "no such file"),
    "a text": (lambda path: path.write_text("not a video"), NOT_DECODED),
    "empty": (lambda path: path.write_bytes(b""), NOT_DECODED),
    "cut": (cut_video, "cut off or damaged at frame"),
    "sound": (no_video, "contains no video"),
}


@pytest.mark.parametrize(("spoil", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_video_that_gives_no_frames_is_named_with_the_reason(tmp_path, spoil, reason):
    video = tmp_path / "bad.mp4"
    spoil(video)
    [(named, said)] = extract_all([(video, tmp_path / "to")], 4).items()
    assert named == video
    assert said.startswith(reason)
    assert not (tmp_path / "to").exists()


def test_many_videos_go_on_past_a_bad_one_and_are_resumed(tmp_path, monkeypatch):
    pairs = [(tmp_path / f"{n}.mp4", tmp_path / "to" / str(n)) for n in range(4)]
    for video, _ in (pairs[0], pairs[1], pairs[3]):
        write_video(video, 8)
    pairs[2][0].write_text("not a video")
    assert extract_all(pairs, 2) == {pairs[2][0]: NOT_DECODED}
    assert numbers(pairs[3][1] / f"{k}.jpg" for k in range(2)) == [2, 6]

    (pairs[1][1] / "1.jpg").unlink()
    write_video(pairs[2][0], 8)
    asked = []
    whole = video_frames._extract
    noting = lambda *pair: asked.append(pair[0]) or whole(*pair)
    monkeypatch.setattr(video_frames, "_extract", noting)
    assert extract_all(pairs, 2) == {}
    assert sorted(asked) == [pairs[1][0], pairs[2][0]]


def test_a_folder_that_cannot_be_written_ends_the_work(tmp_path):
    write_video(tmp_path / "v.mp4", 2)
    (tmp_path / "to").write_text("a file, where frames should go")
    said = refusal(extract_all, [(tmp_path / "v.mp4", tmp_path / "to" / "0")], 2)
    assert "cannot write" in said


def test_without_pyav_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    assert extract_all([], 4) == {}
    said = refusal(extract_all, [(tmp_path / "v.mp4", tmp_path / "to")], 4)
    assert 'run pip install ".[video]"' in said


def test_preparing_t2vscore_makes_the_frames_its_samples_name(tmp_path):
    folder = tmp_path / "t2vscore"
    write_video(folder / "videos" / "gen2" / "0007.mp4", 8)
    write_video(folder / "videos" / "pika" / "7.mp4", 1)
    models = '{"gen2": [4.5], "pika": [1.0], "floor33": [2.0]}'
    prompts = f'{{"7": {{"prompt": "two cats", "models": {models}}}}}'
    (folder / "t2vscore_alignment_score.json").write_text(prompts)

    report = BENCHMARK.prepare(tmp_path, Preparing(count=2))
    assert not report.complete
    videos, missing = report.lines
    said = r"from 1 of 3 videos \(first: .*floor33/7.mp4, no such file\); download"
    assert re.search(said, videos)
    assert "frames2/floor33/7: 2 of 2 images missing (first: 0.jpg); put" in missing

    write_video(folder / "videos" / "floor33" / "0007.mp4", 4)
    # two frames, as was asked for before
    report = BENCHMARK.prepare(tmp_path, Preparing())
    assert report.complete
    [line] = report.lines
    assert line == "t2vscore/all: ready, 3 samples (the published set has 2543)"
    by_model = {s.id.image_model: s for s in BENCHMARK.load(tmp_path, "all")}
    for model, expected in (("gen2", [2, 6, 2]), ("pika", [0, 0, 0])):
        images = by_model[model].images.values()
        assert numbers(image.source for image in images) == expected
