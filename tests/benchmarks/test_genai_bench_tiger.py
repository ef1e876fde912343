"""GenAI-Bench of TIGER-Lab: real votes, the form of its files, what is wrong with them, and what
is fetched.
"""

import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests import extras
from tests.benchmarks.hub import hub_with, stored
from tests.refusals import refusal
from tests.stored_results import write_lines
from vieval_plugin.benchmarks import genai_bench_tiger
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges import viescore, vqascore
from vieval_plugin.judges.protocol import outputs
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
    assert len(contests) == BENCHMARK.parts[part] == sum(counts)
    assert tuple(Counter(votes(contests))[word] for word in WORDS) == counts
    assert len({contest.id for contest in contests}) == len(contests)
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
    [line] = BENCHMARK.missing(shared_data, "edit")
    assert line.startswith(
        "no image for 1838 of 1838 outputs (first: genai_bench_tiger/edit/unnamed/0#1); run"
    )


def log(root, rows, folder="image_edition/judge"):
    path = root / "genai_bench_tiger" / folder / "pairwise.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return path


def logged(**cells):
    return {
        "idx": 0,
        "human_vote": "leftvote",
        "instruct_prompt": "add a hat",
        "source_prompt": "a cat",
        **cells,
    }


def test_a_log_without_prompts_is_taken_only_where_no_other_has_them(tmp_path):
    log(tmp_path, [{"idx": 0, "human_vote": "leftvote"}], "image_edition/a")
    assert BENCHMARK.load(tmp_path, "edit")[0].group == "0"
    log(tmp_path, [logged()], "image_edition/b")
    assert BENCHMARK.load(tmp_path, "edit")[0].group == "a cat | add a hat"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [logged(), logged(idx=1, human_vote="leftish")],
            r"row 1: a four_way vote must be one of first, second, both_good, both_bad, got 'leftish'",
        ),
        ([logged(), logged()], "row 1: duplicate id 0"),
        ([{"idx": 0}], "row 0: missing human_vote"),
        (
            [logged(human_vote=None)],
            "row 0: human_vote must be a non-empty string, got null",
        ),
    ],
)
def test_what_is_wrong_with_a_log_is_told_with_file_and_row(tmp_path, rows, said):
    path = log(tmp_path, rows)
    line = refusal(BENCHMARK.load, tmp_path, "edit")
    assert re.search(said, line)
    assert line.startswith(str(path))


# the package's own form


def row(number=0, **cells):
    return {
        "id": f"{number}",
        "texts": {"instruction": "add a hat"},
        "images": {"source": "images/s.png"},
        "candidates": [
            {"image_model": "one", "uid": "hat", "images": {"output": "images/a.png"}},
            {"image_model": "two", "uid": "hat", "images": {"output": "images/b.png"}},
        ],
        "vote": "both_bad",
        "group": "add a hat",
        **cells,
    }


def write(root, *rows, part="edit"):
    path = root / "genai_bench_tiger" / part / "contests.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, rows)
    return path


def candidate(number, **cells):
    return {**row()["candidates"][number], **cells}


def test_one_output_in_several_contests_is_one_sample(tmp_path):
    third = {"image_model": "three", "uid": "hat", "images": {"output": "images/c.png"}}
    write(
        tmp_path,
        row(0),
        row(
            1,
            candidates=[candidate(1), third],
            vote="",
            annotators=["first", "both_good"],
        ),
    )
    one, other = BENCHMARK.load(tmp_path, "edit")
    assert one.candidates[1] is other.candidates[0]
    assert one.candidates[0].images["source"] is other.candidates[1].images["source"]
    assert one.votes.vote == "both_bad"
    assert other.votes.annotators == ("first", "both_good")
    assert (one.candidates[0].kind, one.candidates[0].group) == ("tie", "add a hat")
    assert missing_inputs_reason(viescore.SPEC, one) == ""


FOUR_WAY = "a four_way vote must be one of first, second, both_good, both_bad, got"
VOTES = "`vote` must be a string"


