"""The page of judges, from the specs by which they describe themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from _ext import markdown, options

from vieval_plugin.judges import registry
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, Needs

KINDS = {
    EVERY_KIND: "every kind",
    "tig": "text-guided generation",
    "mie": "mask-guided editing",
    "tie": "text-guided editing",
    "sdig": "subject-driven generation",
    "sdie": "subject-driven editing",
    "mcic": "multi-concept composition",
    "cig": "control-guided generation",
}


def page() -> str:
    """Every judge: aspects, kinds with what they need, settings with their calls, options."""
    intro = (
        "This page is generated from the judges' own descriptions. [Choose a "
        "judge](../guides/judges.md) compares them.\n\n"
        "An option of a judge stands under `judges.NAME` in the [options file](options.md)."
    )
    judges = sorted(
        registry.judges().values(), key=lambda spec: (spec.pack is None, spec.scored)
    )
    return markdown.page(
        "Judges",
        intro,
        "## Licences of networks",
        "What the authors state of the weights; `none stated` is not a permission.",
        _licences(),
        *(part for spec in judges for part in _section(spec)),
    )


def _licences() -> str:
    """The networks that judge by name: their weights, size, licence and source."""
    return markdown.table(
        ["judge", "weights", "size", "licence", "source"],
        (
            [
                markdown.code(pack.name),
                markdown.code(pack.weights),
                about.size,
                about.licence,
                markdown.text(about.source),
            ]
            for pack, about in registry.described_networks()
        ),
    )


def _section(spec: JudgeSpec) -> Iterator[str]:
    yield f"## {spec.name}"
    yield f"{markdown.text(spec.title)}: {markdown.text(spec.method)}."
    facts = [
        ("judges", f"{spec.rates}s"),
        ("aspects", markdown.codes(spec.aspects) or "votes on pairs"),
    ]
    facts += (
        [("further scores", markdown.codes(spec.dimensions))] if spec.dimensions else []
    )
    facts += [(_kind(kind), _needed(needs)) for kind, needs in spec.needs.items()]
    if spec.quantity:
        facts.append(("measures", markdown.text(spec.quantity.meaning)))
    defaults = spec.options()
    for setting in spec.settings or ("",):
        name = f"calls a {spec.rates}" + (
            f", setting {markdown.code(setting)}" if setting else ""
        )
        pack = ""
        if spec.pack:
            wording = Path(spec.pack(defaults, setting))
            # a judge in one file has its words there, wherever the checkout lies
            shown = wording.name if wording.is_absolute() else wording.as_posix()
            pack = f", worded by {markdown.code(shown)}"
        facts.append((name, f"{spec.calls(defaults, setting)}{pack}"))
    yield "\n".join(f"- {name}: {value}" for name, value in facts)
    if table := options.option_table(spec.options):
        yield table


def _kind(kind: str) -> str:
    return (
        KINDS[kind]
        if kind == EVERY_KIND
        else f"{markdown.code(kind)}, {KINDS.get(kind, '')}".rstrip(", ")
    )


def _needed(needs: Needs) -> str:
    named = [
        (what, names)
        for what, several in (("image", needs.images), ("text", needs.texts))
        for names in several
    ]
    return "; ".join(
        f"{what} "
        + (
            markdown.code(names)
            if isinstance(names, str)
            else " or ".join(map(markdown.code, names))
        )
        for what, names in named
    )
