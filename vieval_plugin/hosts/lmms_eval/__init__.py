"""lmms-eval as a host: the entry point that makes tasks and models known, and every model a
backbone.
"""

from __future__ import annotations

from typing import Any


def register() -> list[Any]:
    """Register tasks and judges, and return our models, when lmms-eval loads its models."""
    from lmms_eval.api.model import lmms
    from lmms_eval.models.registry_v2 import ModelManifest

    from vieval_plugin.hosts.lmms_eval import (
        answerable,
        command_line,
        llm_judge,  # noqa: F401  # which registers our judges, or is doing so: it may be whose import led here
        model_identity,
        task_index,
    )

    command_line.install()
    model_identity.keep_arguments()
    task_index.install()
    lmms.vieval_judge = _judge_with_host_model
    lmms.vieval_generate = _generate_with_host_model
    return [
        ModelManifest(name, simple_class_path=f"{__name__}.{path}")
        for name, path in answerable.MODELS.items()
    ]


def _judge_with_host_model(model: Any, instances: list[Any]) -> list[Any]:
    """`vieval_judge` for every model of the host that has none of its own."""
    from vieval_plugin.hosts.lmms_eval.host_model import vieval_judge

    return vieval_judge(model, instances)


def _generate_with_host_model(model: Any, instances: list[Any]) -> list[Any]:
    """`vieval_generate` for every model of the host that has none of its own."""
    from vieval_plugin.hosts.lmms_eval.generate_task import generate

    return generate(model, instances)
