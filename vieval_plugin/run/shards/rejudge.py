"""Shards that are done and judged again for some of their rows: those whose verdicts have certain statuses."""

from __future__ import annotations

from collections.abc import Collection

from vieval_plugin import config
from vieval_plugin.config import Backbone, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Status
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.prepare import prepare, setting_of
from vieval_plugin.run.shards.folder import ShardFolder
from vieval_plugin.run.shards.passes import PassQueue, passes_over
from vieval_plugin.run.shards.plan import Plan
from vieval_plugin.run.shards.worker import MOST_FAILURES, ShardRun
from vieval_plugin.run.verdict_lines import differing_runs, identity_of


def options_of(plan: Plan, current: Config) -> Config:
    """The options that a plan's verdicts are given under, with the store of those in force."""
    return config.from_document(plan.provenance.options).model_copy(update={"store": current.store})


def run_again(
    folder: ShardFolder, plan: Plan, options: Config, backbone: Backbone | None, statuses: Collection[str]
) -> ShardRun:
    """The run that judges rows of some statuses again, past the store.

    Raises:
        VievalError: the judge would not ask what it asked, as its wording or another option has changed.
    """
    judge, setting = plan.provenance.judge, setting_of(plan.provenance)
    now = provenance_of(prepare(judge, setting, options, backbone), options, backbone)
    before, after = identity_of(plan.provenance), {**identity_of(now), "label": plan.provenance.label}
    if difference := differing_runs(before, after):
        raise VievalError(f"{folder.name}: a run was begun there {difference}; rows cannot be judged again in it")
    had_scores = any(Status(status).usable for status in statuses)
    return ShardRun(
        *(folder.location, plan.root, judge, setting, options.asking_anew(), backbone),
        most_failures=MOST_FAILURES if had_scores else 1.0,  # a row that failed loses nothing by failing again
        rejudge=tuple(statuses),
    )


def passes_again(folder: ShardFolder, plan: Plan, statuses: Collection[str]) -> tuple[PassQueue, int]:
    """The passes over shards with verdicts of these statuses, and the number of their rows."""
    again = {
        document["shard"]["name"]
        for file, names in folder.counted()
        for document in folder.metadata(file)
        if document["shard"]["name"] in names and any(document["statuses"].get(status) for status in statuses)
    }
    shards = [shard for shard in plan.shards() if shard.name in again]
    return PassQueue(passes_over(shards, ())), sum(shard.rows for shard in shards)
