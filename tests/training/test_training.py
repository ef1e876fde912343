"""From a run to training examples that trainers read: of T2I-Eval, and of CIGEval with the images
that its tools made; and tuning a backbone on them.
"""

import itertools
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from shlex import split
from statistics import fmean

import numpy as np
import PIL.Image
import pytest

from tests import t2i_eval_run, tiny_model
from tests.cigeval_script import PACK, built
from tests.extras import needs
from tests.playing import images_of, label_of, play
from tests.refusals import refusal
from tests.stored_results import read_lines, result, write_lines
from tests.t2i_eval_run import SCENES, implied
from tests.tables import table
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.cli import main
from vieval_plugin.images import decode
from vieval_plugin.judges.cigeval import plan as planned
from vieval_plugin.judges.cigeval import react, units
from vieval_plugin.judges.conversation import TrainingExample, TrainingUnit
from vieval_plugin.judges.protocol import Chat, Image, Message, SampleId, Text, Verdict
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results.lookup import conversation
from vieval_plugin.results.training_records import trained_on
from vieval_plugin.run.verdict_lines import run_file
from vieval_plugin.text.errors import VievalError
from vieval_plugin.training import sft
from vieval_plugin.training.chat_format import defused, read, write
from vieval_plugin.training.export import (
    BINS,
    bin_of,
    is_near_human,
    rebalanced,
    score_counts,
)
from vieval_plugin.training.tuning import Tuning, enough_memory

run = t2i_eval_run.run  # a fixture


def export(run, out, *options):
    assert main([*split(command(run, out)), *options]) == 0
    return read_lines(out)


def images_in(messages, key="type"):
    """Parts of messages that are images."""
    parts = [part for message in messages for part in message["content"]]
    return [part[key] for part in parts if part["type"] == "image"]


def test_every_call_becomes_an_example(run, tmp_path, capsys):
    rows = export(run, tmp_path / "train.jsonl")
    assert len(rows) == sum(map(implied, SCENES))
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        *before, last = row["messages"]
        assert last["role"] == "assistant"
        assert row["trained"] == [len(before)]
        assert len(images_in(before)) == len(row["images"])
        assert all(Path(file).is_file() for file in row["images"])
    counted = Counter(row["sub_task"] for row in rows)
    assert counted["extraction"] == 3
    attributes = sum(scene.counts[1] for scene in SCENES)
    assert counted["intrinsic answer"] == counted["intrinsic score"] == attributes
    assert counted["relationship summary score"] == 2
    printed = capsys.readouterr().out
    assert "not rebalanced" in printed
    [total] = [line for line in printed.splitlines() if line.startswith("all")]
    assert total.split() == ["all", str(len(rows)), str(len(rows))]


def test_datasets_and_trl_read_every_example(exported, tmp_path):
    datasets = pytest.importorskip("datasets")
    data_utils = pytest.importorskip("trl.data_utils")
    rows = read_lines(exported)
    files = {"data_files": str(exported), "cache_dir": str(tmp_path)}
    loaded = datasets.load_dataset("json", **files)["train"]
    assert len(loaded) == len(rows)
    columns = {"id", "sub_task", "messages", "images", "trained"}
    assert set(loaded.column_names) == columns
    for row in rows:
        assert data_utils.is_conversational(row)
        pictures = [PIL.Image.open(file) for file in row["images"]]
        prepare = data_utils.prepare_multimodal_messages
        prepared = prepare(row["messages"], images=pictures)
        assert images_in(prepared, "image") == pictures


def test_scores_are_brought_to_the_third_quartile_of_their_counts():
    held = {9: 40, 8: 20, 7: 12, 3: 5, 0: 1}
    units = [
        TrainingUnit("appearance", "appearance", score + 0.5, ())
        for score, count in held.items()
        for _ in range(count)
    ]
    target = int(np.percentile([held.get(score, 0) for score in range(BINS)], 75))
    assert target == 8
    after = rebalanced(units, 0, {})
    assert score_counts(after)["appearance"] == (8, 0, 0, 8, 0, 0, 0, 8, 8, 8, 0)
    assert {bin_of(unit.score or 0) for unit in after} == set(held)
    assert rebalanced(units, 0, {}) == after


def test_sub_tasks_are_repeated_as_published(run, tmp_path, capsys):
    first = export(run, tmp_path / "a.jsonl", "--rebalance", "--seed", "3")
    assert export(run, tmp_path / "b.jsonl", "--rebalance", "--seed", "3") == first
    assert export(run, tmp_path / "c.jsonl", "--rebalance", "--seed", "4") != first
    counted = Counter(row["sub_task"] for row in first)
    assert counted["extraction"] == 8 * len(SCENES)
    assert "seed 4" in capsys.readouterr().out


