"""Cost plan of a run: a pilot of a few samples and an estimate for all."""

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
from itertools import chain, repeat
from pathlib import Path

import numpy as np
from tqdm import tqdm

from vieval_plugin.backends.http.batches import PRICE
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.stats.decisions import TYPICAL_SPREAD
from vieval_plugin.stats.estimate import total
from vieval_plugin.stats.non_inferiority import smallest_difference
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

_LARGEST_SAMPLES = "if every sample needs as many calls as the pilot's maximum"
_LONGEST_ANSWERS = "if every answer reaches max_tokens"
PILOT = 8
#: The environment variable that has a host's run planned instead of made.
VARIABLE = "VIEVAL_PLAN"


def is_planned() -> bool:
    """Return whether the environment asks for a plan."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


@dataclass(frozen=True)
class Pilot:
    """The costs of a few samples of a run."""

    judge: str
    #: It asks a model, and does not measure alone.
    asks_a_model: bool
    #: Seed that they were drawn by.
    seed: int
    #: Samples of the run.
    samples: int
    #: Costs of each, of which the first opens connections too; no tokens where nobody says.
    costs: tuple[Usage, ...]
    #: Seconds that the others took together.
    wall: float
    #: Statuses of all verdicts.
    statuses: Counter[Status]
    #: Reason of the first failure; empty without failures.
    reason: str

    @property
    def cached(self) -> int:
        """The number of answers that were in the store."""
        return sum(cost.cached for cost in self.costs)

    @property
    def questions(self) -> list[int]:
        """The questions about each sample."""
        return [self.asks_a_model * (cost.calls + cost.cached) for cost in self.costs]


def pilot_of(
    judge: str,
    asks_a_model: bool,
    seed: int,
    samples: int,
    results: Sequence[tuple[Verdict, Usage]],
    wall: float,
) -> Pilot:
    """Pilot of a judge; VievalError if no sample could be judged."""
    statuses = Counter(verdict.status for verdict, _ in results)
    reason = next(
        (verdict.reason for verdict, _ in results if not verdict.status.usable), ""
    )
    if not any(status.usable for status in statuses):
        raise VievalError(
            f"could not judge any pilot sample ({len(results)} tried): {reason[:300]}"
        )
    return Pilot(
        judge,
        asks_a_model,
        seed,
        samples,
        tuple(usage for _, usage in results),
        wall,
        statuses,
        reason,
    )


def to_ask(judged: Sequence[Judged], prepared: PreparedJudge) -> list[Judged]:
    """The samples that a judge is asked about: it applies to them, and their images are there."""
    return [sample for sample in judged if not obstacle(sample, prepared)]


def obstacle(judged: Judged, prepared: PreparedJudge) -> str:
    """Reason that a judge is not asked about a sample, in words; empty where it is."""
    reason = ""
    if not prepared.takes_apart(judged):
        reason = missing_inputs_reason(prepared.spec, judged)
    return reason or absent_image(judged)


async def pilot(
    samples: Sequence[Judged],
    prepared: PreparedJudge,
    options: Config,
    backbone: Backbone | None,
) -> Pilot:
    """Judge eight samples, or all where there are fewer, and keep count; what is answered is stored
    as in any run.

    Raises:
        VievalError: there is nothing to ask about, or none of them could be judged.
    """
    if not samples:
        raise VievalError(
            f"{prepared.spec.name} cannot judge any of these samples; choose another judge"
        )
    seed = options.statistics.seed
    first, *further = [samples[number] for number in pilot_numbers(len(samples), seed)]
    with (
        _set_store(options) as options_with_store,
        tqdm(total=1 + len(further), desc="Pilot", unit="sample") as progress_bar,
    ):

        async def results_of(*group: Judged) -> list[tuple[Verdict, Usage]]:
            progress = Progress()
            outcomes = await outcomes_of(
                group,
                prepared,
                options_with_store,
                backbone,
                progress,
                bar=False,
            )
            progress_bar.update(len(group))
            usage = progress.usage
            if usage.cached:  # what a stored reply took is known of texts only
                usage.input_tokens = sum(outcome.input_tokens for outcome in outcomes)
                usage.output_tokens = sum(outcome.output_tokens for outcome in outcomes)
            verdicts = (outcome.verdict for outcome in outcomes)
            return list(zip(verdicts, chain([usage], repeat(Usage())), strict=False))

        results = await results_of(first)
        started = time.monotonic()
        if prepared.asks_a_model:
            results += chain.from_iterable(
                await asyncio.gather(*map(results_of, further))
            )
        elif further:  # measured in batches, by what is loaded once
            results += await results_of(*further)
    return pilot_of(
        prepared.spec.name,
        prepared.asks_a_model,
        seed,
        len(samples),
        results,
        time.monotonic() - started,
    )


def pilot_numbers(population: int, seed: int) -> list[int]:
    """The numbers of the samples of a pilot."""
    numbers = np.random.default_rng(seed).permutation(population)
    return list(map(int, numbers[:PILOT]))


@contextmanager
def _set_store(options: Config) -> Iterator[Config]:
    """The same options with a store, which also keeps what is known of the server.

    It is one for the pilot alone where none is wanted, or where what is stored is to be asked anew.
    """
    if options.store.use and options.store.max_age != 0:
        yield options
        return
    with tempfile.TemporaryDirectory() as folder:
        store = options.store.model_copy(
            update={
                "use": True,
                "max_age": None,
                "path": Path(folder) / "replies.sqlite",
            }
        )
        yield options.model_copy(update={"store": store})


def plan(
    trial: Pilot,
    backbone: Backbone | None,
    by_batches: bool = False,
) -> list[str]:
    """The pilot's estimate of a run over all samples, in lines.

    Eight samples show no tail, such as one answer in a hundred that is ten times as long, so no
    number has an interval: it is a least one, with the most that limits allow where these are
    known.

    `backbone` is the model behind a server that is asked; None where a model of this process is, or
    none. `by_batches`: questions are to be asked by batches.
    """
    counts = [f"{status} {count}" for status, count in trial.statuses.most_common()]
    by = f" by {backbone.model}" if backbone else ""
    asked = any(trial.questions)
    calls = f"about {_calls(trial):,.0f} calls" if asked else "no calls"
    lines = [
        f"plan: {trial.judge}{by}, {trial.samples} samples: {calls}",
        f"pilot of {len(trial.costs)} (seed {trial.seed}): {', '.join(counts)}",
    ]
    if any(not status.usable for status in trial.statuses):
        lines.append(f"first failure: {trial.reason[:300]}")
    if asked:
        tokens_in = _total_of_known(
            [cost.input_tokens for cost in trial.costs], trial.samples
        )
        tokens_out = _total_of_known(
            [cost.output_tokens for cost in trial.costs], trial.samples
        )
        first_count, *later_counts = trial.questions
        most_calls = first_count + max(later_counts, default=0) * (trial.samples - 1)
        calls = _cost_range(_calls(trial), most_calls, _LARGEST_SAMPLES)
        output = _cost_range(tokens_out, _most_output(trial), _LONGEST_ANSWERS)
        lines += [
            f"calls: {calls}",
            f"tokens in: {_cost_range(tokens_in)}{_cached_share(trial)}",
            f"tokens out: {output}",
        ]
    else:
        lines.append("calls: 0, tokens: 0, price: 0")
    lines.append(f"seconds: {_seconds(trial, backbone)}")
    if backbone:
        lines.append(f"price: {_price(trial, backbone, by_batches)}")
    if trial.cached:
        lines.append(
            f"{plural(trial.cached, 'pilot answer')} came from the cache; the figures are "
            "for a run without the cache"
        )
    return lines


def _cached_share(trial: Pilot) -> str:
    """Share of the pilot's tokens that the server had cached, in words."""
    cached = sum(cost.cached_tokens for cost in trial.costs)
    tokens = sum(cost.input_tokens for cost in trial.costs)
    return f", {cached / max(tokens, 1):.0%} cached in the pilot" if cached else ""


