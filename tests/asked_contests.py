"""Contests for judges that vote, and what a scripted backbone says of them."""

import itertools
import json
from dataclasses import replace

from tests.playing import images_of, play, prepared
from vieval_plugin.judges import pairwise
from vieval_plugin.judges.contests import (
    Contest,
    Votes,
)
from vieval_plugin.judges.protocol import (
    Image,
    Probabilities,
    Sample,
    SampleId,
    Status,
    Text,
)
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
SAID = {
    "tig": "prompt",
    "tie": "instruction",
    "mie": "instruction",
    "cig": "prompt",
    "sdig": "prompt",
    "mcic": "prompt",
}


def contest(number=2, kind="tie", frames=0, texts=TEXTS):
    """Candidates whose pictures are called after their numbers."""

    def candidate(n):
        made = {f"frame_{f}": Image(f"{n}:{f}".encode()) for f in range(frames)} or {
            "output": Image(str(n).encode())
        }
        return Sample(SampleId("b", kind, f"m{n}", "1"), {**CONDITIONS, **made}, texts)

    votes = Votes("ranking") if number > 2 else Votes("four_way", "first")
    return Contest(
        SampleId("b", "part", "", "1"),
        tuple(map(candidate, range(1, number + 1))),
        votes,
    )


def build(reminders=1, **options):
    return pairwise.build(
        pairwise.PairwiseOptions(**options),
        replace(packs.load(PACK), reminders=reminders),
    )


def numbers(ask):
    """The candidates whose pictures an ask shows, in order."""
    names = [image.source.decode().partition(":")[0] for image in images_of(ask)]
    return [int(name) for name, _ in itertools.groupby(names) if name.isdigit()]


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
