"""Progress of a folder of shards, from the ends of its files alone, while others work on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.judges.protocol import Status
from vieval_plugin.run.shards.folder import ShardFolder
from vieval_plugin.run.shards.plan import Plan
from vieval_plugin.run.shards.schema import Tally
from vieval_plugin.run.shards.under_way import open_shards
from vieval_plugin.text.wording import plural

_RECENT = (
    600.0  # seconds before the last shard ended, whose shards tell how fast it goes
)
_MOST_REASONS = 5


@dataclass(kw_only=True)
class FolderProgress(Tally):
    """Counts over a folder of shards."""

    #: Shards of the plan.
    shards: int
    #: Rows of the plan.
    rows: int
    #: Limit of the plan; None for none.
    limit: int | None
    #: Shards with verdicts.
    shards_done: int = 0
    #: Rows with verdicts.
    rows_done: int = 0
    #: Shards that workers have open.
    running: int = 0
    #: Rows a second; 0 where it is not known.
    rate: float = 0.0
    #: Answers that the model was asked for a second; 0 where it is not known.
    call_rate: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Return whether every shard of the plan has its verdicts."""
        return self.shards_done == self.shards

    @property
    def unscored(self) -> str:
        """The sentence on a folder whose verdicts are all without scores; empty where one has
        scores, or none is there.
        """
        scored = (self.statuses[status] for status in Status if status.usable)
        if not self.statuses or any(scored):
            return ""
        return f"no row could be scored ({self._status_counts()})"

    def _status_counts(self) -> str:
        counts = [f"{status} {n:,}" for status, n in self.statuses.most_common()]
        return ", ".join(counts)

    def lines(self) -> list[str]:
        """The counts in lines."""
        shards_left = self.shards - self.shards_done
        limited = ""
        if self.limit is not None:
            limited = f", limited to the first {plural(self.limit, 'row')}"
        running = f", {self.running} running" if self.running else ""
        counting = " (rows are counted when their shard is done)" if shards_left else ""
        lines = [
            f"shards: {self.shards_done:,} of {self.shards:,} done{running}, "
            f"{shards_left:,} left; rows: {self.rows_done:,} of {self.rows:,}"
            f"{limited}{counting}"
        ]
        if self.statuses:
            lines.append(f"verdicts: {self._status_counts()}")
        if self.calls:
            counts = {
                "from the cache": self.from_store,
                "duplicates": self.repeated,
            }
            origins = [f"{origin}: {n:,}" for origin, n in counts.items() if n]
            unasked = f" ({', '.join(origins)})" if origins else ""
            lines.append(
                f"model answers: {self.calls:,}{unasked}, tokens in: "
                f"{self.tokens['input']:,}, out: {self.tokens['output']:,}"
            )
        for (status, reason), n in self.reasons.most_common(_MOST_REASONS):
            lines.append(f"{status} {n:,}: {reason}")
        if self.rate:
            seconds_left = (self.rows - self.rows_done) / self.rate
            remaining = f"; left: {_span(seconds_left)}" if shards_left else ""
            calls = f" and {self.call_rate:,.1f} calls" if self.call_rate else ""
            note = ""
            if self.from_store:
                note = (
                    f"; {plural(self.from_store, 'result')} came from the cache, so new "
                    "calls are slower; use --fresh to measure them"
                )
            lines.append(
                f"rate: {self.rate:,.1f} rows{calls} per second{remaining}{note}"
            )
        return lines


def progress_of(folder: ShardFolder, plan: Plan) -> FolderProgress:
    """Counts over the shards of a plan; VievalError for a file that is not a verdicts
    file.
    """
    planned = {shard.name: shard.rows for shard in plan.shards()}
    progress = FolderProgress(shards=len(planned), rows=plan.rows, limit=plan.limit)
    spans = []
    for file, names in folder.counted():
        for document in folder.metadata(file):
            name = document["shard"]["name"]
            if name in planned and name in names:
                rows = planned[name]
                progress.add_document(document)
                progress.shards_done += 1
                progress.rows_done += rows
                unasked = document["from_store"] + document["repeated"]
                calls = document["calls"] - unasked
                spans.append(
                    _ShardTime(document["ended"], document["began"], rows, calls)
                )
    progress.running = len(planned.keys() & open_shards(folder.under_way))
    progress.rate, progress.call_rate = _rates(spans)
    return progress


@dataclass(frozen=True)
class _ShardTime:
    """Time in which a shard was judged."""

    end: float
    began: float
    rows: int
    calls: int


def _rates(spans: Sequence[_ShardTime]) -> tuple[float, float]:
    """Rows, and answers that the model was asked for, a second over the last minutes in which
    shards ended.
    """
    last = max((span.end for span in spans), default=0.0)
    recent = [span for span in spans if span.end > last - _RECENT]
    seconds = last - min((span.began for span in recent), default=0.0)
    if seconds <= 0:
        return 0.0, 0.0
    rows = sum(span.rows for span in recent)
    calls = max(sum(span.calls for span in recent), 0)
    return rows / seconds, calls / seconds


def _span(seconds: float) -> str:
    """Seconds in words.

    >>> _span(7300), _span(59)
    ('2 h 2 min', '59 s')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"
