"""Judge calls of the host's own tasks: its `openai` provider beside ours, from the host's four threads.

The ideal wall time is calls x latency / threads, for the host hands out one call a thread. A second run of ours is to ask
nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import conditions, fake_server, in_own_process, served, table

THREADS = 4


def calls(provider: str, number: int) -> float:
    from lmms_eval.llm_judge.factory import ProviderFactory
    from lmms_eval.llm_judge.protocol import Request, ServerConfig

    from vieval_plugin.hosts.lmms_eval.provider import VievalProvider

    ProviderFactory.register_provider("vieval", VievalProvider)
    judge = ProviderFactory.create_provider(provider, ServerConfig(model_name="fake", max_tokens=16))
    asked = [Request(messages=[{"role": "user", "content": f"is answer {n} right?"}]) for n in range(number)]
    begun = time.monotonic()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(judge.evaluate, asked))
    return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.2)
    given = parser.parse_args()
    here = conditions()
    ideal = given.calls * given.latency / THREADS
    rows = []
    with tempfile.TemporaryDirectory() as name, fake_server(latency=given.latency, capacity=32) as url:
        file = Path(name) / "options.yaml"
        backbone = f"{{model: fake, base_url: '{url}'}}"
        file.write_text(f"backbones: {{judge: {backbone}}}\nstore: {{path: '{name}/replies.sqlite'}}\n")
        os.environ |= {"VIEVAL_CONFIG": str(file), "OPENAI_API_URL": url, "OPENAI_API_KEY": "none"}
        for who, provider in (("openai", "openai"), ("vieval", "vieval"), ("vieval, second run", "vieval")):
            wall = in_own_process(calls, provider, given.calls)
            rows.append((who, str(served(url)["requests"]), f"{wall:.2f}", f"{wall / ideal:.3f}"))
    print(f"{here}. {given.calls} calls, {given.latency * 1000:.0f} ms, {THREADS} threads.\n")
    table(("provider", "calls at the server", "wall s", "over ideal"), rows)


if __name__ == "__main__":
    main()
