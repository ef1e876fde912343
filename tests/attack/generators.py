"""A generator whose answers name files that it has not made: lmms-eval's samples file of it, judged by `vieval score`."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .checks import Row, check, verdicts_of
from .clients import score
from .fault_server import picture_name
from .files import Known, png

if TYPE_CHECKING:
    from .scenarios import Attack

_SOUND = 5


def named_files(attack: Attack) -> Row:
    """No file is judged, nor sent to the server, that a generator names and has not made."""
    row, folder = Row("files named by a generator"), attack.folder("generator")
    run = folder / "run"
    (run / "made").mkdir(parents=True)
    (folder / "references").mkdir()
    draw = random.Random(f"generator {attack.size.seed}")
    source, better = run / "source.png", folder / "references" / "better.png"
    for path in (source, better):
        path.write_bytes(png(draw))
    rows, known = list[dict[str, Any]](), list[Known]()
    for number in range(_SOUND):
        made = run / "made" / f"{number}.png"
        made.write_bytes(png(draw))
        pictures = {"source": picture_name(source.read_bytes()), "output": picture_name(made.read_bytes())}
        known.append(Known(f"edits-{number}", "tie", pictures, f"made {number}"))
        rows.append(_row(number, json.dumps({"text": "", "images": [str(made)]}), source, f"made {number}"))
    hostile = _hostile(run, source, better)
    rows += [_row(number, text, source) for number, text in enumerate(hostile.values(), start=_SOUND)]
    (run / "x_samples_edits.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))

    attack.plan(row.scenario)
    ended = attack.run(score(run, folder / "out.jsonl", "viescore", "--kind", "tie"), attack.options(folder), 60.0)
    row.ended(ended, "a generator's answers", 60.0, (1,))
    verdicts = verdicts_of(folder / "out.jsonl") if (folder / "out.jsonl").exists() else {}
    check(row, known, verdicts, "viescore", attack.server.asked.copy())
    row.counted(attack.server)
    for number, what in enumerate(hostile, start=_SOUND):
        row.samples += 1
        status = verdicts.get(f"edits-{number}", {"status": "no verdict"})["status"]
        if status != "no_image":
            row.blame(f"{what}: {status}, expected no_image")
    right = {question for one in known for question, _ in one.questions("viescore").values()}
    if strange := {asked.question for asked in attack.server.asked} - right:
        row.blame(f"{len(strange)} questions about files that the generator has not made")
    return row


def _row(number: int, answer: str, source: Path, marker: str = "hostile") -> dict[str, Any]:
    """A row of lmms-eval's samples file."""
    asked = [f"add a hat [[{marker}]]", {"until": []}]
    return {
        "doc_id": number,
        "target": "",
        "arguments": asked,
        "filtered_resps": [answer],
        "input_media": [str(source)],
    }


def _hostile(run: Path, source: Path, better: Path) -> dict[str, str]:
    """Answers by what they try."""
    links = {"link.png": better, "own.png": source, "loop.png": "loop.png", "linked": better.parent}
    for name, target in links.items():
        (run / name).symlink_to(target)
    (run / "twin.png").hardlink_to(source)
    os.mkfifo(run / "pipe.png")
    (run / "empty.png").touch()
    named = {
        "another model's image": better,
        "a file of the system": "/etc/passwd",
        "a way up": run / "made" / ".." / ".." / better.parent.name / better.name,
        "a link out of the folder": run / "link.png",
        "a folder that is a link": run / "linked" / better.name,
        "its own source": source,
        "its own source by a link": run / "own.png",
        "its own source by another name": run / "twin.png",
        "a link to itself": run / "loop.png",
        "a pipe": run / "pipe.png",
        "an empty file": run / "empty.png",
        "an endless device": "/dev/zero",
        "nobody's home": "~nobody-at-all/x.png",
        "a zero byte": "a\0b.png",
        "half a character": "\ud800.png",
        "5,000 characters": "x" * 5_000 + ".png",
        "a million parts": "/" + "a/" * 1_000_000 + "x.png",
    }
    answers = {what: json.dumps({"text": "", "images": [str(path)]}) for what, path in named.items()}
    return {**answers, "another model's image, in words": str(better), "prose": "I cannot draw that. " * 250}
