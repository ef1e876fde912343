"""Writes README's table of judges whose agreement with people is measured: `make tasks`.

Agreement is the leaderboard's. Calls and the length of questions are those of each judge on a
prompt, and the length of answers is that of the published ones, which `make leaderboard` measures.

Usage: make_judge_table.py [PUBLISHED]. PUBLISHED is the folder of published verdicts.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.media.files import write_whole
from vieval_plugin.results.published.judges import (
    PublishedJudge,
    present,
    published_baselines,
    published_judges,
    verdicts_of,
)
from vieval_plugin.run.prepare import prepare

DOCS = Path(__file__).parent
README, BOARD = DOCS.parent / "README.md", DOCS / "leaderboard" / "leaderboard.csv"
ANSWERS = DOCS / "leaderboard" / "answers.json"
BEGIN, END = "<!-- judges: written by `make tasks` -->", "<!-- end of judges -->"
HEADER = (
    "| judge | agrees with people | calls | k tokens in, out | price | needs |\n"
    "|---|---|---:|---:|---:|---|"
)
NOTES = (
    "Correlation: Spearman's, of `O` (the overall score) with people's ratings on ImagenHub, where people reach {:.2f} "
    "with one another; networks are measured on the task types that they judge.\n"
    "Share of votes: of people's votes on pairs of GenAI-Bench; giving one answer to all pairs "
    "reaches {:.2f}.\n"
    "The published votes are of one order of a pair; the calls of `pairwise` are for both.\n"
    "Calls, tokens and price are for 1,000 images (`pairwise`: 1,000 pairs) of prompts and "
    "1,024 × 1,024 pixels, by OpenAI's list prices of May 2024 and with a token for 4 characters of text."
)
#: By benchmark the words for the number in the leaderboard's first table, and what it is held
#: against.
MEASURES = {
    "imagenhub": ("correlation", "human ceiling: each rater against the others"),
    "genai_bench_tiger": ("share of votes", "best constant: always second"),
}
#: Judges of a benchmark with fewer verdicts are left out.
LEAST_VERDICTS = 2000
PROMPT = 'a poster with a cat and the title "LOST CAT"'
CHARACTERS_A_TOKEN = 4
#: OpenAI's rule for 1,024 × 1,024 pixels: 85, and 170 for each of four tiles.
TOKENS_AN_IMAGE = 85 + 4 * 170
SERVER = "https://api.openai.com/v1"
#: OpenAI's list prices of May 2024, in dollars for a million tokens.
PRICES = {
    "gpt-4o-2024-05-13": {"price_input": 5.0, "price_output": 15.0},
    "gpt-4-vision-preview": {"price_input": 10.0, "price_output": 30.0},
}


def measure_answers(root: Path) -> str:
    """The mean characters of the answers of each published judge, as JSON."""
    lengths = {
        f"{benchmark}/{judge.name}": round(
            fmean(
                len(step.answer or json.dumps([step.scores, step.reason]))
                for [(verdict, _)] in verdicts_of(judge, root).verdicts.values()
                for step in verdict.trace
                if step.status.usable
            )
        )
        for benchmark in MEASURES
        for judge in present(benchmark, root)
    }
    return json.dumps(lengths, indent=1) + "\n"


def table() -> str:
    """Markdown rows of the leaderboard's judges in their plain setting, with what is measured."""
    with open(BOARD, encoding="utf-8", newline="") as file:
        board = list(csv.DictReader(file))
    lengths = json.loads(ANSWERS.read_text(encoding="utf-8"))
    rows, ends = [HEADER], []
    for benchmark, (unit, end) in MEASURES.items():
        numbers = {
            row["system"]: row
            for row in reversed(board)  # a system's first row is of the first table
            if (row["benchmark"], row["part"]) == (benchmark, "all")
        }
        ends.append(float(numbers[end]["value"]))
        for judge in published_judges(benchmark):
            number = numbers.get(judge.title, {"n": 0})
            if int(number["n"]) >= LEAST_VERDICTS and judge.setting != "1shot":
                length = lengths[f"{benchmark}/{judge.name}"]
                rows.append(_row(judge, number, unit, length))
        for network in published_baselines(benchmark):
            if network.title in numbers and network.judge != "pairwise":
                rows.append(_row(network, numbers[network.title], unit, 0))
    return "\n".join([*rows, "", NOTES.format(*ends)])


def _row(
    judge: PublishedJudge, number: Mapping[str, str], unit: str, length: float
) -> str:
    calls, tokens_in = _questions(judge)
    tokens_out = calls * length / CHARACTERS_A_TOKEN
    price, needs = "–", "GPU" if calls else "CPU"
    if judge.version in PRICES:
        rates = Backbone(model=judge.version, base_url=SERVER, **PRICES[judge.version])
        price, needs = f"${1000 * rates.price_of(tokens_in, 0, tokens_out):.2f}", "API"
    value, low, high = (float(number[name]) for name in ("value", "low", "high"))
    name = f"`{judge.judge}` with {judge.backbone}".removesuffix(" with ")
    return (
        f"| {name} | {unit} **{value:.2f}** ({low:.2f}&nbsp;to&nbsp;{high:.2f}) | {1000 * calls:,} "
        f"| {tokens_in:,.0f}, {tokens_out:,.0f} | {price} | {needs} |"
    )


def _questions(judge: PublishedJudge) -> tuple[int, float]:
    """The calls and the tokens of all questions about an image, or a pair of images."""
    prepared = prepare(judge.judge, judge.setting, Config())
    if not prepared.asks_a_model:
        return 0, 0.0
    image, other = (
        Sample(
            SampleId("own", "tig", name, "1"),
            {"output": Image(b"")},
            {"prompt": PROMPT},
        )
        for name in ("one", "other")
    )
    pair = Contest(SampleId("own", "tig", "", "1"), (image, other))
    asks = next(prepared.program(pair if prepared.spec.rates == "contest" else image))
    return len(asks), sum(
        len(part) / CHARACTERS_A_TOKEN if isinstance(part, str) else TOKENS_AN_IMAGE
        for ask in asks
        for message in ask.messages
        for part in message.parts
    )


def filled(readme: str) -> str:
    """README with the table in its place."""
    written = f"{BEGIN}\n\n{table()}\n\n{END}"
    return re.sub(f"(?s){BEGIN}.*{END}", lambda _: written, readme)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_whole(ANSWERS, measure_answers(Path(sys.argv[1])).encode())
    write_whole(README, filled(README.read_text(encoding="utf-8")).encode())
