"""Progress of a run on stderr while it lasts: a bar on a terminal or in a notebook, or a line
per 10% elsewhere.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import TqdmWarning

from vieval_plugin.run.progress import Progress
from vieval_plugin.text.escaping import announce, say

with warnings.catch_warnings():
    # a notebook without ipywidgets has a bar of text, which is no reason to warn a reader
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

#: Seconds without an answer after which the bar reports it.
SILENCE = 30.0
_LOOKS_EVERY = 5.0
_FIRST_LINE = 1000  # samples, if the total is unknown


@contextmanager
def judging_bar(
    progress: Progress,
    total: int | None,
    is_shown: bool,
    unit: str = "sample",
    has_answers: bool = True,
) -> Iterator[Callable[[int], None]]:
    """Show the number of judged samples and failures; yield a function that adds to the
    number.

    `has_answers`: `progress` counts answers as they come, which lets the bar report
        long silences.
    """
    is_shown = is_shown and total != 0
    has_bar = is_shown and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    began = time.monotonic()
    done = 0
    printed = 0
    with tqdm(total=total, desc="Judging", unit=unit, disable=not has_bar) as bar:

        def update(number: int) -> None:
            nonlocal done, printed
            done += number
            if has_bar:
                bar.set_postfix(progress.failures(), refresh=False)
                bar.update(number)
            elif is_shown and (
                done == total
                or done - printed >= (total or max(printed, 10 * _FIRST_LINE)) / 10
            ):
                printed = done
                failures = [
                    f"{status} {n}" for status, n in progress.failures().items()
                ]
                say(
                    tqdm.format_meter(
                        done,
                        total or 0,
                        time.monotonic() - began,
                        0,
                        "Judging",
                        unit=unit,
                        postfix=", ".join(failures),
                    ),
                    file=sys.stderr,
                )

        def say_silence(seconds: float, is_first: bool) -> None:
            if has_bar:
                bar.set_postfix_str(f"no answer for {seconds:.0f} s")
            elif is_first:
                announce(f"no answer for {seconds:.0f} s")

        with _silence_watched(progress, say_silence, is_shown and has_answers):
            yield update


@contextmanager
def _silence_watched(
    progress: Progress,
    on_silence: Callable[[float, bool], None],
    is_watched: bool,
) -> Iterator[None]:
    """Call a function every few seconds of a long silence, with its length and whether
    it is new.
    """
    has_ended = threading.Event()

    def watch() -> None:
        answers = progress.answers
        since = time.monotonic()
        is_first = True
        while not has_ended.wait(_LOOKS_EVERY):
            if progress.answers != answers:
                answers = progress.answers
                since = time.monotonic()
                is_first = True
            elif (silence := time.monotonic() - since) >= SILENCE:
                on_silence(silence, is_first)
                is_first = False

    watcher = threading.Thread(target=watch, daemon=True)
    if is_watched:
        watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        if is_watched:
            watcher.join()
