"""Our tasks as lmms-eval resolves them, and whether what they need is there."""

from __future__ import annotations

from functools import lru_cache

import lmms_eval.models  # noqa: F401  (loads the entry points, ours among them)
from lmms_eval import utils
from lmms_eval.tasks import TaskManager

from vieval_plugin import config
from vieval_plugin.data.benchmarks import BENCHMARKS
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval.task_index import FOLDER, members


def listing() -> str:
    """One line a group or task: name, what data it needs, whether it is there."""
    index = TaskManager().task_index
    ours = sorted(name for name, entry in index.items() if str(entry["yaml_path"]).startswith(FOLDER))
    width = max(map(len, ours))
    lines = [f"data folder: {config.current().data_folder()}"]
    for name in ours:
        if index[name]["type"] == "group":
            leaves = [m for m in members(name, index) if index[m]["type"] != "group"]
            lines.append(f"{name:{width}}  group of {len(leaves)} tasks")
        else:
            about = utils.load_yaml_config(index[name]["yaml_path"], mode="simple")["metadata"]
            lines.append(f"{name:{width}}  {_data(about['benchmark'], about['part'])}")
    return "\n".join(lines)


@lru_cache
def _data(benchmark: str, part: str) -> str:
    known = BENCHMARKS[benchmark]
    if not known.prepared:
        return "drawn by VIEval, nothing to prepare"
    root = config.current().data_folder()
    missing = known.missing(root, part)
    if not missing:
        return f"{benchmark}: ready"
    try:
        known.samples(root, part)
    except VievalError:
        return f"{benchmark}: not there ({missing[0]})"
    return f"{benchmark}: ratings ready, for live judging run `vieval prepare {benchmark} --task {part}`"
