"""Tuning a backbone on exported conversations: what is read, what is refused, what is learnt."""

import itertools
import json
from pathlib import Path
from shlex import split

import pytest

from tests import t2i_eval_run, tiny_model
from tests.refusals import refusal
from tests.stored_results import read_lines, write_lines
from tests.tables import table
from vieval_plugin.cli import main
from vieval_plugin.judges.conversation import TrainingExample
from vieval_plugin.judges.protocol import Image, Message
from vieval_plugin.results.training_records import trained_on
from vieval_plugin.text.errors import VievalError
from vieval_plugin.training import sft
from vieval_plugin.training.chat_format import defused, read, write
from vieval_plugin.training.tuning import Tuning, enough_memory

run = t2i_eval_run.run  # a fixture


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    """What `vieval export` makes of a run of T2I-Eval."""
    out = tmp_path_factory.mktemp("exported") / "train.jsonl"
    command = f"export t2i_eval {run}/verdicts.jsonl --out {out} --trainer trl"
    assert main(split(command)) == 0
    return out


def altered(exported, tmp_path, **changes):
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
    file = altered(exported, tmp_path, messages=messages, images=images, trained=own)
    turns = read([file])[-len(own) :]
    assert [len(turn.prompt) for turn in turns] == own
    count = len(row["images"])
    assert [len(turn.images) for turn in turns] == [count, 2 * count]


@pytest.mark.parametrize(*table("bad_conversations_name_the_row.jsonl"))
def test_bad_conversations_name_the_row(exported, tmp_path, changes, said):
    rows = len(exported.read_text().splitlines())
    line = refusal(read, [altered(exported, tmp_path, **changes)])
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
