"""The page of metrics: every name that a task can have, from the declared statistics, with
formula and source.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from _ext import markdown
from _ext.api import MODULES

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.statistics import Rating, Statistic
from vieval_plugin.stats import (
    agreement,
    binary,
    correlation,
    orders,
    pairwise,
    thresholds,
    votes,
)


@dataclass(frozen=True)
class Family:
    """Metrics that are computed alike: a regular expression of their names, and what a reader has
    to know of them.

    `function` computes the value; the source of the formula stands in its docstring.
    """

    title: str
    names: str
    meaning: str
    ends: str
    formula: str = ""
    function: Callable[..., Any] | None = None


TIES = r"(four_way|three_way|decisive)"
FAMILIES = (
    Family(
        "Agreement by image model",
        r"\w+_fisher",
        "Spearman's rho between the judge's scores and the annotators' mean ratings of each "
        "image model, averaged over the "
        "*M* image models, and then over parts, by Fisher's transformation.",
        "from -1 to 1",
        r"\tanh\left(\frac{1}{M}\sum_{m=1}^{M} \operatorname{artanh} r_m\right)",
        correlation.fisher_mean,
    ),
    Family(
        "Agreement as the papers average it",
        r"\w+_paper",
        "The same correlations, rounded to four decimals, as the published code averages them. "
        "Compare it with printed "
        "tables only: without the inverse transformation it is pulled towards 0.",
        "from -1 to 1",
        r"\tanh\left(\frac{1}{M}\sum_{m=1}^{M} r_m\right)",
        correlation.paper_mean,
    ),
    Family(
        "Number of samples", r"\w+_count", "How many samples have a score.", "0 or more"
    ),
    Family(
        "Consistency",
        r"\w+_consistency",
        "Krippendorff's alpha of repeated verdicts on the same samples, each repetition taken as "
        "a rater, where a task judges each sample several times.",
        "up to 1; 0 is chance",
        r"1 - \frac{D_\mathrm{observed}}{D_\mathrm{expected}}",
        agreement.krippendorff_alpha,
    ),
    Family(
        "Correlation over all samples",
        r"((?!\w*manual)\w+_)?(pearson|spearman|kendall)_value",
        (
            "Correlation between the judge's scores and the mean ratings of all samples of a part; "
            "`kendall` is tau-b."
        ),
        "from -1 to 1",
        "",
        correlation.correlation,
    ),
    Family(
        "Correlation with annotators",
        r"\w+_manual_(\d+|avg)_(spearman|kendall)_value",
        (
            "Correlation with one annotator by number, or with the mean of all (`avg`), overall or "
            "on a dimension."
        ),
        "from -1 to 1",
        "",
        correlation.correlation,
    ),
    Family(
        "Pairwise accuracy",
        r"pairwise_accuracy_value",
        "Share of pairs of samples that the judge orders, or ties, as annotators do. Two scores "
        "are tied where they differ by at most the threshold that gives the highest accuracy.",
        "from 0 to 1",
        r"\frac{\text{pairs in the same order} + \text{pairs tied in both}}{\text{pairs}}",
        pairwise.calibrated,
    ),
    Family(
        "AUROC",
        r"auroc_value",
        (
            "Probability that a sample with label 1 has a higher score than one with label 0; "
            "equal scores count half."
        ),
        "from 0 to 1; 0.5 is chance",
        r"\frac{\text{won pairs} + \frac{1}{2}\,\text{tied pairs}}{\text{pairs of a 1 and a 0}}",
        binary.auroc,
    ),
    Family(
        "Majority agreement",
        r"majority_agreement_value",
        "Share of images of which the judge says what most annotators say. It calls an image "
        "right from a score of 0.5 on; where annotators tie, it counts half.",
        "from 0 to 1",
    ),
    Family(
        "Preference accuracy",
        r"preference_accuracy_value",
        "Share of pairs in which the image that people prefer has the higher score. The label "
        "and the comparison of the scores are each 1, 0, or ½ for a tie.",
        "from 0 to 1; 0.5 is chance",
        r"\frac{1}{n}\sum_i \left(1 - |\mathrm{label}_i - \mathrm{comparison}_i|\right)",
        binary.preference_points,
    ),
    Family(
        "Winoground's scores",
        r"(text|image|group)_score_value",
        "Share of examples, two images with two texts, that are right. `text`: each image scores "
        "higher with its own "
        "text. `image`: each text scores higher with its own image. `group`: both.",
        "from 0 to 1; chance is 1/4, 1/4 and 1/6",
        (
            r"\mathrm{text}: s_{00} > s_{01} \wedge s_{11} > s_{10} \qquad \mathrm{image}: "
            r"s_{00} > "
            r"s_{10} \wedge s_{11} > s_{01}"
        ),
        binary.right_points,
    ),
    Family(
        "Rankings",
        rf"\w+_all_pairs_accuracy_{TIES}_value",
        "Share of contests of two or more candidates all of whose pairs are right.",
        "from 0 to 1",
        r"\frac{\text{contests with all pairs right}}{\text{contests}}",
        votes.group_points,
    ),
    Family(
        "Accuracy of votes",
        rf"\w*[A-Za-z]_accuracy_{TIES}_value",
        "Share of pairs in which the judge's vote is that of people. `four_way`: first, second, "
        "both good, both bad. `three_way`: both ties are one. `decisive`: only pairs in which "
        "people prefer one count, and a tie is wrong. A missing answer is wrong. `votes_...` is "
        "of judges that vote, `O_...` of votes made from scores, `votes_forward_...` of the "
        "forward order alone.",
        "from 0 to 1",
        r"\frac{\text{right pairs}}{\text{pairs}}",
        votes.points,
    ),
    Family(
        "Above the best constant answer",
        rf"\w+_above_constant_{TIES}_value",
        "Accuracy of votes less that of the best fixed answer, such as always `first`.",
        "from -1 to 1",
        "",
        votes.best_constant,
    ),
    Family(
        "Upper bound of thresholds",
        rf"\w+_upper_bound_{TIES}_value",
        "Accuracy of votes made from scores with the thresholds that are best on the test set "
        "itself. No choice of thresholds can exceed it; it is not an accuracy of the judge.",
        "from 0 to 1",
        "",
        thresholds.best_thresholds,
    ),
    Family(
        "Both orders",
        r"votes_(both_orders|each_order)_accuracy_value",
        (
            "`both_orders`: right in both orders of showing. `each_order`: each order with an "
            "answer counts once, as in MMRB2."
        ),
        "from 0 to 1",
        "",
        orders.each_order_points,
    ),
    Family(
        "Consistency of orders",
        r"votes_(in)?consistent_share_value",
        "Share of pairs to which both orders give the same answer, or different ones. With those "
        "in which an order has no readable answer they sum to 1.",
        "from 0 to 1",
        "",
        orders.consistent_points,
    ),
    Family(
        "Mean scores",
        r"\w+_(mean|best)_value",
        "Of a generator, the mean over prompts of a prompt's mean image (`mean`) or best image "
        "(`best`), as the judge sees "
        "them. Of a judge's own further scores, their mean over samples.",
        "from 0 to 1",
    ),
    Family(
        "Costs",
        r"(generation|judging)_(seconds|tokens)_value",
        "Mean seconds and tokens an image took, over the images of which they are known.",
        "0 or more",
    ),
    Family(
        "Statuses",
        r"status_\w+_share",
        "Share of samples by [status](results.md#statuses).",
        "from 0 to 1",
    ),
    Family(
        "Exact scores",
        r"exact_share",
        (
            "Share of scores that are known to the fourth decimal, for judges whose scores may be "
            "known to an interval only."
        ),
        "from 0 to 1",
    ),
    Family(
        "Remarks",
        r"remarks",
        "A text: failure policy, resamples and seed, and which numbers are undefined and why.",
        "text",
    ),
)


def page() -> str:
    """Every metric by family; a metric of no family is an error, and so is a family of no
    metric.
    """
    homes = _homes()
    family_of = {name: _family(name) for name in homes}
    if idle := [
        family.title for family in FAMILIES if family not in family_of.values()
    ]:
        raise ValueError(
            f"docs/_ext/metrics.py: no statistic has a metric of {', '.join(idle)}"
        )
    intro = (
        "These are the names of metrics in lmms-eval's results, and of statistics in `cells.json`. "
        "This page is generated from the benchmarks' declared statistics.\n\n"
        "Most values have a 95% interval by cluster bootstrap: in place of the last word their "
        "names end in `ci_low` and "
        "`ci_high`, as in `O_ci_low`. [How numbers are made](../explanation/numbers.md) "
        "describes failure policies, intervals and tests."
    )
    sections = (
        part
        for family in FAMILIES
        for part in _section(
            family, {name: homes[name] for name in homes if family_of[name] == family}
        )
    )
    return markdown.page("Metrics", intro, *sections)


def _homes() -> dict[str, set[str]]:
    """The benchmarks of each metric, in the order of the benchmarks' declarations."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for benchmark in benchmark_registry.benchmarks().values():
        for statistic in _statistics(benchmark):
            homes[statistic.metric].add(benchmark.name)
    for name in metrics.names(_no_statistics(), Rating((), intervals=True)):
        homes[name] = set()
    return dict(homes)


