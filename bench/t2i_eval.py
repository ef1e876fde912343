"""T2I-Eval's 33 calls a sample, 8 deep: how near to what the server can do, and how long one sample takes alone.

Baseline in the same run: calls x latency / capacity for many samples, 8 latencies for one. The
server is the tests' fake one in a process of its own; to an extraction it answers with a structure
of nine questions, three of them on looks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from common import SERVER, conditions, copies, costs, options, samples, table

from vieval_plugin import Backbone, Progress, evaluate_async
from vieval_plugin.judges.protocol import Status

CALLS = 33
DEPTH = 8
_ATTRIBUTES = (("existence", "quantity"), ("existence", "quantity"), ("existence",))
STRUCTURE = {
    "entities": [
        {
            "name": name,
            "caption": f"a {name}",
            "appearance_question": f"Does the {name} look real?",
            "attributes": [
                {"name": a, "value": "yes", "question": f"What of the {name}'s {a}?"}
                for a in attributes
            ],
        }
        for name, attributes in zip(("hill", "sky", "tree"), _ATTRIBUTES, strict=True)
    ],
    "relations": [
        {"entities": ["tree", "hill"], "value": "on", "question": "Where is the tree?"}
    ],
}


def _serve(settings: dict[str, Any], address: Connection) -> None:
    sys.path.append(str(SERVER.parent))
    from fake_server import FakeServer, instance

    def reply(request: dict[str, Any]) -> str:
        schema = request["response_format"]["json_schema"]["schema"]
        return json.dumps(
            STRUCTURE
            if "entities" in schema["properties"]
            else instance(schema, b"0123456789abcdef")
        )

    with FakeServer(reply=reply, **settings) as server:
        address.send(server.base_url)
        address.recv()


@contextmanager
def scripted_server(**settings: float) -> Iterator[str]:
    """The address of a fake server that knows one structure."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(settings, there)
    )
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def measure(url: str, files: list[Path], latency: float, capacity: int) -> list[str]:
    """One row: the run's wall time against what its calls need at least."""
    progress = Progress()
    backbone = Backbone(model="fake", base_url=url, num_concurrent=2 * capacity)
    with costs() as cost:
        verdicts = asyncio.run(
            evaluate_async(
                list(samples(files)),
                judge="t2i_eval",
                backbone=backbone,
                options=options(None),
                progress=progress,
            )
        )
    assert all(verdict.status is Status.OK for verdict in verdicts), verdicts[0]
    needed = (
        CALLS * len(files) * latency / capacity if len(files) > 1 else DEPTH * latency
    )
    calls = progress.usage.calls
    return [
        str(len(files)),
        str(CALLS * len(files)),
        str(calls),
        f"{needed:.2f}",
        f"{cost.wall:.2f}",
        f"{cost.wall / needed:.3f}",
        f"{1000 * cost.cpu / calls:.2f}",
        f"{cost.before:.0f}",
        f"{cost.peak:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--capacity", type=int, default=32)
    parser.add_argument("--side", type=int, default=512)
    arguments = parser.parse_args()
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        scripted_server(latency=arguments.latency, capacity=arguments.capacity) as url,
    ):
        files = copies(Path(folder), arguments.samples + 2, arguments.side)
        measure(
            url, files[:1], arguments.latency, arguments.capacity
        )  # imports and the probe for schemas
        rows.append(measure(url, files[1:2], arguments.latency, arguments.capacity))
        rows.append(measure(url, files[2:], arguments.latency, arguments.capacity))
    print(conditions())
    table(
        (
            "samples",
            "needed calls",
            "calls",
            "ideal s",
            "wall s",
            "over ideal",
            "CPU ms a call",
            "MiB before",
            "MiB peak",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
