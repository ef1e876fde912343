"""CIGEval's conversations told again with the images its tools made, and kept for training near
the human mean.
"""

import json
from collections import Counter
from pathlib import Path
from shlex import split

import PIL.Image
import pytest

from tests.cigeval_script import PACK, built
from tests.extras import needs
from tests.playing import label_of, play
from tests.stored_results import read_lines, write_lines
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.cli import main
from vieval_plugin.images import decode
from vieval_plugin.judges.cigeval import plan as planned
from vieval_plugin.judges.cigeval import react, units
from vieval_plugin.judges.protocol import Chat, Image, SampleId, Text, Verdict
from vieval_plugin.records import Provenance, Record, response_json, target_json
from vieval_plugin.results.lookup import conversation
from vieval_plugin.training.export import is_near_human

pytestmark = needs("cv2")

PAPER, REACT = (built(form=form, only=("difference",)) for form in (planned, react))


def answer(ask):
    """A model that has the difference tool look at everything, and finds all of it middling."""
    if not isinstance(ask, Chat):
        return backend.run(ask)
    if label_of(ask) == "plan":
        entries = [
            {"task_id": n, "used": True, "tool": "difference", "reasoning": "to see"}
            for n in (1, 2)
        ]
        return Text(json.dumps({"plan": entries}))
    turn = {
        "thought": "look",
        "tool": "difference",
        "phrases": [],
        "score": [],
        "reasoning": "fine",
    }
    if label_of(ask).endswith("/turn 1"):
        return Text(json.dumps(turn))
    rating = {"score": [5], "reasoning": "so so"}
    text = json.dumps(
        {**turn, "tool": "none", **rating} if "turn" in label_of(ask) else rating
    )
    return Text(text)


def held(judge, sample):
    played = play(judge(sample), answer=answer)
    return played.verdict, played.asks


def examples(sample, judge, verdict):
    found = units(sample.id, conversation(judge, sample, verdict))
    return [one for unit in found for one in unit.examples]


@pytest.fixture(scope="module")
def sample():
    """A drawn mask-guided edit whose source and output differ."""
    return vieval_demo.load(Path(), "mie")[0]


@pytest.mark.parametrize("judge", [PAPER, REACT])
def test_the_conversation_is_told_again_with_images(judge, sample):
    verdict, asked = held(judge, sample)
    told = conversation(judge, sample, verdict)
    assert [one.ask for one in told] == asked
    assert {label_of(one.ask) for one in told} <= {step.label for step in verdict.trace}
    drawn = [one.reply.image for one in told if getattr(one.reply, "image", None)]
    assert len(drawn) == 4, "source and output of two sub-questions"


def test_of_the_first_form_each_call_is_an_example_with_what_its_tool_showed(sample):
    verdict, asked = held(PAPER, sample)
    made = {
        one.id.rpartition(".png/")[2]: one for one in examples(sample, PAPER, verdict)
    }
    assert list(made) == ["plan", "edit/rating", "restraint/rating"]
    chats = {label_of(ask): ask for ask in asked if isinstance(ask, Chat)}
    for label, one in made.items():
        assert one.messages[:-1] == chats[label].messages
        assert one.trained == (1,)
    shown = [
        part
        for part in made["edit/rating"].messages[0].parts
        if isinstance(part, Image)
    ]
    assert all(isinstance(image.source, bytes) for image in shown)
    found = [decode(image).size for image in shown]
    assert found == ([decode(sample.images["source"]).size] * 2)


def test_in_the_second_form_a_sub_question_is_one_example(sample):
    verdict, _ = held(REACT, sample)
    made = examples(sample, REACT, verdict)
    assert [one.id.rpartition(".png/")[2] for one in made] == [
        "edit/turn 2",
        "restraint/turn 2",
    ]
    for one in made:
        found = [message.role for message in one.messages]
        assert found == (split("user assistant user assistant"))
        assert one.trained == (1, 3)
        observed = [part for part in one.messages[2].parts if isinstance(part, Image)]
        assert len(observed) == 2, "the observation has the highlighted images"


@pytest.mark.parametrize(
    ("score", "ratings", "kept"),
    [
        (0.8, (0.5, 0.5, 0.5), True),
        (0.81, (0.5, 0.5, 0.5), False),
        (0.2, (1.0, 0.5, 0.0), True),
        (0.9, (), False),
        (None, (1.0,), False),
    ],
)
def test_a_verdict_is_kept_within_the_margin_of_the_human_mean(score, ratings, kept):
    scores = {} if score is None else {"SC": score}
    rated = {"SC": ratings} if ratings else {}
    record = Record(
        SampleId("b", "tie", "m", "u"),
        Verdict(scores, "ok"),
        Provenance("cigeval", ("paper",), ("SC",)),
        rated,
    )
    assert is_near_human(record, "SC", 0.3) is kept


def test_export_counts_what_it_kept_and_trl_reads_it(tmp_path, monkeypatch, capsys):
    data_utils = pytest.importorskip("trl.data_utils")
    options = tmp_path / "v.yaml"
    options.write_text("judges: {cigeval: {removed: [grounding, scene_graph, ocr]}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    judged = vieval_demo.load(Path(), "mie")[:6]
    rows = []
    for one in judged:
        verdict, _ = held(PAPER, one)
        source = Provenance("cigeval", ("paper",), ("SC",), "m", PACK.name, PACK.hash)
        rows.append(
            {
                "filtered_resps": [response_json(one.id, verdict, source)],
                "target": target_json(one),
            }
        )
    results = tmp_path / "1_samples_vieval_demo_cigeval_mie.jsonl"
    write_lines(results, rows)
    command = [
        "export",
        "cigeval",
        str(results),
        *split(f"--out {tmp_path}/t.jsonl --trainer trl"),
    ]
    found = main(command)
    assert found == 0
    near = [
        one
        for one in judged
        if abs(0.5 - sum(one.ratings["SC"]) / len(one.ratings["SC"])) <= 0.3 + 1e-9
    ]
    assert 0 < len(near) < len(judged)
    lines = capsys.readouterr().out.splitlines()
    found = lines[0]
    expected = f"wrote {tmp_path / 't.jsonl'}: {3 * len(near)} examples from 6 verdicts"
    assert found == expected
    assert lines[3].split() == ["mie", "6", str(len(near)), str(6 - len(near))]
    written = read_lines(tmp_path / "t.jsonl")
    assert Counter(row["sub_task"] for row in written) == {
        "plan": len(near),
        "rating": 2 * len(near),
    }
    for row in written:
        pictures = [PIL.Image.open(file) for file in row["images"]]
        prepared = data_utils.prepare_multimodal_messages(
            row["messages"], images=pictures
        )
        assert sum(
            part["type"] == "image"
            for message in prepared
            for part in message["content"]
        ) == len(pictures)
