"""CPU seconds until `import vieval_plugin`, `vieval --version` and `vieval score --help` are done, the median of some runs.

    python bench/start_up.py

A bare `python -c pass` is in each of them.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from statistics import median

from common import conditions, table

COMMANDS = {
    "python, nothing else": ["-c", "pass"],
    "import vieval_plugin": ["-c", "import vieval_plugin"],
    "vieval --version": ["-m", "vieval_plugin", "--version"],
    "vieval score --help": ["-m", "vieval_plugin", "score", "--help"],
    "from vieval_plugin import Judge": ["-c", "from vieval_plugin import Judge"],
}
BOUND = 0.3
"""Seconds of CPU that an import and the version may take."""


def cpu_seconds(arguments: list[str]) -> float:
    """The user and system time of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the table; exits with 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    spent = {name: median(cpu_seconds(arguments) for _ in range(runs)) for name, arguments in COMMANDS.items()}
    rows = [(name, f"{seconds:.2f}") for name, seconds in spent.items()]
    print(conditions())
    table(("what", f"CPU seconds, median of {runs}"), rows)
    sys.exit(int(max(spent["import vieval_plugin"], spent["vieval --version"]) > BOUND))


if __name__ == "__main__":
    main()
