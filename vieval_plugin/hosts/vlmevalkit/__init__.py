"""VLMEvalKit as a host: our tasks become datasets of it, our models its models, and every model of it a backbone."""

from __future__ import annotations

import sys


def register() -> None:
    """Make datasets and models known to the VLMEvalKit that is here, and judge where it would infer. Twice changes nothing.

    VievalError where there is none, or one that lacks what is needed.
    """
    from vieval_plugin.hosts.vlmevalkit import guard

    host = guard.checked()
    if getattr(host.dataset, "vieval_installed", False):
        return
    from vieval_plugin.hosts.vlmevalkit import models
    from vieval_plugin.hosts.vlmevalkit.dataset import JudgedImages
    from vieval_plugin.hosts.vlmevalkit.generation import EditedImages, GeneratedImages, noting_output_folders
    from vieval_plugin.hosts.vlmevalkit.judging import building, install_pipeline, judging

    host.dataset.vieval_installed = True  # type: ignore[attr-defined]
    for kind in (JudgedImages, GeneratedImages, EditedImages):
        host.dataset.DATASET_CLASSES.append(kind)
        host.dataset.SUPPORTED_DATASETS.extend(kind.supported_datasets())
        setattr(host.dataset, kind.__name__, kind)
    for model in models.CLASSES:
        setattr(host.vlm, model.__name__, model)
    host.config.supported_VLM.update(models.makers_by_name())
    infer = noting_output_folders(judging(host.inference.infer_data_job))
    host.inference.infer_data_job = infer  # type: ignore[attr-defined]
    host.dataset.build_dataset = building(host.dataset.build_dataset)  # type: ignore[attr-defined]
    if run := sys.modules.get("vlmeval.run"):
        run.infer_data_job = infer  # type: ignore[attr-defined]
    if host.api is not None:
        install_pipeline(host.api.APIEvalPipeline)
