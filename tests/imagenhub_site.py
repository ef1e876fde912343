"""A local server laid out as ImagenHub's sources are, with the faults hosts have."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import yaml
from PIL import Image, ImageDraw

from tests.pictures import encoded
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.imagenhub.conditions import Hosts
from vieval_plugin.readers import download

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')
from aiohttp import web

TIE = "ImagenHub_Text-Guided_IE"
CONTROLS = ("sample_0_control_canny.jpg", "sample_1_control_depth.jpg")
#: Image models and uids of each task.
REDUCED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tig": (("SD", "SDXL"), ("sample_0.jpg", "sample_1.jpg", "sample_120.jpg")),
    "tie": (("MagicBrush", "SDEdit"), ("sample_34_1.jpg", "sample_34_2.jpg")),
    "mie": (("Glide",), ("sample_34_1.jpg",)),
    "sdig": (("DreamBooth",), ("sample_3.jpg",)),
    "sdie": (("PhotoSwap",), ("sample_7.jpg",)),
    "mcic": (("CustomDiffusion",), ("sample_9.jpg",)),
    "cig": (("ControlNet",), CONTROLS),
}
CONDITIONS: dict[str, tuple[str, ...]] = dict.fromkeys(REDUCED, ("input",))
CONDITIONS |= {"tig": (), "mie": ("input", "mask"), "sdie": ("input", "token")}
ROWS: dict[str, list[dict[str, Any]]] = yaml.safe_load("""
tie:
- {img_id: "34", turn_index: 1, instruction: add a cat, source_global_caption: a dog, source_img: {}}
- {img_id: "34", turn_index: 2, instruction: remove it, target_global_caption: a cat}
mie: [{img_id: "34", turn_index: 1, instruction: add a cat, mask_img: {src: "https://…"}}]
sdig: [{uid: 3, prompt: a <token> dog, subject: dog, subject_id: 1}]
sdie: [{uid: 7, subject: poop_emoji}]
mcic: [{uid: 9, prompt: a dog in a car, concept1: dog, concept2: car}]
cig:
- {img_id: 0, control_type: canny, text: a dog}
- {img_id: 1, control_type: depth, text: a man, guide: {}}
""")
TIG = {"category": "abstract", "image": None}
ROWS["tig"] = [{"uid": n, "prompt": f"prompt {n} é", **TIG} for n in range(230)]


def drawn(text: str) -> bytes:
    """A small JPEG that differs from file to file."""
    image = Image.new("RGB", (48, 32), "white")
    ImageDraw.Draw(image).text((1, 1), text, fill="black")
    return encoded(image, "JPEG")


class Site:
    """Serves /ratings, /hub and /museum; `faults` are scripted answers, one a request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.rows = {task: list(rows) for task, rows in ROWS.items()}
        self.faults: dict[str, list[str]] = {}
        self.hits: Counter[str] = Counter()
        self.base = ""

    def hosts(self) -> Hosts:
        return Hosts(f"{self.base}/ratings", f"{self.base}/hub/", f"{self.base}/museum")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.hits[request.path] += 1
        faults = self.faults.get(request.path, [])
        if faults:
            fault = faults[0] if faults[0].endswith("!") else faults.pop(0)
            return await self.fault(request, fault)
        if request.path == "/hub/rows":
            return self.page(request)
        if request.path not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[request.path])

    def page(self, request: web.Request) -> web.Response:
        asked = request.query
        hubs = {t: info.hub for t, info in imagenhub.TASKS.items()}
        place = (asked["dataset"], asked["split"])
        task = next(t for t, hub in hubs.items() if (hub.dataset, hub.split) == place)
        assert asked["config"] == "default"
        start, length = int(asked["offset"]), int(asked["length"])
        numbered = enumerate(self.rows[task])
        rows = [
            {"row_idx": i, "row": row, "truncated_cells": []} for i, row in numbered
        ]
        page = rows[start : start + min(length, 100)]
        document = {"features": [], "rows": page, "num_rows_total": len(rows)}
        return web.json_response(document)

    async def fault(self, request: web.Request, name: str) -> web.StreamResponse:
        """A fault that ends in `!` lasts."""
        kind, _, detail = name.rstrip("!").partition(" ")
        if kind == "status":
            code, _, wait = detail.partition(" ")
            headers = {"Retry-After": wait} if wait else {}
            return web.Response(status=int(code), headers=headers)
        if kind == "html":
            text = "<html>sign in to go on</html>"
            return web.Response(text=text, content_type="text/html")
        if kind == "hang":
            await asyncio.sleep(30)
        length = {"cut": "1000", "huge": str(download.MAX_BODY + 1)}.get(kind)
        headers = {"Content-Length": length} if length else {}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(self.files.get(request.path, b"x" * 200)[:200])
        if kind == "endless":
            for _ in range(100):
                await response.write(b"x" * 2**16)
        assert request.transport is not None
        request.transport.close()
        return response


@asynccontextmanager
async def listening(*handlers: Any) -> AsyncIterator[list[str]]:
    """The addresses of hosts, each of which answers by a handler."""
    runners = []
    for handler in handlers:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        runners.append(
            web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        )
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
    yield [f"http://127.0.0.1:{runner.addresses[0][1]}" for runner in runners]
    for runner in runners:
        await runner.cleanup()


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A whole and faultless site for the reduced tasks."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "FIRST_WAIT", 0.01)
    site = Site()
    for task, (models, uids) in REDUCED.items():
        described = imagenhub.TASKS[task]
        info = replace(described, image_models=models, instructions=len(uids))
        monkeypatch.setitem(imagenhub.TASKS, task, info)
        rows = [["uid", *models, "Unused"]]
        rows += [[uid, *("[0.5, 1]" for _ in models), "[0, 0]"] for uid in uids]
        table = "\r\n".join(map("\t".join, rows)).encode()
        for rater in (1, 2, 3):
            name = f"{info.ratings_stem}_rater{rater}.tsv"
            site.files[f"/ratings/{info.folder}/{name}"] = table
        for kind, uid in product((*CONDITIONS[task], *models), uids):
            image = drawn(f"{task} {kind} {uid}")
            site.files[f"/museum/{info.folder}/{kind}/{uid}"] = image
    async with listening(site.answer) as addresses:
        [site.base] = addresses
        yield site
