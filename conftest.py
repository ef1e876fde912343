"""Tests import each other and `bench` from this folder; `vieval_plugin` is the one that is installed."""

import os
import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
# `python -m pytest` puts this folder first, where it would hide an installed wheel, and so would each process of a test
sys.path[:] = [*(path for path in sys.path if path not in ("", HERE)), HERE]
os.environ["PYTHONSAFEPATH"] = "1"
