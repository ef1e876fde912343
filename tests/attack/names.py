"""Names, paths and addresses that others wrote, and options that hold keys: one line each, and no key anywhere."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import files
from .checks import Row
from .clients import all_ended, score

if TYPE_CHECKING:
    from .scenarios import Attack

_SECRET = "hunter2/and?more#of-it"
_EXTRA = {
    "chat_template": "x" * 300,
    "custom": _SECRET,
    "headers": {"X-Thing": f"Bearer {_SECRET}", "Cookie": f"sid={_SECRET}; theme=2", "X-Key": f"mine is {_SECRET}"},
    "model_args": f"pretrained=weights, api_key={_SECRET}, batch=1",
    "fields": [{"name": "api_key", "value": _SECRET[:9]}],
    "proxy": f"http://me:{_SECRET}@proxy",
}
_LONGEST = 2000  # characters of a line that somebody can read


def _changed(verdict: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A verdict as nobody's judge would give it, by what is strange."""
    deep = {"trace": [{**verdict["trace"][0], "path": ["x"] * 5000}]}
    long = {name: {name: "c" * 200_000} for name in ("category", "uid", "image_model")}
    home = {"images": {"output": {"file": "~nouser/x", "sha256": "0"}}}
    return {"a step 5,000 deep": deep, **long, "a home of nobody": home, "a group of 1,200": {"group": "g" * 1200}}


def names_and_keys(attack: Attack) -> Row:
    """Keys in further fields are in no result and no report; results with strange names end in one line."""
    row, folder = Row("names and keys"), attack.folder("names")
    samples, known = files.sound_samples(folder, 6, attack.size.seed + 7)
    lines = samples.read_text().splitlines()
    tagged = json.loads(lines[0]) | {"category": "a;=1+1", "tags": ['b;"@SUM(A1)"']}
    samples.write_text("\n".join([json.dumps(tagged), *lines[1:]]) + "\n")
    attack.plan(row.scenario)
    written, out = attack.options(folder, extra=_EXTRA), folder / "out.jsonl"
    row.samples = len(known)
    row.ended(attack.run(score(samples, out), written, 60.0), "run", 60.0, (0,))
    row.counted(attack.server)
    good = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    if not good:
        row.blame("no verdicts at all")
        return row
    rows = {"as it was": {}, **_changed(good[0])}
    for number, change in enumerate(rows.values()):
        changed = [json.dumps({**good[0], **change}), *map(json.dumps, good[1:])]
        (folder / f"r{number}.jsonl").write_text("\n".join(changed) + "\n")
    commands = [_vieval("report", folder / f"r{n}.jsonl", "--out", folder / f"o{n}") for n in range(len(rows))]
    clients = [attack.workshop.start(one, written) for one in [*commands, _vieval("config", "--of", out)]]
    bound = 10.0 + 6 * len(clients) * attack.begin  # they share the machine
    for what, ended in zip([*rows, "vieval config"], all_ended(clients, bound), strict=True):
        fine = what in ("as it was", "a home of nobody", "a group of 1,200", "vieval config")
        row.ended(ended, what, bound, (0,) if fine else (1,))
        if len(ended.last_line) > _LONGEST or "unforeseen" in ended.said:
            row.blame(f"{what}: {ended.last_line[:200]}")
        if _SECRET in ended.said:
            row.blame(f"{what}: a secret was printed")
    holding = [path for path in folder.rglob("*") if path.is_file() and _SECRET.encode() in path.read_bytes()]
    row.leaked([str(path) for path in holding if path != written])
    for path in folder.rglob("*.csv"):
        if formulas := _formulas(path.read_text()):
            row.blame(f"{path.name}: {formulas[0]!r} is a formula where cells end at a semicolon")
    return row


def _vieval(*command: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "vieval_plugin", *command]


def _formulas(text: str) -> list[str]:
    split = [cell for line in csv.reader(io.StringIO(text), delimiter=";") for cell in line]
    split += [cell for line in text.splitlines() for cell in line.split(";")[1:]]
    return [cell for cell in split if cell.lstrip(' \t"')[:1] in ("=", "@")]
