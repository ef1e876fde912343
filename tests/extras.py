"""Tests of what an extra brings are skipped where it is not installed."""

import importlib.util
import re
import tarfile

import pytest

from vieval_plugin.text.errors import VievalError

EXTRAS = {
    "aiohttp": "http",
    "av": "video",
    "cv2": "text",
    "datasets": "hub",
    "duckdb": "filter",
    "lmms_eval": "lmms-eval",
    "matplotlib": "train",
    "peft": "scorers",
    "pyarrow": "tables",
    "pywt": "train",
    "ray": "ray",
    "rapidocr": "text",
    "skimage": "metrics",
    "sklearn": "train",
    "torch": "tools",
    "torchmetrics": "scorers",
    "transformers": "tools",
    "trl": "train",
}

unpacking = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"), reason="archives are unpacked from Python 3.11.4 on"
)


def needs(*modules: str) -> pytest.MarkDecorator:
    """A mark that skips a test where one of these modules cannot be imported."""
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    remedy = f'pip install ".[{EXTRAS[absent[0]]}]"' if absent else ""
    return pytest.mark.skipif(bool(absent), reason=f"{', '.join(absent)} not installed: {remedy}")


def lacking(error: BaseException) -> bool:
    """Whether an error says to install an extra, and that extra is indeed not there."""
    told = re.search(r'pip install "\.\[([a-z-]+)\]"', str(error)) if isinstance(error, VievalError) else None
    modules = [module for module, extra in EXTRAS.items() if told and extra == told[1]]
    return any(importlib.util.find_spec(module) is None for module in modules)
