"""Tests of what an extra brings are skipped where it is not installed."""

import importlib.util
import json
import os
import re
import tarfile
import urllib.request

import pytest

from vieval_plugin.text.errors import VievalError

_MODULES = (
    "aiohttp:http prometheus_client:http pyarrow:tables datasets:hub duckdb:filter "
)
_MODULES += "ray:ray av:video cv2:text rapidocr:text skimage:metrics peft:scorers "
_MODULES += (
    "torchmetrics:scorers torch:tools transformers:tools trl:train shtab:completion "
)
_MODULES += "lmms_eval:lmms-eval basedpyright:test"
#: The extra that brings a module.
EXTRAS = dict(pair.split(":") for pair in _MODULES.split())
VLLM_URL = os.environ.get("VIEVAL_VLLM_URL", "http://127.0.0.1:8765/v1").rstrip("/")
unpacking = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"),
    reason="archives are unpacked from Python 3.11.4 on",
)


def needs(*modules: str) -> pytest.MarkDecorator:
    """A mark that skips a test where one of these modules cannot be imported."""
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    remedy = f'pip install ".[{EXTRAS[absent[0]]}]"' if absent else ""
    reason = f"{', '.join(absent)} not installed: {remedy}"
    return pytest.mark.skipif(bool(absent), reason=reason)


def served_by_vllm() -> dict[str, str]:
    """The name (`id`) and folder (`root`) of the vLLM's model; a test without a vLLM is skipped."""
    try:
        with urllib.request.urlopen(f"{VLLM_URL}/models", timeout=10) as answer:
            [model] = json.load(answer)["data"]
            return model
    except (OSError, ValueError):
        remedy = "`make test-vllm` starts one"
        pytest.skip(f"no vLLM answers at {VLLM_URL} (VIEVAL_VLLM_URL); {remedy}")


def lacking(error: BaseException) -> bool:
    """Whether an error says to install an extra, and that extra is indeed not there."""
    told = re.search(r'pip install "\.\[([a-z-]+)\]"', str(error))
    if not told or not isinstance(error, VievalError):
        return False
    modules = [module for module, extra in EXTRAS.items() if extra == told[1]]
    return any(importlib.util.find_spec(module) is None for module in modules)
