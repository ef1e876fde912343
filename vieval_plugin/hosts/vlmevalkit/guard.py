"""The VLMEvalKit that is installed, checked for what this package builds upon.

Three distributions bring the same import name, and none has a version that says what is in it: so
what is needed is looked for, not its version.
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

from vieval_plugin.text.errors import VievalError

TESTED = "ms-vlmeval 0.0.20, nvidia-vlmeval 26.3, the main branch of August 2026"
REMEDY = (
    "in a separate environment, install ms-vlmeval or nvidia-vlmeval, or put a checkout of "
    "VLMEvalKit on PYTHONPATH"
)
_JOB = ["model", "work_dir", "model_name", "dataset"]
#: The module of a pipeline for servers, which some distributions lack.
_PIPELINE = "inference_api"
_NEEDED_HOST_ATTRIBUTES = {
    "vlm": ("__name__",),
    "dataset": ("DATASET_CLASSES", "SUPPORTED_DATASETS"),
    "config": ("supported_VLM",),
    "dataset.image_base": ("ImageBaseDataset",),
    "smp": ("load", "LMUDataRoot", "get_rank_and_world_size"),
    _PIPELINE: ("APIEvalPipeline",),
}


@dataclass(frozen=True)
class Installation:
    """VLMEvalKit that can be imported."""

    #: Distribution and version, or a checkout and its folder.
    name: str
    #: Folder of its package.
    folder: Path


def installation() -> Installation:
    """The VLMEvalKit that would be imported, without importing it; VievalError where there is
    none, or two in one place.
    """
    spec = importlib.util.find_spec("vlmeval")
    if spec is None or spec.origin is None:
        raise VievalError(f"VLMEvalKit is not installed; {REMEDY}")
    names = importlib.metadata.packages_distributions().get("vlmeval", [])
    distributions = [
        importlib.metadata.distribution(name) for name in dict.fromkeys(names)
    ]
    origin = Path(spec.origin).resolve()
    owners = [
        d
        for d in distributions
        if Path(str(d.locate_file("vlmeval/__init__.py"))).resolve() == origin
    ]
    labels = [f"{d.metadata['Name']} {d.version}" for d in owners]
    if len(labels) > 1:
        remedy = "uninstall both, then install one of them"
        raise VievalError(
            f"{' and '.join(labels)} overwrite each other in {origin.parent}; {remedy}"
        )
    return Installation(
        labels[0] if labels else f"a checkout in {origin.parents[1]}", origin.parent
    )


def has_pipeline() -> bool:
    """Return whether the host has a pipeline for servers."""
    return importlib.util.find_spec(f"vlmeval.{_PIPELINE}") is not None


def check() -> None:
    """Raise VievalError if the host lacks what is needed, or lmms-eval is in this
    process.
    """
    installed = installation()
    if "lmms_eval" in sys.modules:
        raise VievalError(
            "lmms-eval and VLMEvalKit cannot share a process, because each changes "
            "state that the other relies on; run them in separate processes"
        )
    for module, attributes in _NEEDED_HOST_ATTRIBUTES.items():
        is_there = module != _PIPELINE or has_pipeline()
        if is_there and (
            missing := [
                name
                for name in attributes
                if not hasattr(_module(installed, module), name)
            ]
        ):
            raise _lacks(installed, f"vlmeval.{module}.{missing[0]}")
    job = getattr(_module(installed, "inference"), "infer_data_job", None)
    parameters = list(inspect.signature(job).parameters) if callable(job) else []
    if parameters[: len(_JOB)] != _JOB:
        signature = f"infer_data_job({', '.join(_JOB)}, ...)"
        raise _lacks(installed, f"vlmeval.inference.{signature}")


def _module(installed: Installation, name: str) -> ModuleType:
    try:
        return importlib.import_module(f"vlmeval.{name}")
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if not missing.startswith("vlmeval"):
            raise VievalError(
                f"VLMEvalKit ({installed.name}) requires {missing}, which is not installed"
            ) from None
        raise _lacks(installed, missing) from None


def _lacks(installed: Installation, what: str) -> VievalError:
    return VievalError(
        f"VLMEvalKit ({installed.name}) has no {what}; known to work: {TESTED}"
    )
