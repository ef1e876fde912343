"""CPU seconds and peak memory of imports, `vieval --version` and `vieval score --help`, the median of some runs.

    python bench/start_up.py

A bare `python -c pass` is in each of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
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
        raise SystemExit(
            f"{python} {' '.join(arguments)} ends with {process.returncode}"
        )
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table; exits with 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument(
        "--beside", help="Python of another checkout, which runs in turn with this one"
    )
    options = parser.parse_args()
    pythons = [sys.executable, *([options.beside] if options.beside else [])]
    rows = []
    seconds_of = {}
    for name, arguments in COMMANDS.items():
        measured = [
            [spent(python, arguments) for python in pythons]
            for _ in range(options.runs)
        ]
        cells = [
            [median(column) for column in zip(*of_python, strict=True)]
            for of_python in zip(*measured, strict=True)
        ]
        rows.append(
            (name, *(f"{seconds:.2f} s, {mib:.0f} MiB" for seconds, mib in cells))
        )
        seconds_of[name] = cells[0][0]
    from common import (
        conditions,
        table,
    )  # not before: a process's peak begins at the size of the one that starts it

    print(conditions())
    table((f"median of {options.runs}", *(["here", "beside"][: len(pythons)])), rows)
    sys.exit(
        int(
            max(seconds_of["import vieval_plugin"], seconds_of["vieval --version"])
            > BOUND
        )
    )


if __name__ == "__main__":
    main()
