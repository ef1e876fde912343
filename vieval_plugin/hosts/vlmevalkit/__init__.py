"""VLMEvalKit as a host: our tasks become datasets of it, our models its models, and every model
of it a backbone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def register() -> None:
    """Make datasets and models known to the VLMEvalKit that is here, and judge where it would
    infer. Twice changes nothing.

    VievalError if it is missing or lacks what is needed.
    """
    from vieval_plugin.hosts.vlmevalkit import guard

    guard.check()
    dataset: Any = import_module("vlmeval.dataset")
    if getattr(dataset, "vieval_installed", False):
        return
    from vieval_plugin.hosts.vlmevalkit import models
    from vieval_plugin.hosts.vlmevalkit.dataset import JudgedImages
    from vieval_plugin.hosts.vlmevalkit.judging import (
        building,
        install_pipeline,
        judging,
    )

    dataset.vieval_installed = True
    dataset.DATASET_CLASSES.append(JudgedImages)
    dataset.SUPPORTED_DATASETS.extend(JudgedImages.supported_datasets())
    dataset.JudgedImages = JudgedImages
    for model in models.CLASSES:
        setattr(import_module("vlmeval.vlm"), model.__name__, model)
    import_module("vlmeval.config").supported_VLM.update(models.makers_by_name())
    inference: Any = import_module("vlmeval.inference")
    infer = judging(inference.infer_data_job)
    inference.infer_data_job = infer
    dataset.build_dataset = building(dataset.build_dataset)
    run = sys.modules.get("vlmeval.run")
    if run:
        run.infer_data_job = infer  # type: ignore[attr-defined]
    if guard.has_pipeline():
        from vlmeval.inference_api import APIEvalPipeline

        install_pipeline(APIEvalPipeline)
