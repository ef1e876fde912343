"""VQAScore of many texts over few images: requests a second, and how much of the prompts a prefix cache held.

Baseline in the same run: the same questions with texts of different images taking turns, as a
scheduler that does not keep an image's questions together would ask them. Servers: the fake one (no
cache: its ceiling), and any OpenAI-compatible server named with --url (run it once with and once
without prefix caching).
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from common import conditions, fake_server, photographs, script_parser, table

from vieval_plugin import Backbone, Image, Progress, Sample, SampleId, evaluate_async
from vieval_plugin.config import Config, StoreOptions


def pairs(images: Sequence[Path], texts: int) -> list[Sample]:
    """Every image with its share of the texts, an image's texts one after another."""
    each = texts // len(images)
    samples = []
    for number, path in enumerate(images):
        for text in range(each):
            identity = SampleId("own", "tig", "", f"{number}#{text}")
            prompt = f"thing {number} of kind {text}"
            samples.append(
                Sample(identity, {"output": Image(path)}, {"prompt": prompt})
            )
    return samples


def shuffled(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    mixed = list(samples)
    random.Random(seed).shuffle(mixed)
    return mixed


def cached_tokens(url: str) -> tuple[float, float]:
    """Tokens looked up in vLLM's prefix cache and found there so far; zeros for a server that
    does not tell.
    """
    address = url.removesuffix("/v1") + "/metrics"
    try:
        with urllib.request.urlopen(address, timeout=10) as response:
            lines = response.read().decode().splitlines()
    except OSError:
        return 0.0, 0.0
    queries = total(lines, "vllm:prefix_cache_queries_total")
    hits = total(lines, "vllm:prefix_cache_hits_total")
    return queries, hits


def total(lines: Sequence[str], name: str) -> float:
    """The sum of a counter's values."""
    values = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(name)]
    return sum(map(float, values))


def measure(
    name: str, url: str, model: str, samples: Sequence[Sample], concurrent: int
) -> list[str]:
    """One row: questions and requests a second, and the share of looked-up prompt tokens that
    the cache held.
    """
    progress = Progress()
    backbone = Backbone(model=model, base_url=url, num_concurrent=concurrent)
    options = Config(store=StoreOptions(use=False))
    queries_before, hits_before = cached_tokens(url)
    started = time.perf_counter()
    evaluation = evaluate_async(
        samples,
        judge="vqascore",
        backbone=backbone,
        options=options,
        progress=progress,
    )
    verdicts = asyncio.run(evaluation)
    seconds = time.perf_counter() - started
    queries, hits = cached_tokens(url)
    share = "-"
    if queries > queries_before:
        share = f"{(hits - hits_before) / (queries - queries_before):.0%}"
    scored = sum(bool(verdict.scores) for verdict in verdicts)
    return [
        name,
        f"{scored}/{len(samples)}",
        f"{seconds:.1f}",
        f"{len(samples) / seconds:.1f}",
        f"{progress.usage.calls / seconds:.1f}",
        share,
    ]


def main() -> None:
    parser = script_parser(__doc__, images=200, texts=2000, side=512, concurrent=32)
    parser.add_argument("--url", help="an OpenAI-compatible server beside the fake one")
    parser.add_argument("--model", default="tiny")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        # Each pass at a server has pictures of its own: what one left in the cache must not serve
        # the next.
        pictures = photographs(Path(folder), 2 * options.images, options.side)
        grouped = pairs(pictures[: options.images], options.texts)
        mixed = shuffled(pairs(pictures[options.images :], options.texts))
        with fake_server(latency=0.2, capacity=32) as url:
            name = "fake server, 200 ms"
            rows.append(measure(name, url, "fake", grouped, options.concurrent))
        if options.url:
            for order, samples in (("together", grouped), ("taking turns", mixed)):
                name = f"{options.model}, an image's texts {order}"
                row = measure(
                    name, options.url, options.model, samples, options.concurrent
                )
                rows.append(row)
    print(conditions())
    columns = (
        "server",
        "scored",
        "seconds",
        "questions/s",
        "requests/s",
        "prompt tokens from the cache",
    )
    table(columns, rows)


if __name__ == "__main__":
    main()
