"""Which VLMEvalKit is here, and whether it has what this package builds upon.

Three distributions bring the same import name, and none has a version that says what is in it: so what is needed is
looked for, not its version.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from vieval_plugin.errors import VievalError

KNOWN = "ms-vlmeval 0.0.20, nvidia-vlmeval 26.3, the project's main of August 2026"
REMEDY = (
    "install ms-vlmeval or nvidia-vlmeval, or put a checkout of VLMEvalKit on PYTHONPATH, in an environment of its own"
)
_JOB = ["model", "work_dir", "model_name", "dataset"]


@dataclass(frozen=True)
class Found:
    """A VLMEvalKit that can be imported: what it is called, and the folder of its package."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Modules:
    """The modules of the host that are built upon; `api` is absent where it has no pipeline for servers."""

    dataset: ModuleType
    vlm: ModuleType
    config: ModuleType
    inference: ModuleType
    api: ModuleType | None


def found() -> Found:
    """The VLMEvalKit that would be imported, without importing it; VievalError where there is none, or two in one place."""
    spec = importlib.util.find_spec("vlmeval")
    if spec is None or spec.origin is None:
        raise VievalError(f"VLMEvalKit is not here: {REMEDY}")
    names = importlib.metadata.packages_distributions().get("vlmeval", [])
    brought = [importlib.metadata.distribution(name) for name in dict.fromkeys(names)]
    here = Path(spec.origin).resolve()
    owners = [d for d in brought if Path(str(d.locate_file("vlmeval/__init__.py"))).resolve() == here]
    told = [f"{d.metadata['Name']} {d.version}" for d in owners]
    if len(told) > 1:
        raise VievalError(
            f"{' and '.join(told)} have written over each other in {here.parent}: uninstall both and install one of them"
        )
    return Found(told[0] if told else f"a checkout in {here.parents[1]}", here.parent)


def checked() -> Modules:
    """The host's modules, imported; VievalError where it lacks what is needed, or lmms-eval is in this process."""
    here = found()
    if "lmms_eval" in sys.modules:
        raise VievalError("lmms-eval and VLMEvalKit cannot share a process: each changes what the other relies on")
    dataset, vlm, config, inference = (_module(here, name) for name in ("dataset", "vlm", "config", "inference"))
    _require(here, "vlmeval.dataset.DATASET_CLASSES", isinstance(getattr(dataset, "DATASET_CLASSES", None), list))
    _require(here, "vlmeval.dataset.SUPPORTED_DATASETS", isinstance(getattr(dataset, "SUPPORTED_DATASETS", None), list))
    _require(here, "vlmeval.config.supported_VLM", isinstance(getattr(config, "supported_VLM", None), dict))
    job = getattr(inference, "infer_data_job", None)
    takes = list(inspect.signature(job).parameters)[: len(_JOB)] if callable(job) else []
    _require(here, f"vlmeval.inference.infer_data_job({', '.join(_JOB)}, ...)", takes == _JOB)
    for module, names in (
        ("dataset.image_base", ("ImageBaseDataset",)),
        ("smp", ("load", "LMUDataRoot", "get_rank_and_world_size")),
    ):
        held = _module(here, module)
        for name in names:
            _require(here, f"vlmeval.{module}.{name}", hasattr(held, name))
    return Modules(dataset, vlm, config, inference, _pipeline(here))


def _pipeline(here: Found) -> ModuleType | None:
    if importlib.util.find_spec("vlmeval.inference_api") is None:
        return None
    api = _module(here, "inference_api")
    _require(here, "vlmeval.inference_api.APIEvalPipeline", hasattr(api, "APIEvalPipeline"))
    return api


def _module(here: Found, name: str) -> ModuleType:
    try:
        return importlib.import_module(f"vlmeval.{name}")
    except ModuleNotFoundError as error:
        absent = str(error.name)
        if not absent.startswith("vlmeval"):
            raise VievalError(f"VLMEvalKit ({here.name}) needs {absent}, which is not installed") from None
        raise _lacks(here, absent) from None


def _require(here: Found, what: str, there: bool) -> None:
    if not there:
        raise _lacks(here, what)


def _lacks(here: Found, what: str) -> VievalError:
    return VievalError(f"VLMEvalKit ({here.name}) lacks {what}; known to work: {KNOWN}")
