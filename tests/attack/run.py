"""Attack VIEval and print a table of what was tried and what was found: `make test-attack`.

    PYTHONPATH=tests python -m attack.run [--samples N] [--lmms N] [--kills K] [--seed S] [--only
    SCENARIO ...]

It needs no network and leaves nothing behind; `--keep FOLDER` keeps every file of the attack. The
exit code is 1 if a promise was broken, and then each broken promise is a line below the table.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from shlex import split

from tqdm import tqdm

from .checks import Row
from .clients import LIMITS, Workshop
from .fault_server import FaultServer
from .scenarios import ASIDE, Attack, Size, scenarios

_HEAD = split(
    "scenario samples requests faults kinds kills lost invented 'asked again' failed "
    "unaccounted tracebacks leaks seconds bound passed"
)
_NUMBERS = {
    "samples": (2000, "samples of vieval score"),
    "lmms": (300, "samples of lmms-eval; 0: none"),
    "kills": (10, "processes killed in all"),
    "lmms-kills": (2, "of them lmms-eval's"),
    "seed": (0, "seed of everything random"),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="attack", description="Attack VIEval and print what was found."
    )
    for name, (default, meaning) in _NUMBERS.items():
        told = {"default": default, "help": f"{meaning} (default: %(default)s)"}
        parser.add_argument(f"--{name}", type=int, **told)
    told = {"metavar": "SCENARIO", "help": "these and what they need"}
    parser.add_argument("--only", nargs="+", **told)
    told = "folder that keeps every file of the attack"
    parser.add_argument("--keep", type=Path, help=told)
    told = "few scenarios and few retries, as CI has it"
    parser.add_argument("--short", action="store_true", help=told)
    given = parser.parse_args(arguments)
    # begun with `nohup` or `&` it would hand on that they are ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    lmms_kills = given.lmms_kills if given.lmms else 0
    numbers = (given.samples, given.lmms, given.kills, lmms_kills, given.seed)
    size = Size(*numbers, given.short)
    if given.short:
        LIMITS.retries, LIMITS.timeout = 2, 1.5
    chosen = scenarios(size)
    if given.only:
        if unknown := set(given.only) - set(chosen):
            known = ", ".join(chosen)
            parser.error(f"no scenario {sorted(unknown)[0]}; there are {known}")
        wanted = ("healthy", "leaks", *given.only)
        chosen = {name: one for name, one in chosen.items() if name in wanted}
    with tempfile.TemporaryDirectory(prefix="vieval-attack-") as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        rows = _attacked(chosen, size, Workshop(folder), given.keep)
    kinds = sum((row.faults for row in rows), Counter[str]())
    counts = ", ".join(f"{kind} {n}" for kind, n in kinds.most_common())
    print(f"\n{len(kinds)} kinds of fault: {counts}")
    for row in rows:
        print("".join(f"\n{row.scenario}: {what}" for what in row.wrong), end="")
    broken = sum(len(row.wrong) for row in rows)
    promises = f"{broken or 'no'} broken promise{'s' * (broken != 1)}"
    print(f"\n{promises}, {time.monotonic() - began:.0f} s, seed {size.seed}")
    return 1 if broken else 0


def _attacked(chosen, size, workshop, keep):
    """Runs the scenarios, and prints the table line by line."""
    rows, begun = [], {}
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(ASIDE)))
        bar = tqdm(total=len(chosen), unit="scenario", desc="Attacking")
        stack.enter_context(bar)
        servers = {name: stack.enter_context(FaultServer()) for name in ("", *ASIDE)}
        attack = Attack(size, workshop, servers[""], bar.set_postfix_str)

        def run(name, attack):
            try:
                row = chosen[name](attack)
            except Exception as error:  # a defect of the attack is no pass
                traceback.print_exc()
                broke = f"the attack itself broke: {type(error).__name__}: {error}"
                row = Row(name, wrong=[broke])
            if keep:
                lines = "".join(f"{line}\n" for line in attack.server.log())
                (keep / f"{name}.requests.jsonl").write_text(lines)
            return row

        def note(row):
            rows.append(row)
            tqdm.write(line_of(cells(row)))
            bar.update()

        tqdm.write(line_of(_HEAD) + "\n" + line_of(["---"] * len(_HEAD)))
        # the first gives the others their measure, the last looks at what all have left
        first, *others, last = chosen
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


def cells(row):
    """What the table says of a scenario."""
    share = str(faults := row.faults.total())
    if row.requests and faults:
        share += f" ({faults / row.requests:.0%})"
    found = (row.lost, row.invented, row.again, row.failed, row.unaccounted)
    numbers = (row.samples, row.requests, share, len(row.faults), row.kills, *found)
    times = (f"{row.seconds:.0f}", f"{row.bound:.0f}")
    passed = "yes" if row.passed else f"NO ({len(row.wrong)})"
    found = map(str, (*numbers, row.tracebacks, row.leaks))
    return [row.scenario, *found, *times, passed]


def line_of(texts):
    """A line of a table in Markdown."""
    return f"| {' | '.join(texts)} |"


if __name__ == "__main__":
    sys.exit(main())
