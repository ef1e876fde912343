"""Contests for judges that vote, and what a scripted backbone says of them."""

import json
from dataclasses import replace

from tests.playing import images_of, play, prepared
from vieval_plugin import Contest, Image, Sample, SampleId, Status, Votes
from vieval_plugin.judges import pairwise
from vieval_plugin.judges.protocol import Probabilities, Text
from vieval_plugin.prompts import packs

PACK = "pairwise/v1"
CONDITIONS = {
    role: Image(role.encode())
    for role in ("source", "subject", "control", "concepts", "mask")
}
TEXTS = {
    "prompt": 'a "red" {{ cat }}',
    "instruction": "add a hat {% if %}",
    "subject": "dog <toy>",
}
SHOWN = {
    "tig": [],
    "tie": ["source"],
    "mie": ["source"],
    "cig": ["control"],
    "sdig": ["subject"],
    "sdie": ["source", "subject"],
    "mcic": ["concepts"],
}
SAID = dict.fromkeys(("tig", "cig", "sdig", "mcic"), "prompt")
SAID |= dict.fromkeys(("tie", "mie"), "instruction")


def contest(number=2, kind="tie", texts=TEXTS):
    """Candidates whose pictures are called after their numbers."""

    def candidate(n):
        images = {**CONDITIONS, "output": Image(str(n).encode())}
        return Sample(SampleId("b", kind, f"m{n}", "1"), images, texts)

    votes = Votes("ranking") if number > 2 else Votes("four_way", "first")
    candidates = tuple(map(candidate, range(1, number + 1)))
    return Contest(SampleId("b", "part", "", "1"), candidates, votes)


def build(reminders=1, **options):
    return pairwise.build(
        pairwise.PairwiseOptions(**options),
        replace(packs.load(PACK), reminders=reminders),
    )


def numbers(ask):
    """The candidates whose pictures an ask shows, in order."""
    names = [image.source.decode() for image in images_of(ask)]
    return [int(name) for name in names if name.isdigit()]


def reply(better, reasoning="because"):
    return Text(json.dumps({"reasoning": reasoning, "better": better}))


def not_applicable(judged, **options):
    verdict = play(prepared("pairwise", **options).program(judged)).verdict
    assert verdict.status is Status.NOT_APPLICABLE
    return verdict.trace[0].reason


def own_pack(
    folder, text, manifest="  tie: {template: q.jinja, images: [source], scores: []}"
):
    folder.mkdir()
    (folder / "manifest.yaml").write_text(
        f"judge: pairwise\nname: mine\nquestions:\n{manifest}\n"
    )
    (folder / "q.jinja").write_text(text)
    return str(folder)


def known(a, b, rest=0.0):
    return Probabilities((a, rest, b, rest), (a, rest, b, rest))
