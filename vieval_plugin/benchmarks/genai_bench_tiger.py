"""GenAI-Bench of TIGER-Lab: pairs of edits, images and videos, and which of the two a visitor of an
arena preferred.

Source: Jiang et al., GenAI Arena (2024), in the hub's `TIGER-Lab/GenAI-Bench`. It is another
benchmark than GenAI-Bench of Li et al. (`genai_bench_t2i`). A vote is the left, the right, both
good (`tievote`) or both bad.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.loading.contest_hub import HubRows, Keep, hub_benchmark
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND, Contest
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.readers.contest_rows import (
    CONTESTS,
    ContestRows,
    frames_folder,
    read_contests,
)
from vieval_plugin.readers.rows import Row, read_count, read_lines, read_objects
from vieval_plugin.readers.video_frames import complete, extract_all, failure_lines
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

NAME = "genai_bench_tiger"
EDIT = "edit"
GENERATION = "generation"
VIDEO = "video"
CONFIGS = {
    "image_edition": EDIT,
    "image_generation": GENERATION,
    "video_generation": VIDEO,
}
KINDS = {
    EDIT: "tie",
    GENERATION: "tig",
    VIDEO: "tig",
}
VOTES = {
    "leftvote": FIRST,
    "rightvote": SECOND,
    "tievote": BOTH_GOOD,
    "bothbad_vote": BOTH_BAD,
}
FRAMES = 4
FRAMES_FILE = "frames.json"
DATASET = "TIGER-Lab/GenAI-Bench"
SPLIT = "test_v1"
ADVICE = f"run `vieval prepare {NAME}`"

_PROMPTS = {
    EDIT: {
        "instruct_prompt": "instruction",
        "source_prompt": "source_prompt",
        "target_prompt": "target_prompt",
    }
}
_PROMPT = {"prompt": "prompt"}
_RESTORE = "restore the log from its source"


def read(folder: Path, part: str) -> list[Contest]:
    """The pairs of a part from `<part>/contests.jsonl` or, where that does not exist,
    the votes alone from a judge's log.

    A log has the votes and mostly the prompts: enough to compare recorded answers with.
    """
    frame_count = read_count(folder / FRAMES_FILE, FRAMES)
    common = ContestRows(
        NAME,
        part,
        KINDS[part],
        "four_way",
        frame_count,
    )
    home = folder / part
    if (home / CONTESTS).exists():
        return read_contests(
            read_lines(home / CONTESTS, ADVICE),
            home,
            common,
        )
    config = {config_part: config for config, config_part in CONFIGS.items()}[part]
    logs = sorted((folder / config).glob("*/*.json"))
    if not logs:
        raise VievalError(
            f"{home / CONTESTS}: no such file, and no judge log in {folder / config}; {ADVICE}"
        )
    return read_contests(_logged(logs, part), home, common)


def _logged(logs: Sequence[Path], part: str) -> list[Row]:
    """The pairs of the first log that has prompts, else of the first."""
    first: list[Row] = []
    for path in logs:
        rows = read_objects(path, _RESTORE)
        if rows and all(_texts(row.cells, part) for row in rows):
            first = rows
            break
        first = first or rows
    return [
        replace(
            row,
            cells=_cells(
                row.uid("idx"),
                row.cells,
                part,
                vote=row.text("human_vote"),
                candidates=[{}, {}],
            ),
        )
        for row in first
    ]


def _convert_hub_row(part: str, number: int, row: JsonObject, keep: Keep) -> JsonObject:
    candidates = []
    for side in ("left", "right"):
        candidate: JsonObject = {"image_model": row.get(f"{side}_model")}
        if part == VIDEO:
            candidate |= _video(row, side)
        else:
            candidate["images"] = {"output": keep(row[f"{side}_output_image"])}
        candidates.append(candidate)
    cells = _cells(
        str(number),
        row,
        part,
        row["vote_type"],
        candidates,
    )
    if part == EDIT:
        return {
            **cells,
            "images": {"source": keep(row["source_image"])},
        }
    return cells


def _video(row: JsonObject, side: str) -> JsonObject:
    url = row[f"{side}_video"]
    if not url:
        return {}
    digest = hashlib.sha256(url.encode()).hexdigest()
    return {
        "video": f"videos/{digest[:16]}.mp4",
        "url": url,
    }


def _cells(
    uid: str,
    row: JsonObject,
    part: str,
    vote: str,
    candidates: list[JsonObject],
) -> JsonObject:
    texts = _texts(row, part)
    # edits of the same instruction on the same source, or outputs of the same prompt, are drawn
    # together
    names = ("source_prompt", "instruction") if part == EDIT else ("prompt",)
    group = " | ".join(texts[name] for name in names if name in texts)
    return {
        "id": uid,
        "texts": texts,
        "candidates": candidates,
        "vote": VOTES.get(vote, vote),
        "group": group,
    }


def _texts(row: JsonObject, part: str) -> dict[str, str]:
    names = _PROMPTS.get(part, _PROMPT).items()
    texts = {name: row.get(column) for column, name in names}
    return {
        name: text for name, text in texts.items() if text and isinstance(text, str)
    }


def _make(folder: Path, preparing: Preparing) -> list[str]:
    """Fetch the videos whose frames are missing and extract these; return one line per
    reason for failed videos.
    """
    from vieval_plugin.readers.download import Download, fetch_all

    home = folder / VIDEO
    count = read_count(folder / FRAMES_FILE, FRAMES)
    if VIDEO not in (preparing.parts or ()) or not (home / CONTESTS).exists():
        return []
    urls = {
        candidate["video"]: candidate.get("url")
        for row in read_lines(home / CONTESTS, ADVICE)
        for candidate in row.cells["candidates"]
        if candidate.get("video")
    }
    frameless = [
        video
        for video in urls
        if not complete(frames_folder(home, video, count), count)
    ]
    downloads = [
        Download(urls[video], home / video, _check_video)
        for video in frameless
        if urls[video]
    ]
    failures = asyncio.run(fetch_all(downloads, label="videos"))
    reasons = {failed.path: failed.reason for failed in failures}
    pairs = [
        (home / video, frames_folder(home, video, count))
        for video in frameless
        if home / video not in reasons
    ]
    reasons |= extract_all(pairs, count)
    return failure_lines(reasons, len(urls), "run the command again to retry")


def _check_video(body: bytes) -> None:
    if body[:1] in (b"", b"<", b"{"):
        raise ValueError("not a video")


_FOLDER = DataFolder(
    NAME,
    {
        EDIT: 919,
        GENERATION: 1735,
        VIDEO: 1069,
    },
    read=read,
    advice=ADVICE,
    make=_make,
    count_file=FRAMES_FILE,
)
_HUB = {
    part: HubRows(
        DATASET,
        config,
        SPLIT,
        partial(_convert_hub_row, part),
    )
    for config, part in CONFIGS.items()
}


BENCHMARK = hub_benchmark(
    _FOLDER,
    _HUB,
    ByVotes("four_way"),
    kinds={part: KINDS[part] for part in (EDIT, GENERATION)},
    title="GenAI-Bench-TIGER",
    source=(
        f"Jiang et al., GenAI Arena (2024), arXiv 2406.04485; split {SPLIT} of {DATASET} "
        "on the Hugging Face Hub"
    ),
    licence="CC BY 4.0 (Hugging Face card)",
    folders=CONFIGS,
)
