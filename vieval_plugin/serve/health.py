"""Health of a judge: ready after a real judgement, and no more when none has succeeded lately."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import numpy as np

from vieval_plugin.images import png_image
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Verdict
from vieval_plugin.judges.spec import EVERY_KIND, INPUTS, Needs
from vieval_plugin.records import OWN
from vieval_plugin.run.prepare import PreparedJudge

#: Seconds for which a judgement shows that a judge is well; then another is made, if nobody asked
#: for one.
FRESH = 30.0
#: Seconds after which a judgement without an end gets another beside it: it may wait for a backbone
#: that has come back.
NEXT_TRY = 5.0
_SIDE = 64
_STARTING = "no image has been judged yet"
_SILENT = "judging an image takes longer than usual"


class Health:
    """Readiness of a judge. `probe` has it judge an image of its own; its verdict says how that
    went.
    """

    def __init__(self, probe: Callable[[], Awaitable[Verdict]]) -> None:
        self._probe = probe
        self._reason = _STARTING
        self._succeeded = float("-inf")
        self._tries: list[asyncio.Task[None]] = []
        self._last_try = float("-inf")
        self._usual_seconds = 0.0

    def note(self, verdict: Verdict) -> None:
        """Record a verdict; what was never asked says nothing."""
        if verdict.status.usable:
            self._succeeded = time.monotonic()
            self._reason = _SILENT
        elif verdict.reason:
            self._reason = f"{verdict.status}: {verdict.reason}"

    async def fault(self, timeout: float) -> str:
        """Reason that it is not ready, empty where it is; a judgement that has to be
        made is waited for the given number of seconds.
        """
        if self._is_fresh():
            return ""
        await asyncio.wait({self._newest_try()}, timeout=timeout)
        return "" if self._is_fresh() else self._reason

    async def close(self) -> None:
        """End the judgements that are under way."""
        for task in self._tries:
            task.cancel()
        await asyncio.gather(*self._tries, return_exceptions=True)

    def _newest_try(self) -> asyncio.Task[None]:
        """The youngest judgement under way, begun where there is none or it takes long.

        Two are under way at most: the first has all its time, as a judge may be slow, and the
        second is made anew.
        """
        self._tries = [task for task in self._tries if not task.done()]
        now = time.monotonic()
        if not self._tries or now - self._last_try > max(
            NEXT_TRY,
            2 * self._usual_seconds,
        ):
            for renewed in self._tries[1:]:
                renewed.cancel()
            self._last_try = now
            self._tries = [*self._tries[:1], asyncio.ensure_future(self._try())]
        return self._tries[-1]

    async def _try(self) -> None:
        started = time.monotonic()
        verdict = await self._probe()
        self.note(verdict)
        if verdict.status.usable:
            self._usual_seconds = time.monotonic() - started

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._succeeded < FRESH


def probe(judge: PreparedJudge, kind: str) -> Judged:
    """A sample of noise that a judge can be asked about, a contest of two for a judge of contests.

    Args:
        judge: the judge.
        kind: that of the samples, where it knows it; else one that it knows.
    """
    needs = judge.spec.needs
    if kind not in needs:
        kind = next((name for name in needs if name != EVERY_KIND), kind or "tig")
    needed = needs.get(kind, needs.get(EVERY_KIND, Needs()))
    common = INPUTS.get(kind, Needs())
    roles = dict.fromkeys(map(_first_name, (*needed.images, *common.images)))
    names = dict.fromkeys(map(_first_name, (*needed.texts, *common.texts)))
    images = {role: _noise() for role in roles}
    first = Sample(
        SampleId(OWN, kind, "a", "probe"),
        images,
        dict.fromkeys(names, "coloured noise"),
    )
    if judge.spec.rates == "sample":
        return first
    second = replace(
        first,
        id=replace(first.id, image_model="b"),
        images={**images, "output": _noise()},
    )
    return Contest(SampleId(OWN, kind, "", "probe"), (first, second))


def _first_name(names: str | Sequence[str]) -> str:
    """A name, or the first of alternative ones."""
    return names if isinstance(names, str) else names[0]


def _noise() -> Image:
    values = np.frombuffer(secrets.token_bytes(_SIDE * _SIDE * 3), np.uint8)
    return png_image(values.reshape(_SIDE, _SIDE, 3))
