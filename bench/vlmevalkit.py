"""VIEScore inside VLMEvalKit: how close to the ideal our client comes, and the host's own class beside it.

The fake server answers after a set latency and works on so many requests at once, so that the ideal
wall time is calls x latency / capacity. Timed is the host's `infer_data_job` with all that it
writes. Needs VLMEvalKit (make test-vlmevalkit makes an environment with it):
.venv-vlmevalkit/bin/python bench/vlmevalkit.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import (
    Cost,
    costs,
    fake_server,
    in_own_process,
    photographs,
    samples,
    served,
    table,
)

DATASET = "vieval_demo_viescore_tig"


def inferred(
    kind: str, url: str, files: Sequence[Path], concurrent: int, folder: Path
) -> Cost:
    """What the host's loop takes with a model of this class, over one sample a file."""
    (folder / "lmu").mkdir(parents=True)
    (folder / "options.yaml").write_text("store: {use: false}\n")
    os.environ |= {
        "LMUData": str(folder / "lmu"),
        "VIEVAL_CONFIG": str(folder / "options.yaml"),
    }
    import pandas

    from vieval_plugin.hosts.vlmevalkit import register

    register()
    import vlmeval.api
    import vlmeval.dataset
    import vlmeval.inference
    import vlmeval.vlm

    dataset = vlmeval.dataset.build_dataset(DATASET)
    dataset.judged = list(samples(files))
    rows = range(len(dataset.judged))
    dataset.data = pandas.DataFrame(
        {"index": rows, "sample": [str(one.id) for one in dataset.judged]}
    )
    model: Any
    if kind == "VievalOpenAI":
        model = vlmeval.vlm.VievalOpenAI(
            model="fake", base_url=url, num_concurrent=concurrent
        )
    else:
        model = vlmeval.api.GPT4V(
            model="fake",
            key="EMPTY-key",
            api_base=f"{url}/chat/completions",
            retry=3,
            temperature=0,
            verbose=False,
        )
    with costs() as cost:
        vlmeval.inference.infer_data_job(
            model,
            work_dir=str(folder),
            model_name="fake",
            dataset=dataset,
            api_nproc=concurrent,
        )
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=384)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--capacity", type=int, default=32)
    parser.add_argument("--side", type=int, default=512)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        files = photographs(Path(name), given.samples, given.side)
        for kind in ("VievalOpenAI", "GPT4V"):
            cost = in_own_process(
                inferred, kind, url, files, given.capacity, Path(name) / kind
            )
            calls = served(url)["requests"]
            ideal = calls * given.latency / given.capacity
            rows.append(
                (
                    kind,
                    f"{calls}",
                    f"{cost.wall:.2f}",
                    f"{ideal:.2f}",
                    f"{cost.wall / ideal:.2f}",
                )
            )
    table(("", "calls", "wall s", "ideal s", "over ideal"), rows)


if __name__ == "__main__":
    main()
