"""VIEval's own protocol: rows as a samples file has them, with images as base64 or as parts beside
them.

`POST /v1/judge` takes `{"samples": [{"uid", "kind", "images": {role: base64}, "texts": {name:
text}, "group"}]}`, where a sample may be a contest, `{"id", "kind", "images", "texts",
"candidates": [{"images"}]}`. In a body of several parts (multipart/form-data) the part `request` is
that JSON, and an image may be `part:NAME`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import web

from vieval_plugin.judges.contests import Contest, candidates_of
from vieval_plugin.judges.protocol import Image, Verdict
from vieval_plugin.readers.contest_rows import ContestRows, read_contests
from vieval_plugin.readers.rows import Row
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.records import OWN, verdict_document
from vieval_plugin.rewards.reward import RewardValue
from vieval_plugin.rewards.samples import require_good_texts
from vieval_plugin.serve.protocols.protocol import (
    Body,
    Protocol,
    Reading,
    RequestEntry,
    Values,
    json_answer,
    json_object,
    list_of,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import remove_secrets
from vieval_plugin.text.untrusted import is_encodable
from vieval_plugin.text.yaml_json import JsonObject

Files: TypeAlias = Mapping[str, bytes]
_PART = "part:"
_VERDICT_FIELDS = (
    "scores",
    "status",
    "rationale",
    "findings",
    "bounds",
    "choice",
    "trace",
)


def read(body: Body, reading: Reading) -> list[RequestEntry]:
    """The entries of a body, one a sample or contest."""
    document = json_object(body.content)
    unknown = sorted(set(document) - {"samples", "trace"})
    if unknown:
        raise VievalError(
            f"unknown key {unknown[0][:80]!r}; known keys: samples, trace"
        )
    rows = list_of(document, "samples", dict, "objects")
    reading.require_number(len(rows))
    trace = document.get("trace") is True
    entries = []
    for number, row in enumerate(rows):
        entries += _entries(number, row, body.files, reading, trace)
    reading.require_number(
        sum(len(candidates_of(entry.judged)) for entry in entries if entry.judged)
    )
    return entries


def _entries(
    number: int,
    row: JsonObject,
    files: Files,
    reading: Reading,
    trace: bool,
) -> list[RequestEntry]:
    group = _group_name(row.get("group"))
    uid = row.get("uid", row.get("id", str(number)))
    is_valid = is_encodable(row)
    if not is_valid:
        uid = uid if is_encodable(uid) else str(number)
        group = group if is_encodable(group) else ""
    entry = partial(RequestEntry, group=group, fields={"uid": uid, "trace": trace})
    if not is_valid:
        problem = "a text contains a lone surrogate, which is not valid Unicode"
        return [entry(None, problem)]
    if row.get("group") is not None and not group:
        return [entry(None, "`group` must be a string or a number")]
    try:
        if "candidates" in row:
            return [entry(_contest(number, row, files, reading))]
        cells = {name: value for name, value in row.items() if name != "group"}
        cells["images"] = _images(row.get("images", {}), files, reading)
        samples = [
            sample
            for sample, _ in samples_of_row(
                Path(),
                number,
                cells,
                reading.conditions.kind or None,
                OWN,
            )
        ]
        require_good_texts(
            *(text for sample in samples for text in sample.texts.values())
        )
    except (VievalError, BadLine) as error:
        return [entry(None, str(error))]
    return list(map(entry, samples))


def _group_name(group: Any) -> str:
    """The name of a group; empty for what is neither a text nor a number."""
    is_name = isinstance(group, (str, int)) and not isinstance(group, bool)
    return str(group) if is_name else ""


def _images(by_role: Any, files: Files, reading: Reading) -> dict[str, Image]:
    if not isinstance(by_role, dict):
        raise VievalError("`images` must map roles to base64 strings")
    return {role: _image(encoded, files, reading) for role, encoded in by_role.items()}


def _image(encoded: Any, files: Files, reading: Reading) -> Image:
    if not (isinstance(encoded, str) and encoded.startswith(_PART)):
        return reading.base64_image(encoded)
    name = encoded.removeprefix(_PART)
    if name not in files:
        raise VievalError(f"the request has no part {name[:80]!r}")
    return reading.image(files[name])


def _contest(number: int, row: JsonObject, files: Files, reading: Reading) -> Contest:
    """A contest as rows of contests have it; each image is read in place of a file name, and put
    in afterwards.
    """
    read_images: dict[str, Image] = {}

    def as_names(owner: JsonObject) -> dict[str, str]:
        names = {}
        for role, image in _images(owner.get("images") or {}, files, reading).items():
            names[role] = f"image-{len(read_images)}"
            read_images[names[role]] = image
        return names

    candidates = list_of(row, "candidates", dict, "objects")
    kind = row.get("kind", reading.conditions.kind or "tig")
    if not isinstance(kind, str):
        raise VievalError("`kind` must be a string")
    cells = {name: value for name, value in row.items() if name != "kind"}
    cells |= {"id": row.get("id", str(number)), "images": as_names(row)}
    cells["candidates"] = [
        {**candidate, "images": as_names(candidate)} for candidate in candidates
    ]
    [contest] = read_contests(
        [Row("the contest", cells)], Path(), ContestRows(OWN, kind, kind, "")
    )

    require_good_texts(*contest.candidates[0].texts.values())
    candidates_with_images = []
    for candidate in contest.candidates:
        candidates_with_images.append(
            replace(
                candidate,
                images={
                    role: read_images[str(name.source)]
                    for role, name in candidate.images.items()
                },
            )
        )
    return replace(contest, candidates=tuple(candidates_with_images))


def write(entries: Sequence[RequestEntry], values: Values) -> web.Response:
    """The answer: one verdict per sample, the numbers of those that failed, and how far
    the members of a group are apart.
    """
    rows = []
    for entry, by_name in zip(entries, values, strict=True):
        rows += [_row(entry, name, value) for name, value in by_name.items()]
    document = {
        "verdicts": rows,
        "failed": [number for number, row in enumerate(rows) if row["failed"]],
    }
    if any(entry.group for entry in entries):
        document["groups"] = _spreads(entries, values)
    return json_answer(remove_secrets(document))


def _row(entry: RequestEntry, name: str, value: RewardValue) -> JsonObject:
    failed = value.value is None or value.imputed
    if isinstance(entry.judged, Contest):
        failed = not value.status.usable
    row = {
        "uid": entry.fields["uid"],
        "reward": name,
        "value": value.value,
        "status": str(value.status),
        "failed": failed,
    }
    if failed:
        row["reason"] = value.reason
    if value.imputed:
        row["imputed"] = True
    if entry.group:
        row["group"] = entry.group
    trace = entry.fields["trace"]
    row["verdicts"] = [_verdict(verdict, trace) for verdict in value.verdicts]
    return row


def _verdict(verdict: Verdict, trace: bool) -> JsonObject:
    document = verdict_document(verdict)
    fields = _VERDICT_FIELDS if trace else _VERDICT_FIELDS[:-1]
    return {name: document[name] for name in fields if document.get(name)}


def _spreads(entries: Sequence[RequestEntry], values: Values) -> list[JsonObject]:
    """For each group: its members, those without a value of their own, the mean and the standard
    deviation of the rest.

    A spread of 0 gives no member an advantage.
    """
    members: defaultdict[str, list[RewardValue]] = defaultdict(list)
    for entry, by_name in zip(entries, values, strict=True):
        if entry.group:
            members[entry.group] += by_name.values()
    return [_spread(group, rewards) for group, rewards in members.items()]


def _spread(group: str, rewards: Sequence[RewardValue]) -> JsonObject:
    valid = [
        reward.value
        for reward in rewards
        if reward.value is not None and not reward.imputed
    ]
    mean = deviation = None
    if valid:
        mean = math.fsum(valid) / len(valid)
        squares = math.fsum((number - mean) ** 2 for number in valid)
        deviation = math.sqrt(squares / len(valid))
    return {
        "group": group,
        "n": len(rewards),
        "failed": len(rewards) - len(valid),
        "mean": mean,
        "spread": deviation,
    }


PROTOCOL = Protocol("judge_v1", "/v1/judge", 280.0, read, write)
