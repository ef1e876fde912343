"""The table of benchmarks, from their own descriptions."""

from __future__ import annotations

from _ext import markdown

from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.readers.layout import layout_names, read_layout_file


def page() -> str:
    """Benchmarks with ratings or votes, and those whose images a generator is to make."""
    known = registry.benchmarks().values()
    return markdown.page(
        "Table of benchmarks",
        (
            "This page is generated from the benchmarks' own descriptions; "
            "[Benchmarks](benchmarks.md) says more of each."
        ),
        "## Rated or voted on by people",
        _table(
            [
                benchmark
                for benchmark in known
                if not benchmark.generates and not benchmark.synthetic
            ]
        ),
        "## Drawn by VIEval",
        _table(
            [
                benchmark
                for benchmark in known
                if not benchmark.generates and benchmark.synthetic
            ]
        ),
        "## Prompts for a generator",
        _table([benchmark for benchmark in known if benchmark.generates]),
        "## Layouts of folders",
        (
            "`vieval score FOLDER` reads folders that are laid out so; an image stands at its path "
            "below the folder."
        ),
        _layouts(),
    )


def _layouts() -> str:
    rows = []
    for name in layout_names():
        layout = read_layout_file(name)
        rows.append(
            [
                markdown.code(name),
                " or ".join(map(markdown.code, layout.images)),
                markdown.text(layout.source),
                markdown.text(layout.licence),
                f"{layout.images_a_prompt}{f', in a grid of {layout.grid}' if layout.grid else ''}",
                markdown.text(layout.printed_by),
                markdown.text(layout.not_reproduced),
            ]
        )
    header = [
        "layout",
        "path of an image",
        "prompts",
        "licence",
        "images a prompt",
        "printed numbers by",
        "not reproduced as",
    ]
    return markdown.table(header, rows)


def _table(benchmarks: list[Benchmark]) -> str:
    rows = [
        [
            markdown.code(benchmark.name),
            ", ".join(
                markdown.code(part) + (f" {n:,}" if n else "")
                for part, n in benchmark.parts.items()
            ),
            markdown.text(benchmark.source),
            markdown.text(benchmark.licence),
            "yes" if benchmark.trainable else "no",
        ]
        for benchmark in benchmarks
    ]
    return markdown.table(
        [
            "benchmark",
            "parts and their samples",
            "source",
            "licence",
            "may train a model",
        ],
        rows,
    )
