"""Importing this makes `tests` the folder of this checkout: some packages install one of that
name.
"""

import sys
import types
from pathlib import Path

_module = types.ModuleType("tests")
_module.__path__ = [str(Path(__file__).parents[1] / "tests")]
sys.modules["tests"] = _module