def command(run, out):
    return f"export t2i_eval {run}/verdicts.jsonl --out {out}"


def altered(run, folder, **of_provenance):
    """The run with another provenance."""
    document = json.loads(run_file(run / "verdicts.jsonl").read_text())
    for of_run in document["runs"].values():
        of_run["provenance"] |= of_provenance
    run_file(folder / "verdicts.jsonl").write_text(json.dumps(document))
    for file in (*run.glob("*.png"), run / "verdicts.jsonl"):
        shutil.copy(file, folder)
    return folder


def test_results_carry_their_options(run, exported, tmp_path, monkeypatch):
    options = tmp_path / "options.yaml"
    options.write_text("judges: {t2i_eval: {mode: framework}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    assert export(run, tmp_path / "after.jsonl") == read_lines(exported)


def test_another_pack_or_image_cannot_be_passed_off_as_that_of_the_run(
    run, tmp_path, vieval
):
    pack = r"with pack t2i_eval/v1 \(another\), but .* restore that pack"
    for folder, changes, said in (
        (tmp_path / "pack", {"pack_hash": "another"}, pack),
        (tmp_path / "images", {}, "has changed since it was judged"),
    ):
        folder.mkdir()
        images = altered(run, folder, **changes).glob("*.png")
        for file in () if changes else images:
            file.write_bytes(file.read_bytes() + b"more")
        refused = vieval(command(folder, tmp_path / "x"), code=1).err
        assert re.search(said, refused)
        assert not (tmp_path / "x").exists()


CV2 = needs("cv2")
PAPER, REACT = (built(form=form, only=("difference",)) for form in (planned, react))


def answer(ask):
    """A model that has the difference tool look at everything, and finds all of it middling."""
    if not isinstance(ask, Chat):
        return backend.run(ask)
    if label_of(ask) == "plan":
        entry = {"used": True, "tool": "difference", "reasoning": "to see"}
        entries = [{"task_id": number, **entry} for number in (1, 2)]
        return Text(json.dumps({"plan": entries}))
    turn = {"thought": "look", "tool": "difference", "phrases": []}
    if label_of(ask).endswith("/turn 1"):
        return Text(json.dumps({**turn, "score": [], "reasoning": "fine"}))
    rating = {"score": [5], "reasoning": "so so"}
    is_turn = "turn" in label_of(ask)
    return Text(json.dumps({**turn, "tool": "none", **rating} if is_turn else rating))


def held(judge, sample):
    played = play(judge(sample), answer=answer)
    return played.verdict, played.asks


def examples(sample, judge, verdict):
    found = units(sample.id, conversation(judge, sample, verdict))
    return [one for unit in found for one in unit.examples]


def asked_in(example):
    """The question of an example."""
    return example.id.rpartition(".png/")[2]


@pytest.fixture(scope="module")
def sample():
    """A drawn mask-guided edit whose source and output differ."""
    return vieval_demo.load(Path(), "mie")[0]


@CV2
@pytest.mark.parametrize("judge", [PAPER, REACT])
def test_the_conversation_is_told_again_with_images(judge, sample):
    verdict, asked = held(judge, sample)
    told = conversation(judge, sample, verdict)
    assert [one.ask for one in told] == asked
    assert {label_of(one.ask) for one in told} <= {step.label for step in verdict.trace}
    drawn = [one.reply.image for one in told if getattr(one.reply, "image", None)]
    assert len(drawn) == 4, "source and output of two sub-questions"


@CV2
def test_of_the_first_form_each_call_is_an_example_with_what_its_tool_showed(sample):
    verdict, asked = held(PAPER, sample)
    made = {asked_in(one): one for one in examples(sample, PAPER, verdict)}
    assert list(made) == ["plan", "edit/rating", "restraint/rating"]
    chats = {label_of(ask): ask for ask in asked if isinstance(ask, Chat)}
    for label, one in made.items():
        assert one.messages[:-1] == chats[label].messages
        assert one.trained == (1,)
    shown = images_of(made["edit/rating"])
    assert all(isinstance(image.source, bytes) for image in shown)
    size = decode(sample.images["source"]).size
    assert [decode(image).size for image in shown] == [size] * 2


@CV2
def test_in_the_second_form_a_sub_question_is_one_example(sample):
    verdict, _ = held(REACT, sample)
    made = examples(sample, REACT, verdict)
    assert list(map(asked_in, made)) == ["edit/turn 2", "restraint/turn 2"]
    for one in made:
        assert [message.role for message in one.messages] == ["user", "assistant"] * 2
        assert one.trained == (1, 3)
        observed = [part for part in one.messages[2].parts if isinstance(part, Image)]
        assert len(observed) == 2, "the observation has the highlighted images"


@pytest.mark.parametrize(*table("near_human.jsonl"))
def test_a_verdict_is_kept_within_the_margin_of_the_human_mean(score, ratings, kept):
    scores = {} if score is None else {"SC": score}
    rated = {"SC": tuple(ratings)} if ratings else {}
    source = Provenance("cigeval", ("paper",), ("SC",))
    identity = SampleId("b", "tie", "m", "u")
    record = Record(identity, Verdict(scores, "ok"), source, rated)
    assert is_near_human(record, "SC", 0.3) is kept


@CV2
def test_export_counts_what_it_kept(tmp_path, monkeypatch, capsys):
    options = tmp_path / "v.yaml"
    options.write_text("judges: {cigeval: {removed: [grounding, scene_graph, ocr]}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    judged = vieval_demo.load(Path(), "mie")[:6]
    source = Provenance("cigeval", ("paper",), ("SC",), "m", PACK.name, PACK.hash)
    rows = [result(one, held(PAPER, one)[0], source) for one in judged]
    results = tmp_path / "1_samples_vieval_demo_cigeval_mie.jsonl"
    write_lines(results, rows)
    out = tmp_path / "t.jsonl"
    assert main(split(f"export cigeval {results} --out {out} --trainer trl")) == 0
    means = [fmean(one.ratings["SC"]) for one in judged]
    near = sum(abs(0.5 - mean) <= 0.3 + 1e-9 for mean in means)
    assert 0 < near < len(judged)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"wrote {out}: {3 * near} examples from 6 verdicts"
    assert lines[3].split() == ["mie", "6", str(near), str(6 - near)]
    written = read_lines(out)
    assert Counter(row["sub_task"] for row in written) == {
        "plan": near,
        "rating": 2 * near,
    }
    for row in written:
        parts = [part for message in row["messages"] for part in message["content"]]
        images = [part for part in parts if part["type"] == "image"]
        assert len(images) == len(row["images"])


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    """What `vieval export` makes of a run of T2I-Eval."""
    out = tmp_path_factory.mktemp("exported") / "train.jsonl"
    command = f"export t2i_eval {run}/verdicts.jsonl --out {out} --trainer trl"
    assert main(split(command)) == 0
    return out


def with_changed_row(exported, tmp_path, **changes):
    first, *rest = read_lines(exported)
    return write_lines(tmp_path / "altered.jsonl", [*rest, {**first, **changes}])


def test_every_turn_that_is_learnt_has_what_came_before_it(exported):
    rows = read_lines(exported)
    turns = read([exported])
    assert len(turns) == sum(len(row["trained"]) for row in rows) == len(rows)
    for row, turn in zip(rows, turns, strict=True):
        assert [*turn.prompt, *turn.completion] == row["messages"]
        assert list(turn.images) == row["images"]
        assert turn.sample == "/".join(row["id"].split("/")[:4])


def test_each_turn_of_a_longer_conversation_is_learnt_by_itself(exported, tmp_path):
    row, *_ = read_lines(exported)
    messages, images = row["messages"] * 2, row["images"] * 2
    roles = [message["role"] for message in messages]
    own = [place for place, role in enumerate(roles) if role == "assistant"]
    file = with_changed_row(
        exported, tmp_path, messages=messages, images=images, trained=own
    )
    turns = read([file])[-len(own) :]
    assert [len(turn.prompt) for turn in turns] == own
    count = len(row["images"])
    assert [len(turn.images) for turn in turns] == [count, 2 * count]


@pytest.mark.parametrize(*table("bad_conversations_name_the_row.jsonl"))
def test_bad_conversations_name_the_row(exported, tmp_path, changes, said):
    rows = len(exported.read_text().splitlines())
    line = refusal(read, [with_changed_row(exported, tmp_path, **changes)])
    assert said in line
    assert f"row {rows}" in line


def test_checkpoints_of_another_tuning_are_not_gone_on_from(tmp_path):
    checkpoints = tmp_path / "checkpoints"
    tuning = Tuning("base", seed=0)
    assert sft._resume_or_begin(checkpoints, tuning) is None
    (checkpoints / "checkpoint-3").mkdir()
    kept = str(checkpoints / "checkpoint-3")
    assert sft._resume_or_begin(checkpoints, tuning) == kept
    line = refusal(sft._resume_or_begin, checkpoints, Tuning("base", seed=1))
    assert "trained with seed 0, got 1; use the same value" in line
    (checkpoints / "options.json").write_text("[[")
    with pytest.raises(VievalError, match="remove .*checkpoints"):
        sft._resume_or_begin(checkpoints, tuning)


FULL = "I/O error: No space left on device (os error 28)"
FREE = "free disk space or choose another --out"


@pytest.mark.parametrize(
    ("tuning", "error", "said"),
    [
        ({"batch_size": 8}, MemoryError(), "4 --accumulate 2, which trains the same"),
        ({"batch_size": 1, "tune": "full"}, MemoryError(), "use --tune lora"),
        ({"batch_size": 1}, RuntimeError("not enough memory"), "use a smaller base"),
        ({}, OSError(28, "No space left on device"), FREE),
        ({}, RuntimeError(FULL), "free disk space"),
        # which is not called memory or room
        ({}, FileNotFoundError(2, "No such file", "a.png"), None),
    ],
)
def test_what_runs_out_is_one_line(tuning, error, said):
    raised = VievalError if said else FileNotFoundError
    with (
        pytest.raises(raised, match=said),
        enough_memory(Tuning("b", **tuning), "turns"),
        sft._enough_room(Path("out")),
    ):
        raise error


def test_bad_options_are_one_line(exported, tmp_path, vieval):
    command = f"train sft {exported} --base none --out {tmp_path}/out"
    for name, value in (("--held-out", "1"), ("--learning-rate", "-1")):
        printed = vieval(command, name, value, code=1).err
        assert name in printed
        assert value in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_tuned_model_has_learnt_and_is_a_model_again(exported, tmp_path, capsys):
    pytest.importorskip("trl")
    base = tiny_model.build(tmp_path / "base")
    tuned = tmp_path / "tuned"
    plan = "--steps 6 --batch-size 2 --learning-rate 3e-3 --held-out 0.4 --tune full"
    command = f"train sft {exported} --base {base} --out {tuned} {plan}"
    assert main(split(command)) == 0
    record = json.loads((tuned / "training_record.json").read_text())
    losses = record["losses"]
    assert losses["held_out_after"] < losses["held_out_before"]
    assert trained_on(tuned) == set(record["uids"])
    assert not set(record["uids"]) & set(record["held_out_uids"])
    assert "held out: loss" in capsys.readouterr().out
    assert (tuned / "model.safetensors").exists()
    assert not (tuned / "checkpoints").exists()


PLACEHOLDERS = split(
    "<image> <video> <audio> <|im_start|> <|im_end|> <|vision_start|> <|image_pad|> <IMAGE> "
    "<|vision_end|> <|video_pad|> <|audio_bos|> <|endoftext|> <|eot_id|> "
    "<|begin_of_text|> <|start_header_id|> <\uff5cUser\uff5c> "
    "<\uff5cend\u2581of\u2581sentence\uff5c> <img> </img> <ref> </box> <IMG_CONTEXT> "
    "<start_of_turn> <end_of_turn> <start_of_image> <bos> </s> <s> [INST] [/INST] [IMG] "
    "[IMG_END] <<SYS>> <ref-object> <bbox> <image_1> <|image_1|>"
)


def written(tmp_path, *messages):
    """A conversation as its row in a file has it, and its texts."""
    path = tmp_path / "t.jsonl"
    write(path, [TrainingExample("x", "t", messages, (len(messages) - 1,))])
    row = json.loads(path.read_text())
    parts = [message["content"] for message in row["messages"]]
    return row, "".join(part["text"] or "" for part in itertools.chain(*parts))


def test_every_placeholder_is_defused_for_a_trainer(tmp_path):
    file = tmp_path / "a.png"
    said = " and ".join(PLACEHOLDERS)
    shown = (Image(file), said, said[:3], Image(file), f"{said}\n{said}")
    by_role = {"system": (said,), "user": shown, "assistant": (said,)}
    row, whole = written(tmp_path, *(Message(*one) for one in by_role.items()))
    for placeholder in PLACEHOLDERS:
        assert placeholder not in whole
    assert row["images"] == [str(file)] * 2
    # none comes of two texts side by side
    for placeholder, cut in itertools.product(("<image>", "<|im_start|>"), range(1, 7)):
        halves = placeholder[:cut], placeholder[cut:]
        assert placeholder not in written(tmp_path, Message("user", halves))[1]


ORDINARY = ["a < b and b > c", "score [7, 8]", "<b>bold</b>", "x <- y"]


def test_ordinary_text_stays_and_what_was_defused_stays_so():
    for text in (*ORDINARY, "{'a': [1]}", "<think>so</think>", "|a|b|"):
        assert defused(text) == text
    for placeholder in PLACEHOLDERS:
        once = defused(placeholder)
        assert defused(once) == once != placeholder
