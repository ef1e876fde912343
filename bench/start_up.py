"""CPU seconds and peak memory of imports, `vieval --version` and `vieval score --help`, the median of some runs.

    python bench/start_up.py

A bare `python -c pass` is in each of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from statistics import median

COMMANDS = {
    "python, nothing else": ["-c", "pass"],
    "import vieval_plugin": ["-c", "import vieval_plugin"],
    "vieval --version": ["-m", "vieval_plugin", "--version"],
    "vieval score --help": ["-m", "vieval_plugin", "score", "--help"],
    "from vieval_plugin import Judge": ["-c", "from vieval_plugin import Judge"],
    "import vieval_plugin.rewards.flow_grpo": [
        "-c",
        "import vieval_plugin.rewards.flow_grpo",
    ],
}
BOUND = 0.3
"""Seconds of CPU that an import and the version may take."""


def spent(python: str, arguments: list[str]) -> tuple[float, float]:
    """User and system time of a process in seconds, and its peak memory in MiB."""
    process = subprocess.Popen([python, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        command = " ".join([python, *arguments])
        raise SystemExit(f"{command} ends with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table; exits with 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument(
        "--beside", help="Python of another checkout, which runs in turn with this one"
    )
    options = parser.parse_args()
    pythons = {"here": sys.executable}
    if options.beside:
        pythons["beside"] = options.beside
    rows = []
    seconds_here = {}
    for name, arguments in COMMANDS.items():
        runs = defaultdict(list)
        for _ in range(options.runs):
            for checkout, python in pythons.items():
                runs[checkout].append(spent(python, arguments))
        cells = []
        for checkout, measured in runs.items():
            seconds, mib = (median(column) for column in zip(*measured, strict=True))
            cells.append(f"{seconds:.2f} s, {mib:.0f} MiB")
            if checkout == "here":
                seconds_here[name] = seconds
        rows.append([name, *cells])
    # not before: a process's peak begins at the size of the one that starts it
    from common import conditions, table

    print(conditions())
    table([f"median of {options.runs}", *pythons], rows)
    bounded = ("import vieval_plugin", "vieval --version")
    sys.exit(int(any(seconds_here[name] > BOUND for name in bounded)))


if __name__ == "__main__":
    main()
