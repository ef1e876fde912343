"""Scoring generated images from Python: `evaluate`, `evaluate_async` and `score_matrix`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.config import Backbone, Config, Options, resolved
from vieval_plugin.judges.arguments import named_arguments, require, require_all
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Verdict
from vieval_plugin.records import OWN, Provenance
from vieval_plugin.run import loop
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.text.errors import VievalError

_RATED = "SC"


@named_arguments
def evaluate(
    samples: Iterable[Judged],
    *,
    judge: str = "viescore",
    setting: str | None = None,
    backbone: Backbone | None = None,
    options: Options = None,
    progress: Progress | None = None,
    bar: bool = False,
) -> list[Verdict]:
    """Judge samples or contests and return their verdicts in order, in a notebook too.

    Args:
        samples: what is judged, samples or contests; one that lacks what the judge needs gets a
            verdict `not_applicable`, one whose output is not there or is broken `no_image`, and of
            another image `tool_error`.
        judge: a judge's name, or the file that describes it.
        setting: one of its settings (default: its plain one).
        backbone: the model that answers it (default: `backbones.judge` of the options; image
            metrics need none).
        options: what an options file says, as a mapping or a `Config` (default: the file that
            VIEVAL_CONFIG names).
        progress: where given, counts calls, tokens and failures.
        bar: whether to show a progress bar.

    Returns:
        A verdict a sample. Failed calls are verdicts with a status; scores are in [0, 1].

    Raises:
        VievalError: what is passed is no samples, or the run cannot go on at all.
    """
    return loop.run(
        evaluate_async(
            samples,
            judge=judge,
            setting=setting,
            backbone=backbone,
            options=options,
            progress=progress,
            bar=bar,
        )
    )


async def evaluate_async(
    samples: Iterable[Judged],
    *,
    judge: str = "viescore",
    setting: str | None = None,
    backbone: Backbone | None = None,
    options: Options = None,
    progress: Progress | None = None,
    bar: bool = False,
) -> list[Verdict]:
    """`evaluate` for a running event loop."""
    options = resolved(options)
    checked_samples = require_all(
        samples,
        (Sample, Contest),
        "samples",
        "a list of Sample or Contest objects",
    )
    require(judge, str, "judge", "the name of a judge; `vieval tasks` lists them")
    require(setting, (str, type(None)), "setting", "a string")
    require(
        backbone,
        (Backbone, type(None)),
        "backbone",
        "Backbone(model=..., base_url=...)",
    )
    require(progress, (Progress, type(None)), "progress", "a Progress object")
    outcomes = await outcomes_of(
        checked_samples,
        prepare(judge, setting, options, backbone),
        options,
        backbone,
        progress or Progress(),
        bar,
    )
    return [outcome.verdict for outcome in outcomes]


async def outcomes_of(
    samples: Sequence[Judged],
    prepared: PreparedJudge,
    options: Config,
    backbone: Backbone | None,
    progress: Progress,
    bar: bool,
    decided: Mapping[int, Verdict] | None = None,
) -> list[Outcome]:
    """Outcomes of a prepared judge, in order; `decided` has known verdicts by sample
    number.

    A sample with an image file that is not there is not asked about.
    """
    outcomes: dict[int, Outcome] = {}
    async with Session(options, backbone, progress, prepared.asks_a_model) as session:
        await session.judge(
            samples,
            prepared,
            outcomes,
            bar,
            decided,
        )
    return [outcomes[number] for number in range(len(samples))]


def provenance_of(
    prepared: PreparedJudge,
    options: Config,
    backbone: Backbone | None,
) -> Provenance:
    """The provenance of a run's verdicts, which a results file should contain too."""
    if prepared.spec.scored:
        return prepared.by(scorer_name(options, prepared.spec.name))
    used = (backbone or options.backbones.get(JUDGE)) if prepared.asks_a_model else None
    return prepared.by(used.model if used else None)


def scorer_name(options: Config, judge: str) -> str:
    """The name of a judge's scorer in tables: its weights, or the judge where they are those of
    its definition.
    """
    scorer = options.scorers.get(judge)
    return Path(scorer.model).name if scorer and scorer.model else judge


@named_arguments
def score_matrix(
    images: Iterable[Image],
    texts: Iterable[str],
    *,
    judge: str = "vqascore",
    backbone: Backbone | None = None,
    options: Options = None,
    progress: Progress | None = None,
    bar: bool = False,
) -> NDArray[np.float64]:
    """Semantic consistency of every image with every text, shape (images, texts), in [0, 1]; NaN
    where a call failed.

    All texts of an image are asked one after another, image first, so that a server's prefix cache
    reads the image once.

    Raises:
        VievalError: what is passed are no images and texts, or the judge rates no semantic
            consistency.
    """
    outputs = require_all(
        images,
        Image,
        "images",
        'a list of images, such as [Image(pathlib.Path("x.png"))]',
    )
    prompts = require_all(texts, str, "texts", "a list of strings")
    options = resolved(options)
    require(judge, str, "judge", "the name of a judge; `vieval tasks` lists them")
    if _RATED not in (rated := prepare(judge, None, options, backbone).spec.aspects):
        aspects = ", ".join(rated) or "no single image"
        raise VievalError(
            f"score_matrix requires a judge that rates {_RATED}, but {judge} rates "
            f"{aspects}; use another judge"
        )
    pairs = []
    for i, image in enumerate(outputs):
        for t, text in enumerate(prompts):
            sample_id = SampleId(OWN, "tig", "", f"{i}#{t}")
            pairs.append(
                Sample(
                    sample_id,
                    {"output": image},
                    {"prompt": text},
                    group=str(i),
                    place=(i, t),
                )
            )
    verdicts = evaluate(
        pairs,
        judge=judge,
        backbone=backbone,
        options=options,
        progress=progress,
        bar=bar,
    )
    return np.array(
        [verdict.scores.get(_RATED, math.nan) for verdict in verdicts], dtype=float
    ).reshape(len(outputs), len(prompts))
