"""Contests for judges that vote, and what a scripted backbone says of them."""

import json
from dataclasses import replace
from shlex import split

from tests.playing import images_of, play, prepared
from vieval_plugin import Contest, Image, Sample, SampleId, Status, Votes
from vieval_plugin.judges import pairwise
from vieval_plugin.judges.protocol import Probabilities, Text
from vieval_plugin.prompts import packs

PACK = "pairwise/v1"
ROLES = split("source subject control concepts mask")
CONDITIONS = {role: Image(role.encode()) for role in ROLES}
TEXTS = {"prompt": 'a "red" {{ cat }}', "instruction": "add a hat {% if %}"}
TEXTS["subject"] = "dog <toy>"
SHOWN = {"tig": [], "tie": ["source"], "mie": ["source"], "cig": ["control"]}
SHOWN |= {"sdig": ["subject"], "sdie": ["source", "subject"], "mcic": ["concepts"]}
SAID = {"tie": "instruction", "mie": "instruction"}
SAID |= dict.fromkeys(("tig", "cig", "sdig", "mcic"), "prompt")


def contest(number=2, kind="tie", texts=TEXTS):
    """Candidates whose pictures are called after their numbers."""

    def candidate(n):
        images = {**CONDITIONS, "output": Image(str(n).encode())}
        return Sample(SampleId("b", kind, f"m{n}", "1"), images, texts)

    votes = Votes("ranking") if number > 2 else Votes("four_way", "first")
    candidates = tuple(map(candidate, range(1, number + 1)))
    return Contest(SampleId("b", "part", "", "1"), candidates, votes)


def build(reminders=1, **options):
    pack = replace(packs.load(PACK), reminders=reminders)
    return pairwise.build(pairwise.PairwiseOptions(**options), pack)


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


TIE = "  tie: {template: q.jinja, images: [source], scores: []}"


def own_pack(folder, text, questions=TIE):
    folder.mkdir()
    manifest = f"judge: pairwise\nname: mine\nquestions:\n{questions}\n"
    (folder / "manifest.yaml").write_text(manifest)
    (folder / "q.jinja").write_text(text)
    return str(folder)


def known(a, b, rest=0.0):
    return Probabilities((a, rest, b, rest), (a, rest, b, rest))
