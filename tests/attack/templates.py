"""Prompt packs of strangers: a template that would take all time or memory is its sample's failure, or the pack's, in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from . import files
from .checks import Row, verdicts_of
from .clients import all_ended, score

if TYPE_CHECKING:
    from .scenarios import Attack

_TEMPLATES = {
    "lists of themselves, as JSON": "{% set x = [prompt] %}" + "{% set x = [x, x] %}" * 40 + "{{ x | tojson }}",
    "lists of themselves, compared": "{% set x = [1] %}{% set y = [1] %}"
    + "{% set x = [x, x] %}{% set y = [y, y] %}" * 40
    + "{{ x == y }}",
    "a text that doubles": "{% set x = prompt %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "a template that includes itself twice": "{% include 'SC.jinja' %}{% include 'SC.jinja' %}",
    "loops over letters": "{% for a in prompt %}" * 12 + "{% endfor %}" * 12,
    "loops deeper than Python": "{% for a in prompt %}" * 25 + "{% endfor %}" * 25,
    "a large number": "{{ 9 ** (9 ** 9) }}",
    "a width": "{{ '{:>999999999}'.format(1) }}",
}
_MANIFEST = {
    "judge": "viescore",
    "name": "hostile",
    "settings": ["0shot"],
    "questions": {
        "SC_tig": {"template": "SC.jinja", "images": ["output"], "scores": ["consistency"]},
        "PQ": {"template": "PQ.jinja", "images": ["output"], "scores": ["naturalness", "artifacts"]},
    },
}


def hostile_packs(attack: Attack) -> Row:
    """Every pack ends its run in bounded time, with its template's name in the verdicts or in the one line of its refusal."""
    row, folder = Row("hostile packs"), attack.folder("packs")
    samples, _ = files.sound_samples(folder, 3, attack.size.seed, kinds=("tig",))
    attack.plan(row.scenario)
    clients, bound = [], 10.0 + 3 * len(_TEMPLATES) * attack.begin  # they share the machine
    for place, template in enumerate(_TEMPLATES.values()):
        path = _pack(folder / f"pack{place}", template)
        written = attack.options(path)
        document = json.loads(written.read_text()) | {"judges": {"viescore": {"pack": str(path)}}}
        written.write_text(json.dumps(document))
        clients.append(attack.workshop.start(score(samples, path / "out.jsonl"), written))
    for place, (name, ended) in enumerate(zip(_TEMPLATES, all_ended(clients, bound), strict=True)):
        row.ended(ended, name, bound, (1,))
        row.samples += 3
        out = folder / f"pack{place}" / "out.jsonl"
        verdicts = verdicts_of(out) if out.exists() else {}
        failed = [one for one in verdicts.values() if one["status"] == "tool_error" and "SC.jinja" in json.dumps(one)]
        if len(failed) != 3 and (verdicts or "SC.jinja" not in ended.last_line):
            row.lost += 3 - len(failed)
            row.blame(f"{name}: {len(failed)} of 3 verdicts name the template ({ended.last_line})")
    if attack.server.asked:
        row.blame(f"{len(attack.server.asked)} questions of hostile packs were asked")
    return row


def _pack(folder: Path, template: str) -> Path:
    folder.mkdir()
    (folder / "manifest.yaml").write_text(json.dumps(_MANIFEST))
    (folder / "SC.jinja").write_text(template)
    (folder / "PQ.jinja").write_text("Rate it: {{ names | join(', ') }}.")
    return folder
