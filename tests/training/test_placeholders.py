"""Nothing that a user wrote or a model said is taken by a trainer for an image, a video, a sound
or a turn.
"""

import itertools
import json
from shlex import split

import pytest

from vieval_plugin.judges.conversation import TrainingExample
from vieval_plugin.judges.protocol import Image, Message
from vieval_plugin.training.chat_format import defused, write

PLACEHOLDERS = split(
    "<image> <video> <audio> <|im_start|> <|im_end|> <|vision_start|> <|image_pad|> <IMAGE> "
    "<|vision_end|> <|video_pad|> <|audio_bos|> <|endoftext|> <|eot_id|> "
    "<|begin_of_text|> <|start_header_id|> <\uff5cUser\uff5c> "
    "<\uff5cend\u2581of\u2581sentence\uff5c> <img> </img> <ref> </box> <IMG_CONTEXT> "
    "<start_of_turn> <end_of_turn> <start_of_image> <bos> </s> <s> [INST] [/INST] [IMG] "
    "[IMG_END] <<SYS>> <ref-object> <bbox> <image_1> <|image_1|>"
)


def written(tmp_path, *messages):
    path = tmp_path / "t.jsonl"
    write(path, [TrainingExample("x", "t", messages, (len(messages) - 1,))])
    return json.loads((tmp_path / "t.jsonl").read_text())


def texts(row):
    for message in row["messages"]:
        yield "".join(part["text"] or "" for part in message["content"])


def test_every_placeholder_is_defused_for_a_trainer(tmp_path):
    file = tmp_path / "a.png"
    said = " and ".join(PLACEHOLDERS)
    shown = (Image(file), said, said[:3], Image(file), f"{said}\n{said}")
    by_role = {"system": (said,), "user": shown, "assistant": (said,)}
    row = written(tmp_path, *(Message(*one) for one in by_role.items()))
    whole = "".join(texts(row))
    for placeholder in PLACEHOLDERS:
        assert placeholder not in whole
    assert row["images"] == [str(file)] * 2


def test_none_comes_of_two_texts_side_by_side(tmp_path):
    for placeholder, cut in itertools.product(("<image>", "<|im_start|>"), range(1, 7)):
        row = written(tmp_path, Message("user", (placeholder[:cut], placeholder[cut:])))
        assert placeholder not in "".join(texts(row))


ORDINARY = ["a < b and b > c", "score [7, 8]", "<b>bold</b>", "x <- y"]


@pytest.mark.parametrize(
    "text", [*ORDINARY, "{'a': [1]}", "<think>so</think>", "|a|b|"]
)
def test_ordinary_text_stays_as_it_is(text):
    assert defused(text) == text


def test_what_was_defused_stays_so():
    for placeholder in PLACEHOLDERS:
        once = defused(placeholder)
        assert defused(once) == once != placeholder
