"""VQAScore of many texts over few images: requests a second, and how much of the prompts a prefix cache held.

Baseline in the same run: the same questions with texts of different images taking turns, as a
scheduler that does not keep an image's questions together would ask them. Servers: the fake one (no
cache: its ceiling), and any OpenAI-compatible server named with --url (run it once with and once
without prefix caching).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from common import conditions, fake_server, photographs, table

from vieval_plugin import Backbone, Image, Progress, Sample, SampleId, evaluate_async
from vieval_plugin.config import Config, StoreOptions


def pairs(images: Sequence[Path], texts: int) -> list[Sample]:
    """Every image with its share of the texts, an image's texts one after another."""
    each = texts // len(images)
    return [
        Sample(
            SampleId("own", "tig", "", f"{i}#{t}"),
            {"output": Image(path)},
            {"prompt": f"thing {i} of kind {t}"},
        )
        for i, path in enumerate(images)
        for t in range(each)
    ]


def shuffled(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    mixed = list(samples)
    random.Random(seed).shuffle(mixed)
    return mixed


def cached_tokens(url: str) -> tuple[float, float]:
    """Tokens looked up in vLLM's prefix cache and found there so far; zeros for a server that
    does not tell.
    """
    try:
        with urllib.request.urlopen(
            url.removesuffix("/v1") + "/metrics", timeout=10
        ) as response:
            lines = response.read().decode().splitlines()
    except OSError:
        return 0.0, 0.0
    totals = []
    for name in ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"):
        totals.append(
            sum(
                float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name)
            )
        )
    return totals[0], totals[1]


def measure(
    name: str, url: str, model: str, samples: Sequence[Sample], concurrent: int
) -> list[str]:
    """One row: questions and requests a second, and the share of looked-up prompt tokens that
    the cache held.
    """
    progress = Progress()
    backbone = Backbone(model=model, base_url=url, num_concurrent=concurrent)
    options = Config(store=StoreOptions(use=False))
    before = cached_tokens(url)
    started = time.perf_counter()
    verdicts = asyncio.run(
        evaluate_async(
            samples,
            judge="vqascore",
            backbone=backbone,
            options=options,
            progress=progress,
        )
    )
    seconds = time.perf_counter() - started
    after = cached_tokens(url)
    looked = after[0] - before[0]
    hit = after[1] - before[1]
    scored = sum(bool(v.scores) for v in verdicts)
    rate = f"{hit / looked:.0%}" if looked else "-"
    return [
        name,
        f"{scored}/{len(samples)}",
        f"{seconds:.1f}",
        f"{len(samples) / seconds:.1f}",
        f"{progress.usage.calls / seconds:.1f}",
        rate,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--concurrent", type=int, default=32)
    parser.add_argument("--url", help="an OpenAI-compatible server beside the fake one")
    parser.add_argument("--model", default="tiny")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        # Each pass at a server has pictures of its own: what one left in the cache must not serve
        # the next.
        pictures = photographs(Path(folder), 2 * arguments.images, arguments.side)
        asked = pairs(pictures[: arguments.images], arguments.texts)
        others = shuffled(pairs(pictures[arguments.images :], arguments.texts))
        with fake_server(latency=0.2, capacity=32) as url:
            rows.append(
                measure("fake server, 200 ms", url, "fake", asked, arguments.concurrent)
            )
        if arguments.url:
            for order, samples in (("together", asked), ("taking turns", others)):
                name = f"{arguments.model}, an image's texts {order}"
                rows.append(
                    measure(
                        name,
                        arguments.url,
                        arguments.model,
                        samples,
                        arguments.concurrent,
                    )
                )
    print(conditions())
    table(
        (
            "server",
            "scored",
            "seconds",
            "questions/s",
            "requests/s",
            "prompt tokens from the cache",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