def _no_statistics() -> Any:
    return type("NoStatistics", (), {"statistics": staticmethod(lambda rating: ())})


def _statistics(benchmark: Benchmark) -> Iterator[Statistic]:
    """Those for any judge, with repeated verdicts and several images a prompt."""
    for spec in judge_registry.judges().values():
        for repeats in (1, 2):
            rating = Rating(
                spec.aspects,
                spec.dimensions,
                spec.grades(spec.options()),
                spec.intervals,
                repeats,
                spec.against_all,
            )
            yield from benchmark.report.statistics(rating)


def _family(name: str) -> Family:
    family = next(
        (family for family in FAMILIES if re.fullmatch(family.names, name)), None
    )
    if family is None:
        raise ValueError(
            f"docs/_ext/metrics.py: {name} is a metric of no family; add what it means to FAMILIES"
        )
    return family


def _section(family: Family, homes: dict[str, set[str]]) -> Iterator[str]:
    yield f"## {family.title}"
    yield f"{family.meaning} Range: {family.ends}."
    if family.formula:
        yield f"$$\n{family.formula}\n$$"
    if family.function:
        yield f"{_computed_by(family.function)}{_source(family.function)}"
    by_home: defaultdict[str, list[str]] = defaultdict(list)
    for name, benchmarks in homes.items():
        by_home[markdown.codes(sorted(benchmarks)) or "all"].append(name)
    yield markdown.table(
        ["metric", "benchmarks"],
        ([markdown.codes(names), home] for home, names in by_home.items()),
    )


def _computed_by(function: Callable[..., Any]) -> str:
    module = function.__module__.removeprefix("vieval_plugin.")
    name = f"`{module}.{function.__name__}`"
    return (
        f"Computed by [{name}](api/{module}.md)."
        if module in MODULES
        else f"Computed by {name}."
    )


def _source(function: Callable[..., Any]) -> str:
    found = re.search(
        r"^Source: (.+?)(?:\n\n|\Z)",
        inspect.getdoc(function) or "",
        re.MULTILINE | re.DOTALL,
    )
    return f" Source: {markdown.text(found[1])}" if found else ""
