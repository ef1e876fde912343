"""Sources of verdicts and their labels in tables: two runs of one model are labelled by what differs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from vieval_plugin.records import Provenance
from vieval_plugin.run.verdict_lines import TRANSPORT

Details = tuple[tuple[str, str], ...]

_LONGEST = 60


class Source(NamedTuple):
    """Identity of a run: its label or else its backbone, judge, settings, and all that may change an answer.

    `details` are pairs of a name and a value in words: prompt pack, sampling, options of the judge.
    """

    name: str
    judge: str
    settings: tuple[str, ...]
    details: Details


def source_of(provenance: Provenance, label: str = "") -> Source:
    """The run that a verdict belongs to.

    Args:
        provenance: the verdict's.
        label: what the user calls the run now; it goes before the one that was given when the run was made.
    """
    name = label or provenance.label or provenance.backbone
    return Source(name, provenance.judge, provenance.settings, _details(provenance))


def labels_of(sources: Collection[Source], judges_with_setting_labels: Collection[str] = ()) -> Mapping[Source, str]:
    """Label each of a benchmark's runs: by its name, and as much more as tells it from the others.

    Args:
        sources: all different.
        judges_with_setting_labels: judges whose settings are said in any case.

    >>> hot, cold = (Source("m", "viescore", (), (("temperature", t),)) for t in ("1.0", "0.0"))
    >>> list(labels_of([hot, cold]).values()), list(labels_of([hot]).values())
    (['m viescore temperature=1.0', 'm viescore temperature=0.0'], ['m'])
    """
    labels = {source: _label(source, [other for other in sources if other.name == source.name]) for source in sources}
    return {
        source: f"{label} ({', '.join(source.settings)})"
        if source.judge in judges_with_setting_labels and label == source.name
        else label
        for source, label in labels.items()
    }


def _label(source: Source, namesakes: Sequence[Source]) -> str:
    if len(namesakes) == 1:
        return source.name
    options_of_namesakes = [dict(namesake.details) for namesake in namesakes if namesake[:3] == source[:3]]
    differing = [
        f"{key.rpartition('.')[2]}={value[:_LONGEST]}"
        for key, value in source.details
        if any(other.get(key) != value for other in options_of_namesakes)
    ]
    return " ".join([source.name, source.judge, *source.settings, *differing])


@lru_cache(maxsize=256)
def _details(provenance: Provenance) -> Details:
    """Cached by what provenances are compared by: their hash of options stands for the options."""
    options = provenance.options
    judges, backbones, scorers = (options.get(part) or {} for part in ("judges", "backbones", "scorers"))
    details = {
        "backbone": provenance.backbone,
        "pack": f"{provenance.pack} {provenance.pack_hash}".strip(),
        **dict(_flat("judges", judges.get(provenance.judge))),
        # what is told in words is asked of a backbone
        **dict(_flat("backbones", backbones if provenance.pack else None)),
        **dict(_flat("scorers", scorers.get(provenance.judge))),
    }
    return tuple((key, value) for key, value in sorted(details.items()) if value)


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values of nested options with the names that lead to them."""
    if isinstance(value, dict):
        for key, nested in value.items():
            if key not in TRANSPORT:
                yield from _flat(f"{name}.{key}", nested)
    elif value is not None:
        yield name, str(value)
