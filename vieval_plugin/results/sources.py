"""Sources of verdicts and their labels in tables; runs of one model are labelled by how
they differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from vieval_plugin.judges.registry import judges
from vieval_plugin.records import Provenance
from vieval_plugin.run.verdict_lines import TRANSPORT, flat

Details = tuple[tuple[str, str], ...]

_LONGEST = 60


class Source(NamedTuple):
    """Identity of a run."""

    #: Its label, otherwise its backbone; for a judge from a file or a package, the judge.
    name: str
    judge: str
    #: Settings of the judge.
    settings: tuple[str, ...]
    #: Names and values of everything else that may change an answer: prompt pack, sampling,
    #: options of the judge.
    details: Details


def source_of(provenance: Provenance, label: str = "") -> Source:
    """Return the run that a verdict belongs to.

    Args:
        provenance: the verdict's.
        label: the user's current name of the run; it overrides the label from when the run was
            made.
    """
    judge = provenance.judge
    spec = judges().get(judge)
    is_own = provenance.pack == judge or (spec and not spec.is_ours)
    name = label or provenance.label or (judge if is_own else provenance.backbone)
    return Source(
        name,
        judge,
        provenance.settings,
        _details(provenance),
    )


def labels_of(
    sources: Collection[Source], titles: Mapping[str, str] = MappingProxyType({})
) -> Mapping[Source, str]:
    """Label each run of a benchmark by its name and, in brackets, by what distinguishes
    it from runs of the same name.

    Args:
        sources: all different.
        titles: judges' names in papers; other judges keep their own.

    >>> hot, cold = (Source("m", "viescore", (), (("temperature", t),)) for t in ("1.0", "0.0"))
    >>> list(labels_of([hot, cold]).values()), list(labels_of([hot]).values())
    (['m (temperature=1.0)', 'm (temperature=0.0)'], ['m'])
    """
    labels = {}
    for source in sources:
        namesakes = [namesake for namesake in sources if namesake.name == source.name]
        differences = []
        if any(namesake.judge != source.judge for namesake in namesakes):
            differences.append(titles.get(source.judge, source.judge))
        if any(
            namesake.judge == source.judge and namesake.settings != source.settings
            for namesake in namesakes
        ):
            differences.append(f"setting {' '.join(source.settings) or 'none'}")
        differences += filter(None, [differing_details(source, sources)])
        labels[source] = (
            f"{source.name} ({', '.join(differences)})" if differences else source.name
        )
    return labels


def differing_details(source: Source, sources: Collection[Source]) -> str:
    """Options of a run that differ from those of runs with the same name, judge and
    settings; empty if none do.

    >>> runs = [Source("m", "viescore", (), (("pack", pack),)) for pack in ("v1 abc", "v1 def", "mine 123")]
    >>> [differing_details(run, runs) for run in runs]
    ['pack=v1 abc', 'pack=v1 def', 'pack=mine']
    """
    options = [dict(option.details) for option in sources if option[:3] == source[:3]]
    texts = []
    for key, value in source.details:
        others = {option.get(key, "") for option in options} - {value}
        if others:
            shown = value
            name = value.partition(" ")[0]
            # the digest of a pack is said only where packs of one name differ
            if key == "pack" and name not in {o.partition(" ")[0] for o in others}:
                shown = name
            option_name = key.rpartition(".")[2]
            texts.append(f"{option_name}={shown[:_LONGEST]}")
    return ", ".join(texts)


@lru_cache(maxsize=256)
def _details(provenance: Provenance) -> Details:
    """Cached by the fields that provenances are compared by: a hash stands for the
    options.
    """
    options = provenance.options
    judges, backbones, scorers = (
        options.get(part) or {} for part in ("judges", "backbones", "scorers")
    )
    judge_options = {
        **(judges.get(provenance.judge) or {}),
        "pack": None,
    }
    details = {
        "backbone": provenance.backbone,
        "reader": provenance.reader,
        "pack": f"{provenance.pack} {provenance.pack_hash}".strip(),
        # the pack that answered stands above, whatever the options call it
        **_leaves("judges", judge_options),
        # what is told in words is asked of a backbone
        **_leaves("backbones", backbones if provenance.pack else None),
        **_leaves("scorers", scorers.get(provenance.judge)),
    }
    return tuple((key, value) for key, value in sorted(details.items()) if value)


def _leaves(name: str, value: Any) -> dict[str, str]:
    """Values of nested options that affect answers, by their dotted names."""
    return {
        key: str(leaf)
        for key, leaf in flat(value, name)
        if leaf is not None and TRANSPORT.isdisjoint(key.split("."))
    }
