"""Test the import of GenAI-Bench's wording, from a repository of its shape."""

import pytest

from tests.playing import first_asks, images_of, play, prepared, text_of
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin.importers.pairwise import import_wording
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


def checkout(root):
    for config, text in FILES.items():
        folder = root / "genaibench" / "templates" / config
        folder.mkdir(parents=True)
        (folder / "pairwise.txt").write_text(text)
        (folder / "viescore.txt").write_text("nothing of ours")
    return root


@pytest.fixture
def imported(tmp_path):
    """The pack of the wording of a checkout."""
    [folder] = import_wording(checkout(tmp_path / "repo"), tmp_path / "packs")
    return str(folder)


def contest(kind, frames=0):
    def candidate(name):
        images = {f"frame_{n}": Image(f"{name}{n}".encode()) for n in range(frames)}
        images = images or {"output": Image(name.encode())}
        images["source"] = Image(b"source")
        return Sample(SampleId("b", kind, name, "1"), images, TEXTS)

    return Contest(SampleId("b", kind, "", "1"), (candidate("one"), candidate("two")))


def flat(ask):
    parts = ask.messages[0].parts
    is_image = lambda part: isinstance(part, Image)
    return [f"({p.source.decode()})" if is_image(p) else p for p in parts]


BEFORE = """Two edits {of} a picture.
It was: a dog
It is to be: a dog in a hat
Do: add <target_prompt>
Before: """


def test_every_word_and_picture_stands_where_the_authors_have_it(imported):
    judge = prepared("pairwise", pack=imported)
    forward, reverse = first_asks(judge.program(contest("tie")))
    texts, images = flat(forward)[::2], flat(forward)[1::2]
    after = "\n\nSay [[A>B]] or {{so}} {% on %}."
    assert texts == [BEFORE, "\n\nLeft: ", "\nRight: ", after]
    assert images == ["(source)", "(one)", "(two)"]
    assert flat(reverse)[1::2] == ["(source)", "(two)", "(one)"]
    assert flat(reverse)[::2] == texts
    assert forward.schema is reverse.schema is None, "labels are no JSON"


def test_videos_have_their_own_words(imported):
    judge = prepared("pairwise", pack=imported)
    judged = (contest("tig", frames) for frames in (0, 3))
    image, film = (first_asks(judge.program(one))[0] for one in judged)
    cat = "a <left_image> {{ cat }}.\nLeft: "
    assert flat(image)[0] == f"Two pictures of {cat}"
    assert flat(film)[:4] == [f"Two films of {cat}", "(one0)", "(one1)", "(one2)"]
    assert (text_of(image)[-7:], len(images_of(film))) == ("boldly.", 6)


@pytest.mark.parametrize(
    ("forward", "reverse", "votes"),
    [
        ("So:\n[[B>A]]", "[[A>B]]", {"forward": SECOND, "reverse": SECOND}),
        ("Left wins. [[A=B]]", "[[A=B=Bad]]", {"reverse": BOTH_BAD}),
        ("[[A>B]]", '{"better": "A"}', {"forward": FIRST}),
    ],
)
def test_labels_are_read_turned_round_and_asked_for_once(
    imported, forward, reverse, votes
):
    judge = prepared("pairwise", pack=imported)
    replies = [Text(forward), Text(reverse)]
    verdict = play(judge.program(contest("tie")), replies).verdict
    assert dict(verdict.choice.votes) == votes
    assert (verdict.status is Status.PARSE_FAILURE) == (len(votes) == 1)


def test_the_pack_says_how_it_is_answered_and_for_what(imported):
    pack = packs.load(imported)
    assert (pack.name, pack.replies) == ("pairwise/authors", "labels")
    shown = {kind: question.images for kind, question in pack.questions.items()}
    assert shown == {"tie": ("source",), "tig": ()}


@pytest.mark.parametrize(*table("changed_pairwise_wording.jsonl"))
def test_a_file_that_is_not_as_it_was_is_named(tmp_path, old, new, said):
    repo = checkout(tmp_path / "repo")
    file = repo / "genaibench" / "templates" / "image_edition" / "pairwise.txt"
    file.write_text(file.read_text().replace(old, new))
    told = refusal(import_wording, repo, tmp_path / "packs")
    assert said in told
    assert str(file) in told
