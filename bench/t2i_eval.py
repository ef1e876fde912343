"""T2I-Eval's 33 calls a sample, 8 deep: how near to what the server can do, and how long one sample takes alone.

Baseline in the same run: calls x latency / capacity for many samples, 8 latencies for one. The
server is the tests' fake one in a process of its own; to an extraction it answers with a structure
of nine questions, three of them on looks.
"""

from __future__ import annotations

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

from common import (
    SERVER,
    conditions,
    copies,
    costs,
    options,
    samples,
    script_parser,
    table,
)

from vieval_plugin import Backbone, Progress, evaluate_async
from vieval_plugin.judges.protocol import Status

CALLS = 33
DEPTH = 8
_ATTRIBUTES = {
    "hill": ("existence", "quantity"),
    "sky": ("existence", "quantity"),
    "tree": ("existence",),
}


def _entity(name: str, attributes: tuple[str, ...]) -> dict[str, Any]:
    questions = []
    for attribute in attributes:
        question = {
            "name": attribute,
            "value": "yes",
            "question": f"What of the {name}'s {attribute}?",
        }
        questions.append(question)
    return {
        "name": name,
        "caption": f"a {name}",
        "appearance_question": f"Does the {name} look real?",
        "attributes": questions,
    }


STRUCTURE = {
    "entities": [_entity(name, names) for name, names in _ATTRIBUTES.items()],
    "relations": [
        {
            "entities": ["tree", "hill"],
            "value": "on",
            "question": "Where is the tree?",
        }
    ],
}


def _serve(settings: dict[str, Any], address: Connection) -> None:
    sys.path.append(str(SERVER.parent))
    from fake_server import FakeServer, instance

    def reply(request: dict[str, Any]) -> str:
        schema = request["response_format"]["json_schema"]["schema"]
        if "entities" in schema["properties"]:
            return json.dumps(STRUCTURE)
        return json.dumps(instance(schema, b"0123456789abcdef"))

    with FakeServer(reply=reply, **settings) as server:
        address.send(server.base_url)
        address.recv()


@contextmanager
def scripted_server(**settings: float) -> Iterator[str]:
    """The address of a fake server that knows one structure."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(settings, there))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def measure(url: str, files: list[Path], latency: float, capacity: int) -> list[object]:
    """One row: the run's wall time against what its calls need at least."""
    progress = Progress()
    backbone = Backbone(model="fake", base_url=url, num_concurrent=2 * capacity)
    with costs() as cost:
        evaluation = evaluate_async(
            list(samples(files)),
            judge="t2i_eval",
            backbone=backbone,
            options=options(None),
            progress=progress,
        )
        verdicts = asyncio.run(evaluation)
    assert all(verdict.status is Status.OK for verdict in verdicts), verdicts[0]
    needed = CALLS * len(files)
    ideal = needed * latency / capacity
    if len(files) == 1:
        ideal = DEPTH * latency
    calls = progress.usage.calls
    return [
        len(files),
        needed,
        calls,
        ideal,
        cost.wall,
        cost.wall / ideal,
        1000 * cost.cpu / calls,
        cost.before,
        cost.peak,
    ]


def main() -> None:
    parser = script_parser(__doc__, samples=300, capacity=32, side=512)
    parser.add_argument("--latency", type=float, default=0.2)
    options = parser.parse_args()
    server = (options.latency, options.capacity)
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        scripted_server(latency=options.latency, capacity=options.capacity) as url,
    ):
        files = copies(Path(folder), options.samples + 2, options.side)
        measure(url, files[:1], *server)  # imports and the probe for schemas
        rows.append(measure(url, files[1:2], *server))
        rows.append(measure(url, files[2:], *server))
    print(conditions())
    columns = {
        "samples": "",
        "needed calls": "",
        "calls": "",
        "ideal s": ".2f",
        "wall s": ".2f",
        "over ideal": ".3f",
        "CPU ms a call": ".2f",
        "MiB before": ".0f",
        "MiB peak": ".0f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
