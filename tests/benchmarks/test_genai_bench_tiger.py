"""GenAI-Bench of TIGER-Lab: real votes, the form of its files, what is wrong with them, and what
is fetched.
"""

import io
import json
from collections import Counter
from pathlib import Path

import pytest

from tests import extras
from tests.benchmarks.hub import HUB, genai_rows, hub_with, stored
from tests.refusals import refusal
from tests.stored_results import write_lines
from vieval_plugin.benchmarks import genai_bench_tiger
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges import viescore
from vieval_plugin.judges.spec import missing_inputs_reason

BENCHMARK = genai_bench_tiger.BENCHMARK
WORDS = ("first", "second", "both_good", "both_bad")


def votes(contests):
    return [contest.votes.vote for contest in contests]


@pytest.mark.parametrize(
    ("part", "counts", "groups"),
    [
        ("edit", (240, 263, 24, 392), 179),
        ("generation", (643, 663, 156, 273), 1205),
        ("video", (325, 375, 138, 231), 214),
    ],
)
def test_the_votes_are_those_that_were_published(shared_data, part, counts, groups):
    contests = BENCHMARK.load(shared_data, part)
    assert BENCHMARK.parts[part] == sum(counts)
    assert tuple(Counter(votes(contests))[word] for word in WORDS) == counts
    assert len({contest.group for contest in contests}) == groups
    assert {contest.votes.scheme for contest in contests} == {"four_way"}


def test_fixed_answers_reach_what_the_authors_table_says(shared_data):
    """Always both bad is above 16 of the 18 judges of the authors' table; a bare A=B is above it
    under their rule.
    """

    def percent(part, *words):
        counted = Counter(votes(BENCHMARK.load(shared_data, part)))
        return round(100 * sum(counted[word] for word in words) / counted.total(), 2)

    assert (percent("edit", "both_bad"), percent("edit", "first")) == (42.66, 26.12)
    assert percent("generation", "second") == 38.21
    assert percent("video", "second") == 35.08
    ties = [percent(part, "both_good", "both_bad") for part in BENCHMARK.parts]
    assert ties == [45.27, 24.73, 34.52]


def test_contests_of_a_log_have_its_texts_and_no_images(shared_data):
    contest = BENCHMARK.load(shared_data, "edit")[0]
    first, second = contest.candidates
    assert first.texts["instruction"] == "let a herd of sheep block the taxi"
    assert first.texts is second.texts
    assert first.images == {}
    assert contest.kind == "tie"
    assert str(contest.id) == "genai_bench_tiger/edit/0"
    assert first.id != second.id
    found = missing_inputs_reason(viescore.SPEC, contest)
    assert found == "candidate 1: the sample has no source image"


def log(root, number):
    """Writes a judge's log of so many votes."""
    texts = {"instruct_prompt": "add a hat", "source_prompt": "a cat"}
    rows = [{"idx": n, "human_vote": "leftvote", **texts} for n in range(number)]
    path = root / "genai_bench_tiger" / "image_edition" / "judge" / "pairwise.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(rows))


# the package's own form


def write(root, row):
    path = root / "genai_bench_tiger" / "edit" / "contests.jsonl"
    path.parent.mkdir(parents=True)
    write_lines(path, [row])
    return path