def sides(*candidates):
    return {"candidates": [*candidates]}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"vote": "left"}, f"{FOUR_WAY} 'left'"),
        ({"annotators": ["first", "tie"]}, f"{FOUR_WAY} 'tie'"),
        ({"annotators": "first"}, f"{VOTES} and `annotators` a list of strings"),
        # nothing is null or an empty text: what else is false is a mistake, and no vote that
        # was not given
        ({"vote": 0}, VOTES),
        ({"texts": []}, "`texts` must map names to strings"),
        ({"images": []}, "`images` must map roles to files"),
        (
            sides(candidate(0, video=False), candidate(1)),
            "video must be a non-empty string, got false",
        ),
        ({"group": 0}, "group must be a non-empty string, got 0"),
        ({"tags": False}, "tags must be a list of tags, got false"),
        (
            {"images": {"source": "x" * 300}},
            "the file name in source is too long (300 characters; limit ",
        ),
        (
            {"images": {"source": "x/" * 2000}},
            "the file name in source is too long (4000 characters; limit ",
        ),
        ({"group": "\ud800"}, "a lone surrogate"),
        (sides(candidate(0)), "a contest must have at least 2 candidates, got 1"),
        (
            sides(candidate(0), candidate(1), candidate(1, uid="x")),
            "four_way votes require exactly 2 candidates",
        ),
        (sides(candidate(0), 3), "`candidates` must be a list of objects"),
        (
            sides(candidate(0), candidate(1, images={"output": "../b.png"})),
            "must be a file inside the folder",
        ),
        ({"id": None}, "id must be a name without #, got null"),
        ({"id": "0"}, "duplicate id 0"),
        (
            sides(candidate(0), candidate(1, images={"output": "images/other.png"})),
            "candidate 2: uid hat of two has a different output or different conditions in an earlier row",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_told_with_file_and_line(tmp_path, cells, said):
    path = write(tmp_path, row(0), row(1, **cells))
    line = refusal(BENCHMARK.load, tmp_path, "edit")
    assert line.startswith(f"{path}: line 2")
    assert said in line


def test_the_form_in_the_docs_can_be_read(tmp_path):
    page = (
        Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"
    ).read_text()
    shown = (
        page.split("### The form of a contest")[1].split("```json")[1].split("```")[0]
    )
    write(tmp_path, json.loads(shown))
    [contest] = BENCHMARK.load(tmp_path, "edit")
    assert contest.votes.annotators == ("both_bad", "second")
    assert contest.tags == ("local",)
    assert contest.id.uid == "12"
    assert missing_inputs_reason(viescore.SPEC, contest) == ""


@pytest.mark.parametrize("images", [{}, {"output": None}, None])
def test_a_candidate_without_an_image_does_not_apply(tmp_path, images):
    write(
        tmp_path,
        row(0, candidates=[candidate(0), candidate(1, images=images, uid="y")]),
    )
    [contest] = BENCHMARK.load(tmp_path, "edit")
    found = missing_inputs_reason(viescore.SPEC, contest)
    assert found == "candidate 2: the sample has no output image"
    assert "no image for 1 of 2 outputs" in BENCHMARK.missing(tmp_path, "edit")[-1]


def test_two_videos_with_frames_in_one_folder_are_told(tmp_path):
    sides = [
        {"image_model": model, "video": f"{model}/0001.mp4"} for model in ("one", "two")
    ]
    path = write(
        tmp_path, {"id": 5, "candidates": sides, "vote": "first"}, part="video"
    )
    said = (
        f"{path}: line 1, candidate 2: the frames of two/0001.mp4 and one/0001.mp4 use "
        "the same folder"
    )
    assert re.search(re.escape(said), refusal(BENCHMARK.load, tmp_path, "video"))


def test_a_video_is_judged_by_its_frames(tmp_path):
    sides = [
        {"image_model": model, "video": f"videos/{model}.mp4"}
        for model in ("one", "two")
    ]
    write(
        tmp_path,
        {
            "id": 5,
            "texts": {"prompt": "a dog runs"},
            "candidates": sides,
            "vote": "first",
        },
        part="video",
    )
    [contest] = BENCHMARK.load(tmp_path, "video")
    sample = contest.candidates[1]
    assert [role for role, _ in outputs(sample)] == [f"frame_{k}" for k in range(4)]
    expected = tmp_path / "genai_bench_tiger" / "video" / "frames4" / "two" / "3.jpg"
    assert sample.images["frame_3"].source == expected
    assert sample.images["output"] == sample.images["frame_0"]
    assert missing_inputs_reason(vqascore.SPEC, contest) == ""


# the hub


def edit_rows():
    same = {
        "source_prompt": "a cat",
        "target_prompt": "a cat in a hat",
        "instruct_prompt": "add a hat",
    }
    shown = [
        ("one", "two", "leftvote"),
        ("two", "three", "bothbad_vote"),
        ("one", "three", "tievote"),
    ]
    colours = {"one": "red", "two": "green", "three": "blue"}
    return [
        {
            **same,
            "source_image": stored("grey", "JPEG"),
            "left_output_image": stored(colours[left]),
            "right_output_image": stored(colours[right]),
            "left_model": left,
            "right_model": right,
            "vote_type": vote,
        }
        for left, right, vote in shown
    ]


@pytest.fixture
def hub(monkeypatch):
    return hub_with(monkeypatch, "TIGER-Lab/GenAI-Bench", "test_v1")


def prepare(root, *parts, **asked):
    return BENCHMARK.prepare(root, Preparing(parts or None, **asked))


def test_preparing_writes_rows_and_images_as_they_are_stored(tmp_path, hub):
    held, asked = hub
    held["image_edition"] = edit_rows()
    report = prepare(tmp_path, "edit")
    assert report.complete
    assert report.lines[0].startswith(
        "genai_bench_tiger: Jiang et al., GenAI Arena (2024)"
    )
    assert "licence: CC BY 4.0" in report.lines[0]
    assert report.lines[1:] == (
        "genai_bench_tiger/edit: ready, 3 contests (the published set has 919)",
    )
    assert asked == ["image_edition"]
    contests = BENCHMARK.load(tmp_path, "edit")
    assert votes(contests) == ["first", "both_bad", "both_good"]
    assert [[sample.id.image_model for sample in c.candidates] for c in contests] == [
        ["one", "two"],
        ["two", "three"],
        ["one", "three"],
    ]
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
    assert missing_inputs_reason(viescore.SPEC, contests[0]) == ""


def test_what_is_there_is_not_fetched_again_and_what_is_lost_is(tmp_path, hub):
    held, asked = hub
    held["image_edition"] = edit_rows()
    prepare(tmp_path, "edit")
    before = BENCHMARK.load(tmp_path, "edit")
    assert prepare(tmp_path, "edit").complete
    assert len(asked) == 1
    before[0].candidates[0].images["output"].source.unlink()
    assert prepare(tmp_path, "edit").complete
    assert (len(asked), BENCHMARK.load(tmp_path, "edit")) == (2, before)


def test_contests_have_the_ids_of_those_in_the_logs(tmp_path, hub):
    """So that a recorded answer fits, whether the images are there or not."""
    hub[0]["image_edition"] = edit_rows()
    log(tmp_path, [logged(idx=n) for n in range(3)])
    alone = BENCHMARK.load(tmp_path, "edit")
    prepare(tmp_path, "edit")
    found = [contest.id for contest in BENCHMARK.load(tmp_path, "edit")]
    assert found == [contest.id for contest in alone]
    found = {contest.group for contest in BENCHMARK.load(tmp_path, "edit")}
    assert found == {alone[0].group}


def test_votes_alone_will_do_without_images(tmp_path, hub):
    log(tmp_path, [logged()])
    assert prepare(tmp_path, "edit", images=False).complete
    assert hub[1] == []
    report = prepare(tmp_path, "edit")
    assert not report.complete
    assert report.lines[1] == (
        "genai_bench_tiger/edit: cannot download TIGER-Lab/GenAI-Bench (image_edition) from the Hugging Face Hub "
        "(ConnectionError: no route to the hub); run the command again to retry"
    )
    hub[0]["image_edition"] = edit_rows()
    assert prepare(tmp_path, "edit").complete


def test_rows_without_images_become_rows_with_them(tmp_path, hub):
    hub[0]["image_edition"] = edit_rows()
    assert prepare(tmp_path, "edit", images=False).complete
    assert not (tmp_path / "genai_bench_tiger" / "edit" / "images").exists()
    assert prepare(tmp_path, "edit").complete
    found = missing_inputs_reason(viescore.SPEC, BENCHMARK.load(tmp_path, "edit")[0])
    assert found == ""


def test_an_image_that_cannot_be_read_is_told_and_its_row_kept(tmp_path, hub):
    rows = edit_rows()
    rows[1]["right_output_image"] = {"bytes": b"no image", "path": None}
    hub[0]["image_edition"] = rows
    report = prepare(tmp_path, "edit")
    assert not report.complete
    assert report.lines[1].endswith("edit: cannot read 1 image (first: row 1)")
    contest = BENCHMARK.load(tmp_path, "edit")[1]
    found = missing_inputs_reason(viescore.SPEC, contest)
    assert found == "candidate 2: the sample has no output image"


def test_preparing_leaves_rows_alone_that_are_somebodys_own_and_wrong(tmp_path, hub):
    path = write(tmp_path, row(candidates=[3, 4]))
    before = path.read_text()
    report = prepare(tmp_path, "edit")
    assert (report.complete, hub[1], path.read_text()) == (False, [], before)
    assert "line 1: `candidates` must be a list of objects" in report.lines[1]


def test_rows_of_another_form_are_one_line(tmp_path, hub):
    hub[0]["image_edition"] = [{"prompt": "a cat"}]
    report = prepare(tmp_path, "edit")
    assert not report.complete
    assert (
        "row 0 of TIGER-Lab/GenAI-Bench is malformed (KeyError: 'left_output_image')"
        in report.lines[1]
    )
    assert "no such file, and no judge log" in report.lines[2]


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
    shown = {
        "prompt": "a dog",
        "left_model": "one",
        "right_model": "two",
        "vote_type": "rightvote",
    }
    urls = {f"{side}_video": f"https://host/{side}.mp4" for side in ("left", "right")}
    hub[0]["video_generation"] = [
        {**shown, **urls},
        {**shown, **urls, "vote_type": "tievote"},
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
    assert (len(fetched), len(hub[1])) == (2, 1)
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
            container.mux(
                stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24"))
            )
        container.mux(stream.encode())
    return body.getvalue()
