"""Benchmarks that are described in files: each `.yaml` beside this module is one, and its data
is in the data folder.
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.benchmarks.in_folder import described_benchmark

_FILES = sorted(Path(__file__).parent.glob("*.yaml"))
BENCHMARKS = tuple(described_benchmark(file) for file in _FILES)