def _calls(trial: Pilot) -> float:
    """Calls for all samples; those of the first, which include probes, are added once."""
    first, *further = trial.questions
    return first + (total(further, trial.samples - 1).value if further else 0.0)


def _total_of_known(values: Sequence[float], population: int) -> float:
    """Total over a population, estimated from nonzero values; NaN without any."""
    known_values = [value for value in values if value]
    return total(known_values, population).value if known_values else math.nan


def _most_output(trial: Pilot) -> float:
    """Upper limit of the tokens of all answers; NaN if unknown."""
    if len(trial.costs) == trial.samples:  # nothing is left to be asked
        return math.nan
    return max(cost.output_limit for cost in trial.costs) * trial.samples or math.nan


def _seconds(trial: Pilot, backbone: Backbone | None) -> str:
    """Duration of a run in words, with concurrent requests and at the pilot's
    throughput.
    """
    fresh_costs = [cost for cost in trial.costs if not cost.cached]
    further = sum(not cost.cached for cost in trial.costs[1:])
    if not fresh_costs or (trial.samples > 1 and not further):
        return (
            "unknown, because pilot answers came from the cache; use --fresh, or "
            "the option store: {max_age: 0}, to ask again"
        )
    slowest = trial.wall / further * (trial.samples - 1) if further else 0.0
    if backbone is None:
        return f"about {_short(slowest)}"
    at_once = backbone.num_concurrent
    longest = max(cost.seconds / max(cost.calls, 1) for cost in fresh_costs)
    seconds = total([cost.seconds for cost in fresh_costs], trial.samples).value
    fastest = max(seconds / at_once, longest)
    slowest = max(slowest, fastest)
    return (
        f"{_short(fastest)} if {at_once} concurrent requests are as fast as those of the "
        f"pilot, {_short(slowest)} at the pilot's throughput"
    )


