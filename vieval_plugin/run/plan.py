"""The plan of a run, which says what it would cost: a pilot of a few samples, and an estimate for all."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.stats.estimate import Estimate, total
from vieval_plugin.text.errors import VievalError

PILOT = 8
VARIABLE = "VIEVAL_PLAN"
"""The environment variable that has a host's run planned instead of made."""


def is_planned() -> bool:
    """Return whether the environment asks for a plan."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


@dataclass(frozen=True)
class Spent:
    """The cost of judging one sample."""

    #: Questions of a model.
    questions: float
    #: Tokens in; NaN where nobody says.
    input_tokens: float
    #: Tokens out; NaN where nobody says.
    output_tokens: float
    #: Seconds of calls.
    seconds: float
    #: Answers that were in the store.
    cached: int = 0
    #: Tokens in that the server had in its cache.
    cached_tokens: float = 0.0


@dataclass(frozen=True)
class Pilot:
    """The costs of a few samples of a run."""

    #: Name of the judge.
    judge: str
    #: Seed that they were drawn by.
    seed: int
    #: Samples of the run.
    samples: int
    #: Cost of the first, which also opens connections.
    first: Spent
    #: Costs of the others.
    further: tuple[Spent, ...]
    #: Seconds that the others took together.
    wall: float
    #: Statuses of all verdicts.
    statuses: Counter[Status]
    #: Reason of the first failure; empty where there is none.
    reason: str = ""

    @property
    def costs(self) -> tuple[Spent, ...]:
        """The costs of all samples of the pilot."""
        return (self.first, *self.further)

    @property
    def cached(self) -> int:
        """The number of answers that were in the store."""
        return sum(cost.cached for cost in self.costs)


def to_ask(judged: Sequence[Judged], prepared: PreparedJudge) -> list[Judged]:
    """The samples that a judge is asked about: it applies to them, and their images are there."""
    return [
        sample
        for sample in judged
        if (prepared.takes_apart(sample) or not missing_inputs_reason(prepared.spec, sample))
        and not absent_image(sample)
    ]


async def pilot(
    samples: Sequence[Judged], prepared: PreparedJudge, options: Config, backbone: Backbone | None
) -> Pilot:
    """Judge eight samples, or all where there are fewer, and keep count; what is answered is stored as in any run.

    Raises:
        VievalError: there is nothing to ask about, or none of them could be judged.
    """
    if not samples:
        raise VievalError(f"{prepared.spec.name} can judge none of these samples, so there is nothing to plan")
    seed = options.statistics.seed
    first, *further = [samples[number] for number in pilot_numbers(len(samples), seed)]
    statuses, reasons = Counter[Status](), list[str]()
    with (
        _with_store(options) as options_with_store,
        tqdm(total=1 + len(further), desc="Pilot", unit="sample") as progress_bar,
    ):

        async def cost_of(*group: Judged) -> Spent:
            progress = Progress()
            outcomes = await outcomes_of(group, prepared, options_with_store, backbone, progress, bar=False)
            statuses.update(outcome.verdict.status for outcome in outcomes)
            reasons.extend(outcome.verdict.reason for outcome in outcomes if not outcome.verdict.status.usable)
            progress_bar.update(len(group))
            usage = progress.usage
            counts = (usage.input_tokens, usage.output_tokens)
            if usage.cached:  # what a stored reply took is known of texts only
                counts = (
                    sum(outcome.input_tokens for outcome in outcomes),
                    sum(outcome.output_tokens for outcome in outcomes),
                )
            tokens_in, tokens_out = (count or math.nan for count in counts)
            # the store also has what a judge of this process measured, which is no call
            questions = usage.calls + usage.cached if prepared.asks_a_model else 0
            return Spent(questions, tokens_in, tokens_out, usage.seconds, usage.cached, usage.cached_tokens)

        opening = await cost_of(first)
        started = time.monotonic()
        if prepared.asks_a_model:
            costs = await asyncio.gather(*(cost_of(sample) for sample in further))
        else:  # measured in batches, by what is loaded once
            costs = [await cost_of(*further)] if further else []
        wall = time.monotonic() - started
    require_answered(statuses, reasons)
    return Pilot(prepared.spec.name, seed, len(samples), opening, tuple(costs), wall, statuses, next(iter(reasons), ""))


def pilot_numbers(population: int, seed: int) -> list[int]:
    """The numbers of the samples of a pilot."""
    return [int(number) for number in np.random.default_rng(seed).permutation(population)[:PILOT]]


def require_answered(statuses: Counter[Status], reasons: Sequence[str]) -> None:
    """VievalError where no sample of a pilot could be judged, which says nothing of what the others cost."""
    if not any(status.usable for status in statuses):
        reason = next(iter(reasons), "")[:300]
        raise VievalError(f"none of the {sum(statuses.values())} samples of the pilot could be judged: {reason}")


@contextmanager
def _with_store(options: Config) -> Iterator[Config]:
    """The same options with a store, which also keeps what is known of the server.

    It is one for the pilot alone where none is wanted, or where what is stored is to be asked anew.
    """
    if options.store.use and not options.store.refresh:
        yield options
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replies.sqlite"
        store = options.store.model_copy(update={"use": True, "refresh": False, "path": path})
        yield options.model_copy(update={"store": store})


def plan(trial: Pilot, backbone: Backbone | None, by_batches: bool = False) -> list[str]:
    """The pilot's estimate of a run over all samples, in lines, each number with its 95% interval.

    `backbone` is the model behind a server that is asked; None where a model of this process is, or none. `by_batches`:
    questions are to be asked by batches.
    """
    n = sum(trial.statuses.values())
    statuses = ", ".join(f"{status} {count}" for status, count in trial.statuses.most_common())
    by = f" by {backbone.model}" if backbone else ""
    calls = f"about {_calls(trial).value:,.0f} calls" if any(cost.questions for cost in trial.costs) else "no calls"
    lines = [
        f"plan: {trial.judge}{by}, {trial.samples} samples: {calls}",
        f"a pilot of {n} (seed {trial.seed}): {statuses}",
    ]
    if any(not status.usable for status in trial.statuses):
        lines.append(f"the first failure: {trial.reason[:300]}")
    if any(cost.questions for cost in trial.costs):
        lines += [
            f"calls: {_rounded_total(_calls(trial))}",
            f"tokens in: {_tokens(_total_of_finite([cost.input_tokens for cost in trial.costs], trial.samples))}",
            f"tokens out: {_tokens(_total_of_finite([cost.output_tokens for cost in trial.costs], trial.samples))}",
        ]
    else:
        lines.append("calls: 0, tokens: 0, price: 0")
    lines.append(f"seconds: {_seconds(trial, backbone)}")
    if backbone:
        lines.append(f"price: {_price(trial, backbone)}{', and half by batches' * by_batches}")
    if trial.cached:
        lines.append(
            f"{trial.cached} answers of the pilot were in the store; the figures are of a run that asks everything"
        )
    return lines


def _calls(trial: Pilot) -> Estimate:
    """The calls for all samples; those of the first, which also find out what the server can, are added as they are."""
    if not trial.further:
        return total([trial.first.questions], 1)
    further = total([cost.questions for cost in trial.further], trial.samples - 1)
    first = trial.first.questions
    return Estimate(first + further.value, first + further.low, first + further.high)


def _total_of_finite(values: Sequence[float], population: int) -> Estimate:
    """The total over a population from those values that are known; NaN where none is."""
    finite = [value for value in values if not math.isnan(value)]
    return total(finite, population) if finite else Estimate(math.nan)


def _seconds(trial: Pilot, backbone: Backbone | None) -> str:
    """The seconds of a run: between a server that answers as many at once as quickly, and one that does no more at once."""
    fresh_costs = [cost for cost in trial.costs if not cost.cached]
    further = sum(trial.statuses.values()) - 1 - sum(1 for cost in trial.further if cost.cached)
    if not fresh_costs or (trial.samples > 1 and not further):
        return (
            "not known, as answers of the pilot were in the store; --fresh (or store: {refresh: true}) asks them anew"
        )
    slowest = trial.wall / further * (trial.samples - 1) if further else 0.0
    if backbone is None:
        return f"about {_short(slowest)}"
    at_once = backbone.num_concurrent
    longest = max(cost.seconds / max(cost.questions, 1) for cost in fresh_costs)
    fastest = max(total([cost.seconds for cost in fresh_costs], trial.samples).value / at_once, longest)
    return (
        f"{_short(fastest)} if the server answers {at_once} requests at once as quickly as those of the pilot, "
        f"{_short(max(slowest, fastest))} if it gets no further than in the pilot"
    )


def _price(trial: Pilot, backbone: Backbone) -> str:
    if backbone.price_input is None or backbone.price_output is None:
        return "not known; give --price-input and --price-output (price_input and price_output of a backbone), per million tokens"
    sample_prices = [backbone.price_of(c.input_tokens, c.cached_tokens, c.output_tokens) for c in trial.costs]
    priced = _total_of_finite(sample_prices, trial.samples)
    if not priced.defined:
        return "not known, as the tokens are not"
    at = f"at {backbone.price_input:g} in and {backbone.price_output:g} out per million tokens"
    return f"{priced.value:.4g} ({priced.low:.4g} to {priced.high:.4g}), {at}"


def _tokens(estimate: Estimate) -> str:
    return "not known, as the server does not say" if not estimate.defined else _rounded_total(estimate)


def _rounded_total(estimate: Estimate) -> str:
    interval = "" if math.isnan(estimate.low) else f" ({estimate.low:,.0f} to {estimate.high:,.0f})"
    return f"{estimate.value:,.0f}{interval}"


def _short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}"
