"""The wording of GenAI-Bench's authors, read from text files of their repository's shape (the
words are ours).
"""

import pytest

from tests.playing import first_asks, images_of, play, prepared, text_of
from vieval_plugin.cli import main
from vieval_plugin.judges.contests import BOTH_BAD, FIRST, SECOND, Contest
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Text
from vieval_plugin.prompts import packs

FILES = {
    "image_edition": (
        "Two edits {of} a picture.\nIt was: <source_prompt>\nIt is to be: <target_prompt>\nDo: "
        "<instruct_prompt>\n"
        "Before: <source_image>\n\nLeft: <left_output_image>\nRight: <right_output_image>\n\nSay "
        "[[A>B]] or {{so}} {% on %}.\n"
    ),
    "image_generation": (
        "\nTwo pictures of <prompt>.\nLeft: <left_image>\nRight: "
        "<right_image>\nSay which, and boldly."
    ),
    "video_generation": (
        "Two films of <prompt>.\nLeft: <left_video>\nRight: <right_video>\nSay which."
    ),
}
TEXTS = {
    "prompt": "a <left_image> {{ cat }}",
    "instruction": "add <target_prompt>",
    "source_prompt": "a dog",
    "target_prompt": "a dog in a hat",
}


@pytest.fixture
def checkout(tmp_path):
    for config, text in FILES.items():
        folder = tmp_path / "repo" / "genaibench" / "templates" / config
        folder.mkdir(parents=True)
        (folder / "pairwise.txt").write_text(text)
        (folder / "viescore.txt").write_text("nothing of ours")
    return tmp_path / "repo"


def imported(checkout):
    to = checkout.parent / "packs"
    assert main(["prompts", "import", "pairwise", str(checkout), "--to", str(to)]) == 0
    return str(to / "authors")


def refused(checkout, capsys, *more):
    to = checkout.parent / "packs"
    assert (
        main(["prompts", "import", "pairwise", str(checkout), "--to", str(to), *more])
        == 1
    )
    assert not to.exists()
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    return said


def contest(kind, frames=0):
    def candidate(name):
        made = {f"frame_{n}": Image(f"{name}{n}".encode()) for n in range(frames)} or {
            "output": Image(name.encode())
        }
        return Sample(
            SampleId("b", kind, name, "1"), {"source": Image(b"source"), **made}, TEXTS
        )

    return Contest(SampleId("b", kind, "", "1"), (candidate("one"), candidate("two")))


def flat(parts):
    return [
        f"({part.source.decode()})" if isinstance(part, Image) else part
        for part in parts
    ]


def test_every_word_and_picture_stands_where_the_authors_have_it(checkout):
    judge = prepared("pairwise", pack=imported(checkout))
    forward, reverse = first_asks(judge.program(contest("tie")))
    assert flat(forward.messages[0].parts) == [
        (
            "Two edits {of} a picture.\nIt was: a dog\nIt is to be: a dog in a hat\nDo: add "
            "<target_prompt>\nBefore: "
        ),
        "(source)",
        "\n\nLeft: ",
        "(one)",
        "\nRight: ",
        "(two)",
        "\n\nSay [[A>B]] or {{so}} {% on %}.",
    ]
    assert flat(reverse.messages[0].parts)[1::2] == ["(source)", "(two)", "(one)"]
    assert flat(reverse.messages[0].parts)[::2] == flat(forward.messages[0].parts)[::2]
    assert forward.schema is reverse.schema is None, "labels are no JSON"


def test_videos_have_their_own_words(checkout):
    judge = prepared("pairwise", pack=imported(checkout))
    image, film = (
        first_asks(judge.program(contest("tig", frames)))[0] for frames in (0, 3)
    )
    assert (
        flat(image.messages[0].parts)[0]
        == "Two pictures of a <left_image> {{ cat }}.\nLeft: "
    )
    assert (
        flat(film.messages[0].parts)[0]
        == "Two films of a <left_image> {{ cat }}.\nLeft: "
    )
    assert flat(film.messages[0].parts)[1:4] == ["(one0)", "(one1)", "(one2)"]
    assert (text_of(image)[-7:], len(images_of(film))) == ("boldly.", 6)


def test_labels_are_read_turned_round_and_asked_for_once(checkout):
    judge = prepared("pairwise", pack=imported(checkout))
    verdict = play(
        judge.program(contest("tie")),
        [Text("It follows the edit.\n[[B>A]]"), Text("[[A>B]]")],
    ).verdict
    assert dict(verdict.choice.votes) == {"forward": SECOND, "reverse": SECOND}
    verdict = play(
        judge.program(contest("tie")), [Text("Left wins. [[A=B]]"), Text("[[A=B=Bad]]")]
    ).verdict
    assert dict(verdict.choice.votes) == {"reverse": BOTH_BAD}
    assert verdict.status is Status.PARSE_FAILURE
    verdict = play(
        judge.program(contest("tie")), [Text("[[A>B]]"), Text('{"better": "A"}')]
    ).verdict
    assert dict(verdict.choice.votes) == {"forward": FIRST}


def test_the_pack_says_how_it_is_answered_and_for_what(checkout):
    pack = packs.load(imported(checkout))
    assert (pack.judge, pack.name, pack.replies) == (
        "pairwise",
        "pairwise/authors",
        "labels",
    )
    assert {kind: question.images for kind, question in pack.questions.items()} == {
        "tie": ("source",),
        "tig": (),
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "<instruct_prompt>",
            "<instruct_prompt> <mood>",
            "has an unknown placeholder 'mood'",
        ),
        ("<right_output_image>", "", "must have one placeholder for each picture"),
        (
            "<right_output_image>",
            "<left_output_image>",
            "must have one placeholder for each picture",
        ),
        ("<source_image>", "", "must have one placeholder for each picture"),
        ("Before", "<right_image>", "must have one placeholder for each picture"),
    ],
)
def test_a_file_that_is_not_as_it_was_is_named(checkout, capsys, old, new, said):
    file = checkout / "genaibench" / "templates" / "image_edition" / "pairwise.txt"
    file.write_text(file.read_text().replace(old, new))
    told = refused(checkout, capsys)
    assert said in told
    assert str(file) in told


def test_what_is_no_checkout_is_refused(checkout, capsys):
    assert "--context does not apply" in refused(checkout, capsys, "--context", "x.txt")
    file = checkout / "genaibench" / "templates" / "image_edition" / "pairwise.txt"
    file.write_bytes(b"\xff\xfe")
    assert f"{file}: the wording cannot be read" in refused(checkout, capsys)
    file.unlink()
    assert f"{file}: the wording is not a file" in refused(checkout, capsys)
    assert "no such folder" in refused(checkout / "elsewhere", capsys)