def _price(
    trial: Pilot,
    backbone: Backbone,
    by_batches: bool,
) -> str:
    if backbone.price_input is None or backbone.price_output is None:
        return (
            "unknown; pass --price-input and --price-output per million tokens, or "
            "set price_input and price_output of the backbone"
        )
    known_costs = [
        cost for cost in trial.costs if cost.input_tokens and cost.output_tokens
    ]
    sample_prices = [
        backbone.price_of(c.input_tokens, c.cached_tokens, c.output_tokens)
        for c in known_costs
    ]
    priced = total(sample_prices, trial.samples).value if sample_prices else math.nan
    if math.isnan(priced):
        return "unknown, because the token counts are unknown"
    rate_in = f"{backbone.price_input:g} per million input tokens"
    rate_out = f"{backbone.price_output:g} per million output tokens"
    output = _total_of_known(
        [cost.output_tokens for cost in known_costs], trial.samples
    )
    highest = priced + (_most_output(trial) - output) * backbone.price_output / 1e6
    factor = 1.0
    by = ""
    if by_batches:
        factor = PRICE
        by = f" with batches ({priced:.4g} without)"
    paid = _cost_range(factor * priced, factor * highest, _LONGEST_ANSWERS, ".4g")
    return f"{paid}{by}, at {rate_in} and {rate_out}"


def _cost_range(
    least: float,
    most: float = math.nan,
    reason: str = "",
    form: str = ",.0f",
) -> str:
    """A cost in words: the estimate and, if higher, its upper limit.

    >>> _cost_range(800, 800), _cost_range(800, 900, "at most")
    ('800', 'about 800 or more, up to 900 at most')
    >>> _cost_range(800), _cost_range(math.nan)
    ('about 800', 'unknown, because the server does not report it')
    """
    if math.isnan(least):
        return "unknown, because the server does not report it"
    text = format(least, form)
    if math.isnan(most):
        return f"about {text}"
    highest = format(most, form)
    if most <= least or highest == text:
        return text
    return f"about {text} or more, up to {highest} {reason}"


def _short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}"


def detectable_difference(samples: Sequence[Judged]) -> str:
    """Line about the smallest difference of means that the samples can detect."""
    prompts = {(sample.id.part, sample.id.uid) for sample in samples}
    units = {(sample.id.part, sample.group) for sample in samples}
    unit = "prompt" if len(units) == len(prompts) else "group"
    smallest = smallest_difference(TYPICAL_SPREAD, len(units))
    count = plural(len(units), unit)
    return (
        f"with {count}, a difference of {smallest:.2f} between means would be found four "
        f"times in five, assuming a typical spread of {TYPICAL_SPREAD:g}"
    )
