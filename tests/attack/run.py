"""Attack VIEval and print a table of what was tried and what was found: `make test-attack`.

    PYTHONPATH=tests python -m attack.run [--samples N] [--lmms N] [--kills K] [--seed S] [--only
    SCENARIO ...]

It needs no network and leaves nothing behind; `--keep FOLDER` keeps every file of the attack. The
exit code is 1 if a promise was broken, and then each broken promise is a line below the table.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from tqdm import tqdm

from .checks import Row
from .clients import LIMITS, Workshop
from .fault_server import FaultServer
from .scenarios import ASIDE, Attack, Size, scenarios

Scenario: TypeAlias = Callable[[Attack], Row]

_HEAD = (
    "scenario",
    "samples",
    "requests",
    "faults",
    "kinds",
    "kills",
    "lost",
    "invented",
    "asked again",
)
_HEAD += ("failed", "unaccounted", "tracebacks", "leaks", "seconds", "bound", "passed")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="attack", description="Attack VIEval and print what was found."
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=2000,
        help="samples of vieval score (default: %(default)s)",
    )
    parser.add_argument(
        "--lmms",
        type=int,
        default=300,
        help="samples of lmms-eval; 0: none (default: %(default)s)",
    )
    parser.add_argument(
        "--kills",
        type=int,
        default=10,
        help="processes killed in all (default: %(default)s)",
    )
    parser.add_argument(
        "--lmms-kills",
        type=int,
        default=2,
        help="of them lmms-eval's (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of everything random (default: %(default)s)",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="SCENARIO", help="these and what they need"
    )
    parser.add_argument(
        "--keep", type=Path, help="folder that keeps every file of the attack"
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="few scenarios and few retries, as CI has it",
    )
    given = parser.parse_args(arguments)
    # begun with `nohup` or `&` it would hand on that they are ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    lmms_kills = given.lmms_kills if given.lmms else 0
    size = Size(
        given.samples, given.lmms, given.kills, lmms_kills, given.seed, given.short
    )
    if given.short:
        LIMITS.retries, LIMITS.timeout = 2, 1.5
    chosen = scenarios(size)
    if given.only:
        if unknown := set(given.only) - set(chosen):
            parser.error(
                f"no scenario {sorted(unknown)[0]}; there are {', '.join(chosen)}"
            )
        chosen = {
            name: one
            for name, one in chosen.items()
            if name in ("healthy", "leaks", *given.only)
        }
    with tempfile.TemporaryDirectory(prefix="vieval-attack-") as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        rows = _attacked(chosen, size, Workshop(folder), given.keep)
    kinds = sum((row.faults for row in rows), Counter[str]())
    print(
        f"\n{len(kinds)} kinds of fault: "
        f"{', '.join(f'{kind} {n}' for kind, n in kinds.most_common())}"
    )
    for row in rows:
        print("".join(f"\n{row.scenario}: {what}" for what in row.wrong), end="")
    broken = sum(len(row.wrong) for row in rows)
    took = time.monotonic() - began
    print(
        f"\n{broken or 'no'} broken promise{'s' * (broken != 1)}, {took:.0f} s, seed {size.seed}"
    )
    return 1 if broken else 0


def _attacked(
    chosen: Mapping[str, Scenario], size: Size, workshop: Workshop, keep: Path | None
) -> list[Row]:
    """Runs the scenarios, and prints the table line by line."""
    rows, begun = list[Row](), dict[str, Future[Row]]()
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(ASIDE)))
        bar = stack.enter_context(
            tqdm(total=len(chosen), unit="scenario", desc="Attacking")
        )
        servers = {name: stack.enter_context(FaultServer()) for name in ("", *ASIDE)}
        attack = Attack(
            size, workshop, servers[""], lambda text: bar.set_postfix_str(text)
        )

        def run(name: str, attack: Attack) -> Row:
            try:
                row = chosen[name](attack)
            except Exception as error:  # a defect of the attack is no pass
                traceback.print_exc()
                row = Row(
                    name,
                    wrong=[f"the attack itself broke: {type(error).__name__}: {error}"],
                )
            if keep:
                (keep / f"{name}.requests.jsonl").write_text(
                    "".join(f"{line}\n" for line in attack.server.log())
                )
            return row

        def note(row: Row) -> None:
            rows.append(row)
            tqdm.write(line_of(cells(row)))
            bar.update()

        tqdm.write(line_of(_HEAD) + "\n" + line_of(["---"] * len(_HEAD)))
        first, *others, last = (
            chosen  # the first gives the others their measure, the last looks at what all have left
        )
        note(run(first, attack))
        for name in filter(others.__contains__, ASIDE):
            begun[name] = pool.submit(run, name, attack.apart(servers[name]))
        for name in (name for name in others if name not in begun):
            attack.say(name)
            note(run(name, attack))
        for name, future in begun.items():
            attack.say(name)
            note(future.result())
        note(run(last, attack))
    return rows


def cells(row: Row) -> list[str]:
    """What the table says of a scenario."""
    faults = row.faults.total()
    share = (
        f"{faults} ({faults / row.requests:.0%})"
        if row.requests and faults
        else str(faults)
    )
    counts = (
        row.lost,
        row.invented,
        row.again,
        row.failed,
        row.unaccounted,
        row.tracebacks,
        row.leaks,
    )
    numbers = (row.samples, row.requests, share, len(row.faults), row.kills, *counts)
    passed = "yes" if row.passed else f"NO ({len(row.wrong)})"
    return [
        row.scenario,
        *map(str, numbers),
        f"{row.seconds:.0f}",
        f"{row.bound:.0f}",
        passed,
    ]


def line_of(texts: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(texts)} |"


if __name__ == "__main__":
    sys.exit(main())
