"""Download or check a benchmark's data.

Some benchmarks are downloaded. For the others, the command shows which files to place where. After
an interruption, run it again: existing files are checked and kept. See
docs/reference/benchmarks.md

Examples:
    # prepare a benchmark
    vieval prepare imagenhub
    # prepare only the ratings of one part
    vieval prepare imagenhub --part tig --no-images
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import Count, Options, OutputPath, argument, flag

if TYPE_CHECKING:
    from vieval_plugin.benchmarks.benchmark import Prepared, Preparing


class PrepareOptions(Options):
    """Options of `vieval prepare`."""

    benchmark: str = argument(
        "benchmark name (`vieval tasks` lists them), or published_verdicts for the verdicts of "
        "published judges"
    )
    count: Count | None = flag(
        "number of video frames, or of views of an object, per sample"
    )
    root: OutputPath | None = flag(
        "data folder (default: $VIEVAL_DATA, or the user's cache folder)",
    )
    part: list[str] | None = flag("prepare only this part; may be repeated")
    no_images: bool = flag("prepare only ratings and conditions, without images")
    mirror: list[str] = flag(
        "mirror address of a source, such as hub=http://127.0.0.1:8000; may be repeated",
        metavar="SOURCE=URL",
    )


def run(options: PrepareOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.benchmark import Preparing
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    root = options.root or config.current().data_folder()
    name, prepare, hosts = _preparation(options.benchmark)
    mirrors = dict(mirror.partition("=")[::2] for mirror in options.mirror)
    for source, url in mirrors.items():
        if not url or source not in hosts:
            known = ", ".join(hosts) or "none"
            raise VievalError(
                f"--mirror must be SOURCE=URL with a source of {name}, got {source!r} and "
                f"{url!r}; known sources: {known}"
            )
    say(f"data folder: {root}")
    report = prepare(
        root,
        Preparing(
            options.part,
            images=not options.no_images,
            count=options.count,
            hosts=mirrors,
        ),
    )
    say(*report.lines)
    return 0 if report.complete else 1


def _preparation(
    name: str,
) -> tuple[str, Callable[[Path, Preparing], Prepared], Mapping[str, str]]:
    """The thing to be prepared: its name, how, and the sources whose address may be changed."""
    from vieval_plugin.benchmarks import registry as benchmark_registry
    from vieval_plugin.results.published.fetching import HOSTS, prepare
    from vieval_plugin.results.published.files import NAME
    from vieval_plugin.text.errors import VievalError

    if name == NAME:
        return NAME, prepare, HOSTS
    benchmark = benchmark_registry.benchmark(name)
    if benchmark.prepare is None:
        preparable = [
            name
            for name, entry in benchmark_registry.benchmarks().items()
            if entry.prepare
        ]
        raise VievalError(
            f"{benchmark.name} does not require preparation; pass one of "
            f"{', '.join(preparable)}, {NAME}"
        )
    return benchmark.name, benchmark.prepare, benchmark.hosts
