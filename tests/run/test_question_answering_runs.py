"""Question answering by a server that knows the graph: the same scores by each road, with the
questions of a prompt asked once for all its images.
"""

import base64
import json
from collections import Counter

import pytest

from tests.builders import a_sample_row
from tests.fake_server import FakeServer, named
from tests.pictures import plain
from tests.stored_results import read_lines, write_lines
from vieval_plugin import Judge
from vieval_plugin.rewards.in_process import open_reward

PROMPT = "a red square beside a blue square"
GRAPH = [
    {"id": 1, "question": "Is there a red square?", "parents": []},
    {"id": 2, "question": "Is there a blue square?", "parents": []},
    {"id": 3, "question": "Are the squares beside each other?", "parents": [1, 2]},
]
# the server answers from the pixels: a red picture has no blue square in it, and so its squares
# stand beside no other
ANSWERS = {
    "red": ["yes", "no", "yes"],
    "blue": ["no", "yes", "no"],
    "green": ["no", "no", "no"],
}
SCORES = {"red": 1 / 3, "blue": 1 / 3, "green": 0.0}
PICTURES = {colour: plain(colour, (32, 32)) for colour in ANSWERS}


class Model:
    """A model that knows the graph; it counts what it was asked."""

    def __init__(self):
        self.asked = Counter()

    def __call__(self, request):
        properties = request["response_format"]["json_schema"]["schema"]["properties"]
        if "probe" in properties:
            return '{"probe": "vieval"}'
        content = request["messages"][-1]["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        text = "".join(part.get("text", "") for part in parts)
        urls = [part["image_url"]["url"] for part in parts if "image_url" in part]
        if "questions" in properties:
            assert not urls
            self.asked["questions"] += 1
            return json.dumps({"questions": GRAPH})
        [image] = [base64.b64decode(url.split(",")[1]) for url in urls]
        assert PROMPT not in text
        [colour] = [name for name, picture in PICTURES.items() if picture == image]
        [number] = [q["id"] for q in GRAPH if q["question"] in text]
        self.asked[colour] += 1
        return json.dumps({"answer": ANSWERS[colour][number - 1]})


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def server(model):
    with FakeServer(reply=model) as server:
        yield server


def test_questions_are_asked_once_for_all_images(model, server, tmp_path):
    options = {"store": {"path": str(tmp_path / "replies.sqlite")}}
    named = {"model": "fake", "base_url": server.base_url, "options": options}
    with Judge("question_answering", **named) as judge:
        scores = judge.score(list(PICTURES.values()), PROMPT)
        found = dict(zip(PICTURES, scores.tolist(), strict=True))
        assert found == pytest.approx(SCORES)
    assert model.asked == {"questions": 1, "red": 3, "blue": 3, "green": 3}


@pytest.mark.slow
def test_score_shards_and_reward_give_the_same_scores(model, server, tmp_path, vieval):
    images = tmp_path / "images.parquet"
    shards = tmp_path / "shards"
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"uid": name, "prompt": PROMPT, "image": {"bytes": picture}}
        for name, picture in PICTURES.items()
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), images)
    command = ("score", images, "--judge", "question_answering", *named(server))
    for out in (tmp_path / "verdicts.jsonl", shards):
        vieval(*command, "--out", out)
    files = (shards / "verdicts").glob("*.parquet")
    table = pyarrow.concat_tables([parquet.read_table(path) for path in files])
    for rows in (read_lines(tmp_path / "verdicts.jsonl"), table.to_pylist()):
        found = {row["uid"]: row["scores"]["SC"] for row in rows}
        assert found == pytest.approx(SCORES)
    served_by = {"model": "fake", "base_url": server.base_url}
    reward = open_reward("question_answering:SC", **served_by)
    samples = reward.samples([PROMPT] * 3, list(PICTURES.values()))
    found = [value.value for value in reward.values(samples)]
    assert found == pytest.approx(list(SCORES.values()))


@pytest.mark.parametrize(
    ("judge", "sub_tasks"),
    [
        ("question_answering", {"questions": 3, "answers": 9}),
        ("viescore", {"SC": 3, "PQ": 3}),
    ],
)
def test_conversations_are_exported(server, tmp_path, vieval, judge, sub_tasks):
    rows = []
    for name, picture in PICTURES.items():
        (tmp_path / f"{name}.png").write_bytes(picture)
        rows.append(a_sample_row(name, f"{name}.png", PROMPT))
    samples = write_lines(tmp_path / "samples.jsonl", rows)
    verdicts, out = tmp_path / "verdicts.jsonl", tmp_path / "train.jsonl"
    with FakeServer() as scored:
        asked = server if judge == "question_answering" else scored
        vieval("score", samples, "--judge", judge, *named(asked), "--out", verdicts)
    vieval("export", judge, verdicts, "--out", out)
    rows = read_lines(out)
    assert Counter(row["sub_task"] for row in rows) == sub_tasks
    for row in rows:
        *before, last = row["messages"]
        assert last["role"] == "assistant"
        parts = [part["type"] for message in before for part in message["content"]]
        assert parts.count("image") == len(row["images"])
    found = {len(row["images"]) for row in rows}
    assert found == ({0, 1} if judge == "question_answering" else {1})
