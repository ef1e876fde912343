"""Tests of what an extra brings are skipped where it is not installed."""

import importlib.util
import json
import os
import re
import tarfile
import urllib.request

import pytest

from vieval_plugin.text.errors import VievalError

EXTRAS = {
    "aiohttp": "http",
    "av": "video",
    "basedpyright": "test",
    "cv2": "text",
    "datasets": "hub",
    "duckdb": "filter",
    "lmms_eval": "lmms-eval",
    "peft": "scorers",
    "prometheus_client": "http",
    "pyarrow": "tables",
    "ray": "ray",
    "rapidocr": "text",
    "shtab": "completion",
    "skimage": "metrics",
    "torch": "tools",
    "torchmetrics": "scorers",
    "transformers": "tools",
    "trl": "train",
}

VLLM_URL = os.environ.get("VIEVAL_VLLM_URL", "http://127.0.0.1:8765/v1").rstrip("/")
unpacking = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"),
    reason="archives are unpacked from Python 3.11.4 on",
)


def needs(*modules: str) -> pytest.MarkDecorator:
    """A mark that skips a test where one of these modules cannot be imported."""
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    remedy = f'pip install ".[{EXTRAS[absent[0]]}]"' if absent else ""
    return pytest.mark.skipif(
        bool(absent), reason=f"{', '.join(absent)} not installed: {remedy}"
    )


def served_by_vllm() -> dict[str, str]:
    """What a vLLM at VLLM_URL says of its model: `id` its name, `root` its folder; a test
    without one is skipped.
    """
    try:
        with urllib.request.urlopen(f"{VLLM_URL}/models", timeout=10) as answer:
            [model] = json.load(answer)["data"]
            return model
    except (OSError, ValueError):
        pytest.skip(
            f"no vLLM answers at {VLLM_URL} (VIEVAL_VLLM_URL); `make test-vllm` starts one"
        )


def lacking(error: BaseException) -> bool:
    """Whether an error says to install an extra, and that extra is indeed not there."""
    told = (
        re.search(r'pip install "\.\[([a-z-]+)\]"', str(error))
        if isinstance(error, VievalError)
        else None
    )
    modules = [module for module, extra in EXTRAS.items() if told and extra == told[1]]
    return any(importlib.util.find_spec(module) is None for module in modules)