def test_the_form_in_the_docs_can_be_read(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"
    section = page.read_text().split("### The form of a contest")[1]
    shown = section.split("```json")[1].split("```")[0]
    write(tmp_path, json.loads(shown))
    [contest] = BENCHMARK.load(tmp_path, "edit")
    assert contest.votes.annotators == ("both_bad", "second")
    assert contest.tags == ("local",)
    assert contest.id.uid == "12"
    assert missing_inputs_reason(viescore.SPEC, contest) == ""


@pytest.mark.parametrize("images", [{}, {"output": None}, None])
def test_a_candidate_without_an_image_does_not_apply(tmp_path, images):
    sides = [
        {"image_model": "one", "uid": "x", "images": {"output": "a.png"}},
        {"image_model": "two", "uid": "y", "images": images},
    ]
    shown = {"texts": {"instruction": "add a hat"}, "images": {"source": "s.png"}}
    write(tmp_path, {"id": "0", **shown, "candidates": sides, "vote": "first"})
    [contest] = BENCHMARK.load(tmp_path, "edit")
    found = missing_inputs_reason(viescore.SPEC, contest)
    assert found == "candidate 2: the sample has no output image"
    assert "no image for 1 of 2 outputs" in BENCHMARK.missing(tmp_path, "edit")[-1]


# the hub


@pytest.fixture
def hub(monkeypatch):
    return hub_with(monkeypatch, *HUB[0].repository)[0]


def prepare(root, *parts, **asked):
    return BENCHMARK.prepare(root, Preparing(parts or None, **asked))


def test_preparing_writes_rows_and_images_as_they_are_stored(tmp_path, hub):
    hub["image_edition"] = genai_rows()
    prepare(tmp_path, "edit")
    contests = BENCHMARK.load(tmp_path, "edit")
    assert votes(contests) == ["first", "both_bad", "both_good"]
    models = [[sample.id.image_model for sample in c.candidates] for c in contests]
    assert models == [["one", "two"], ["two", "three"], ["one", "three"]]
    # three outputs and a source, each once, byte for byte
    files = list((tmp_path / "genai_bench_tiger" / "edit" / "images").iterdir())
    assert sorted(file.suffix for file in files) == [".jpeg", ".png", ".png", ".png"]
    text = contests[0].candidates[0].images["output"].source.read_bytes()
    assert text == stored("red")["bytes"]
    text = contests[0].candidates[0].images["source"].source.read_bytes()
    assert text == stored("grey", "JPEG")["bytes"]
    assert contests[0].candidates[1] is contests[1].candidates[0]
    assert contests[0].candidates[0] is contests[2].candidates[0]
    assert {contest.group for contest in contests} == {"a cat | add a hat"}


def test_what_is_lost_is_fetched_again(tmp_path, monkeypatch):
    rows, asked = hub_with(monkeypatch, *HUB[0].repository)
    rows["image_edition"] = genai_rows()
    prepare(tmp_path, "edit")
    before = BENCHMARK.load(tmp_path, "edit")
    before[0].candidates[0].images["output"].source.unlink()
    assert prepare(tmp_path, "edit").complete
    assert (len(asked), BENCHMARK.load(tmp_path, "edit")) == (2, before)


def test_contests_have_the_ids_of_those_in_the_logs(tmp_path, hub):
    """So that a recorded answer fits, whether the images are there or not."""
    hub["image_edition"] = genai_rows()
    log(tmp_path, 3)
    alone = BENCHMARK.load(tmp_path, "edit")
    prepare(tmp_path, "edit")
    found = [contest.id for contest in BENCHMARK.load(tmp_path, "edit")]
    assert found == [contest.id for contest in alone]
    found = {contest.group for contest in BENCHMARK.load(tmp_path, "edit")}
    assert found == {alone[0].group}


def test_votes_alone_will_do_without_images(tmp_path, hub):
    log(tmp_path, 1)
    assert prepare(tmp_path, "edit", images=False).complete
    report = prepare(tmp_path, "edit")
    assert not report.complete
    assert report.lines[1] == (
        "genai_bench_tiger/edit: cannot download TIGER-Lab/GenAI-Bench (image_edition) from the Hugging Face Hub "
        "(ConnectionError: no route to the hub); run the command again to retry"
    )
    hub["image_edition"] = genai_rows()
    assert prepare(tmp_path, "edit").complete


def test_rows_without_images_become_rows_with_them(tmp_path, hub):
    hub["image_edition"] = genai_rows()
    assert prepare(tmp_path, "edit", images=False).complete
    assert not (tmp_path / "genai_bench_tiger" / "edit" / "images").exists()
    assert prepare(tmp_path, "edit").complete
    found = missing_inputs_reason(viescore.SPEC, BENCHMARK.load(tmp_path, "edit")[0])
    assert found == ""


def test_an_image_that_cannot_be_read_is_told_and_its_row_kept(tmp_path, hub):
    rows = genai_rows()
    rows[1]["right_output_image"] = {"bytes": b"no image", "path": None}
    hub["image_edition"] = rows
    report = prepare(tmp_path, "edit")
    assert not report.complete
    assert report.lines[1].endswith("edit: cannot read 1 image (first: row 1)")
    contest = BENCHMARK.load(tmp_path, "edit")[1]
    found = missing_inputs_reason(viescore.SPEC, contest)
    assert found == "candidate 2: the sample has no output image"


def test_preparing_leaves_rows_alone_that_are_somebodys_own_and_wrong(tmp_path, hub):
    path = write(tmp_path, {"id": "0", "candidates": [3, 4]})
    before = path.read_text()
    report = prepare(tmp_path, "edit")
    assert (report.complete, path.read_text()) == (False, before)
    assert "line 1: `candidates` must be a list of objects" in report.lines[1]


def test_without_a_row_that_can_be_read_there_is_no_contest(tmp_path, hub):
    hub["image_edition"] = [{"prompt": "a cat"}]
    line = prepare(tmp_path, "edit").lines[2]
    assert "no such file, and no judge log" in line


def test_without_datasets_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    line = refusal(prepare, tmp_path, "edit")
    assert 'requires datasets; run pip install ".[hub]" ' in line


@extras.needs("aiohttp", "av")
def test_videos_are_fetched_and_cut_into_frames(tmp_path, hub, monkeypatch):
    from vieval_plugin.readers import download

    fetched = []

    async def fetch_all(jobs, **how):
        for job in (job for job in jobs if not job.is_there()):
            fetched.append(job.url)
            job.path.parent.mkdir(parents=True, exist_ok=True)
            job.path.write_bytes(video(16))
        return []

    monkeypatch.setattr(download, "fetch_all", fetch_all)
    shown = {"prompt": "a dog", "left_model": "one", "right_model": "two"}
    urls = {f"{side}_video": f"https://host/{side}.mp4" for side in ("left", "right")}
    hub["video_generation"] = [
        {**shown, **urls, "vote_type": vote} for vote in ("rightvote", "tievote")
    ]
    report = prepare(tmp_path, "video")
    assert report.lines[1:] == (
        "genai_bench_tiger/video: ready, 2 contests (the published set has 1069)",
    )
    assert fetched == ["https://host/left.mp4", "https://host/right.mp4"]
    one, other = BENCHMARK.load(tmp_path, "video")
    assert one.candidates[0] is other.candidates[0]
    assert all(image.source.is_file() for image in one.candidates[0].images.values())
    assert prepare(tmp_path, "video", count=2).complete
    assert len(fetched) == 2
    assert len(BENCHMARK.load(tmp_path, "video")[0].candidates[0].images) == 3


def video(frames):
    import av
    import numpy as np

    body = io.BytesIO()
    with av.open(body, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width = stream.height = 32
        for number in range(frames):
            pixels = np.full((32, 32, 3), 8 * number, dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return body.getvalue()
