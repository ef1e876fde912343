"""The pages of the API, which autodoc fills from docstrings: public names first, then the
modules to extend VIEval with.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from _ext import markdown

import vieval_plugin
from vieval_plugin import api

MODULES = {
    "judges.protocol": "What a judge is given, asks, hears and returns.",
    "judges.contests": "Contests, and how a judge of samples judges one.",
    "prompts.pack": "A prompt pack as judges use it.",
    "judges.spec": "How a judge describes itself.",
    "benchmarks.benchmark": "How a benchmark describes itself.",
    "meta_evaluation.observations": "What statistics see of a run.",
    "meta_evaluation.comparison": "Systems compared two by two.",
    "meta_evaluation.statistics": (
        "A statistic, declared once, and the report object that lists a benchmark's."
    ),
    "rewards.flow_grpo": "A judge as reward of batches of images, in a trainer's own process.",
    "rewards.verl_omni": "The same as a reward function of VeRL-Omni.",
    "rewards.prompt_writer": "The same of a language model that writes prompts.",
    "benchmarks.tasks": "The table of tasks, and the rows that other packages bring.",
    "stats.agreement": "Agreement of human raters.",
    "stats.binary": "Binary labels, preferences and Winoground's scores.",
    "stats.bootstrap": "Resampling and intervals.",
    "stats.comparison": "Whether one judge, or one generator, is better than another.",
    "stats.paired_correlations": "The same for averages of correlations.",
    "stats.correlation": "Correlations.",
    "stats.estimate": "A value with its interval: the one type for it.",
    "stats.pairwise": "Pairwise accuracy with tie calibration.",
    "stats.ranking": "Rankings.",
    "stats.votes": "Votes and accuracies.",
    "stats.orders": "Answers in two orders.",
    "stats.thresholds": "From scores to votes.",
}


def pages() -> dict[str, str]:
    """The index with the public names, and a page a module, by name."""
    modules = markdown.table(
        ["module", "what it holds"],
        (
            [f"[`vieval_plugin.{name}`]({name}.md)", about]
            for name, about in MODULES.items()
        ),
    )
    public = [_public_name(name, vieval_plugin) for name in vieval_plugin.__all__]
    index = markdown.page(
        "Python API",
        "Names of `vieval_plugin` are for programs that judge images. The modules below are for "
        "packages that [extend VIEval](../../guides/extending.md), and for your own statistics.",
        "## vieval_plugin",
        *public,
        "## vieval_plugin.api",
        "`rank`, `gate`, `compare` and `report` do what the commands do, and return objects.",
        *(_public_name(name, api) for name in api.__all__),
        "## Modules",
        modules,
        "\n".join(["```{toctree}", ":hidden:", "", *MODULES, "```"]),
    )
    return {"index": index} | {
        name: _module_page(name, about) for name, about in MODULES.items()
    }


def _public_name(name: str, package: ModuleType) -> str:
    if isinstance(getattr(package, name), type):
        return _autodoc("class", f"{package.__name__}.{name}", ":members:")
    return _autodoc("function", f"{package.__name__}.{name}")


def _module_page(name: str, about: str) -> str:
    module = importlib.import_module(f"vieval_plugin.{name}")
    public = [
        public
        for public in vieval_plugin.__all__
        if vieval_plugin._HOMES.get(public) == name
    ]
    paths = [
        constant for constant, value in vars(module).items() if isinstance(value, Path)
    ]  # of this machine
    elsewhere = (
        f"{markdown.codes(public)}: see [the public names](index.md)." if public else ""
    )
    flags = [
        ":members:",
        *(
            [f":exclude-members: {', '.join([*public, *paths])}"]
            if public or paths
            else []
        ),
    ]
    return markdown.page(
        module.__name__, about, elsewhere, _autodoc("module", module.__name__, *flags)
    )


def _autodoc(kind: str, name: str, *flags: str) -> str:
    return "\n".join(
        [
            "```{eval-rst}",
            f".. auto{kind}:: {name}",
            *(f"   {flag}" for flag in flags),
            "```",
        ]
    )
