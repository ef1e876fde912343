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
    is_own = provenance.pack == provenance.judge or _is_of_a_package(provenance.judge)
    name = (
        label
        or provenance.label
        or (provenance.judge if is_own else provenance.backbone)
    )
    return Source(
        name,
        provenance.judge,
        provenance.settings,
        _details(provenance),
    )


def _is_of_a_package(judge: str) -> bool:
    spec = judges().get(judge)
    return spec is not None and not spec.is_ours


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
        several_judges = len({namesake.judge for namesake in namesakes}) > 1
        differences = [titles.get(source.judge, source.judge)] if several_judges else []
        alike = [namesake for namesake in namesakes if namesake.judge == source.judge]
        if len({namesake.settings for namesake in alike}) > 1:
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
        values = [option.get(key, "") for option in options]
        if any(option != value for option in values):
            name, _, _ = value.partition(" ")
            # the digest of a pack is said only where packs of one name differ
            is_name_enough = key == "pack" and all(
                option == value or option.partition(" ")[0] != name for option in values
            )
            option_name = key.rpartition(".")[2]
            shown = (name if is_name_enough else value)[:_LONGEST]
            texts.append(f"{option_name}={shown}")
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
    judge_options = {**(judges.get(provenance.judge) or {}), "pack": None}
    pack = f"{provenance.pack} {provenance.pack_hash}".strip()
    judge_leaves = _leaves("judges", judge_options)
    backbone_leaves = _leaves("backbones", backbones if provenance.pack else None)
    scorer_leaves = _leaves("scorers", scorers.get(provenance.judge))
    details = {
        "backbone": provenance.backbone,
        "reader": provenance.reader,
        "pack": pack,
        # the pack that answered stands above, whatever the options call it
        **judge_leaves,
        # what is told in words is asked of a backbone
        **backbone_leaves,
        **scorer_leaves,
    }
    named_details = sorted(details.items())
    return tuple((key, value) for key, value in named_details if value)


def _leaves(name: str, value: Any) -> dict[str, str]:
    """Values of nested options that affect answers, by their dotted names."""
    named_leaves = flat(value, name)
    leaves = ((key, leaf) for key, leaf in named_leaves if leaf is not None)
    return {
        key: str(leaf) for key, leaf in leaves if TRANSPORT.isdisjoint(key.split("."))
    }
