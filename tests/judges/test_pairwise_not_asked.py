"""What a judge of contests is not asked about, and packs that do not show what they must."""

import pytest

from tests.asked_contests import CONDITIONS, TEXTS, contest, not_applicable, own_pack
from tests.playing import first_asks, images_of, prepared
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_in_batches


def test_a_candidate_without_its_image_is_not_applicable():
    whole = contest()
    first, second = whole.candidates
    bare = Sample(second.id, CONDITIONS, second.texts)
    said = not_applicable(Contest(whole.id, (first, bare)))
    assert said == "candidate 2: the sample has no image output or frame_0 or view_0"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"texts": {**TEXTS, "instruction": "other"}}, "instruction differs"),
        ({"texts": {**TEXTS, "extra": "x"}}, "extra differs"),
        ({"images": {**CONDITIONS, "source": Image(b"other"), "output": Image(b"2")}}, "source differs"),
        ({"kind": "mie"}, "kind differs"),
    ],
)
def test_candidates_of_different_conditions_are_no_contest(change, reason):
    first, second = contest().candidates
    fields = {"images": second.images, "texts": second.texts, "kind": second.kind, **change}
    said = not_applicable(Contest(SampleId("b", "p", "", "1"), (first, Sample(second.id, **fields))))
    assert said == f"candidates 1 and 2 were not made under the same conditions: {reason}"


def test_what_one_question_cannot_hold_is_not_applicable():
    assert "for two candidates, and the contest has 3" in not_applicable(contest(3), mode="expected")
    assert "at most 26" in not_applicable(contest(27))
    assert "does not know the kind" in not_applicable(contest(kind="new"))
    assert "judges contests, and this is a sample" in not_applicable(contest().candidates[0])


@pytest.mark.parametrize(
    "text",
    [
        "{{ places.source }}{{ candidates[0].place }}",
        "{{ candidates[0].place }}{{ candidates[1].place }}",
        "{{ places.source }}{{ candidates[0].place }}{{ candidates[0].place }}{{ candidates[1].place }}",
        "nothing",
    ],
)
def test_a_pack_that_does_not_show_everything_once_is_named(tmp_path, text):
    judge = prepared("pairwise", pack=own_pack(tmp_path / "pack", text))
    [outcome] = judge_in_batches([Job(contest(), judge)], lambda asks: [], Progress())
    assert outcome.verdict.status is Status.TOOL_ERROR
    assert "prompt pack mine, template q.jinja: it has places for" in outcome.verdict.trace[0].reason


def test_a_pack_may_show_fewer_kinds_and_other_images(tmp_path):
    places = "{{ places.mask }}{% for one in candidates %}{{ one.place }}{% endfor %}"
    shows_mask = "  mie: {template: q.jinja, images: [mask], scores: []}"
    pack = own_pack(tmp_path / "pack", places, shows_mask)
    assert not_applicable(contest(), pack=pack) == "the prompt pack mine has no question for the kind 'tie'"
    [forward, _] = first_asks(prepared("pairwise", pack=pack).program(contest(kind="mie")))
    assert images_of(forward)[0] == CONDITIONS["mask"]
    bare = tuple(
        Sample(c.id, {role: i for role, i in c.images.items() if role != "mask"}, c.texts)
        for c in contest(kind="mie").candidates
    )
    said = not_applicable(Contest(SampleId("b", "p", "", "1"), bare), pack=pack)
    assert said == "the prompt pack mine shows the image mask, which the candidates do not have"
