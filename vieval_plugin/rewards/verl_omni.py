"""A judge as a reward function of VeRL-Omni, named in its configuration as
`pkg://vieval_plugin.rewards.verl_omni`.

Everything that an entry of `reward_functions` says beside path, name, weight and required is an
argument here. Leave `required: true` in it: without it VeRL-Omni takes 0 for a reward that failed,
and the generator learns to make it fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from vieval_plugin.rewards.in_process import OpenReward, numbers, open_reward
from vieval_plugin.rewards.samples import Conditions
from vieval_plugin.text.errors import VievalError


async def compute_score(
    data_source: Any = None,
    solution_image: Any = None,
    ground_truth: str = "",
    extra_info: Mapping[str, Any] | None = None,
    reward: str = "",
    model: str | None = None,
    base_url: str | Sequence[str] | None = None,
    options: str = "",
    kind: str = "",
    role: str = "source",
    attempts: int = 3,
    **unused: Any,
) -> dict[str, Any]:
    """The score of one image, for VeRL-Omni.

    Args:
        data_source: not used.
        solution_image: (3, height, width) of uint8 or of floats from 0 to 1, or one such image in a
            batch.
        ground_truth: the prompt, or the instruction of an edit.
        extra_info: `source_img` in it makes it an edit.
        reward: `JUDGE`, `JUDGE:ASPECT` or a weighted sum of such.
        model: the backbone, as its server knows it.
        base_url: the address of that server, or several.
        options: an options file, in place of the one that VIEVAL_CONFIG names.
        kind: that of all samples (default: an edit with a source, else `tig`).
        role: what `source_img` is.
        attempts: how often a question is asked until its answer can be read.
        unused: what the reward manager passes to every function; not used.

    Returns:
        `score`, and `vieval_status`, which is `ok` or `repaired`.

    Raises:
        VievalError: there is no score, or no reward is named.
    """
    if not reward:
        raise VievalError(
            "the entry has no judge; set `reward: JUDGE` or `reward: JUDGE:ASPECT` next to "
            "path and name"
        )
    urls = (base_url,) if isinstance(base_url, str) else tuple(base_url or ())
    opened = _opened(
        reward,
        model,
        urls,
        options,
        Conditions(kind, (role,)),
        attempts,
    )
    source = (extra_info or {}).get("source_img")
    sources = [] if source is None else [[_picture(source)]]
    samples = await asyncio.to_thread(
        opened.samples,
        [str(ground_truth)],
        [solution_image],
        sources,
    )
    values = await opened.values_async(samples)
    return {"score": numbers(values)[0], "vieval_status": str(values[0].status)}


def _picture(source: Any) -> Any:
    """A source, of which data sets have the bytes or the path by name."""
    if isinstance(source, Mapping):
        return source.get("bytes") or source.get("path")
    return source


@lru_cache(maxsize=8)
def _opened(
    reward: str,
    model: str | None,
    urls: tuple[str, ...],
    options: str,
    conditions: Conditions,
    attempts: int,
) -> OpenReward:
    """The reward of an entry, opened once a process; judges open again after a fork."""
    backbone = {"model": model, "base_url": list(urls)} if model else {}
    return open_reward(
        reward,
        conditions,
        attempts,
        options=options or None,
        **backbone,
    )
