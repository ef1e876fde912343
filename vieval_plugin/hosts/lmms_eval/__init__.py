"""lmms-eval as a host: the entry point that makes tasks and models known, and every model a backbone."""

from __future__ import annotations

from typing import Any


def register() -> list[Any]:
    """Called by lmms-eval when it loads its models, before it indexes tasks: adds our tasks, returns our models."""
    from lmms_eval.api.model import lmms
    from lmms_eval.models.registry_v2 import ModelManifest

    from vieval_plugin.hosts.lmms_eval import command_line, model_identity, task_index

    command_line.install()
    model_identity.keep_arguments()
    task_index.install()
    lmms.vieval_judge = _judge_with_host_model
    lmms.vieval_generate = _generate_with_host_model
    models, generators = "vieval_plugin.hosts.lmms_eval.models", "vieval_plugin.hosts.lmms_eval.generators"
    return [
        ModelManifest("vieval_replay", simple_class_path=f"{models}.VievalReplay"),
        ModelManifest("vieval_measure", simple_class_path=f"{models}.VievalMeasure"),
        ModelManifest("vieval_scorer", simple_class_path=f"{models}.VievalScorer"),
        ModelManifest("vieval_openai", simple_class_path=f"{models}.VievalOpenAI"),
        ModelManifest("vieval_vllm", simple_class_path=f"{models}.VievalVLLM"),
        ModelManifest("vieval_images", simple_class_path=f"{generators}.VievalImages"),
        ModelManifest("vieval_image_api", simple_class_path=f"{generators}.VievalImageApi"),
        ModelManifest("vieval_diffusers", simple_class_path=f"{generators}.VievalDiffusers"),
        ModelManifest("vieval_transformers", simple_class_path=f"{models}.VievalTransformers"),
    ]


def _judge_with_host_model(model: Any, instances: list[Any]) -> list[Any]:
    """`vieval_judge` for every model of the host that has none of its own."""
    from vieval_plugin.hosts.lmms_eval.host_model import vieval_judge

    return vieval_judge(model, instances)


def _generate_with_host_model(model: Any, instances: list[Any]) -> list[Any]:
    """`vieval_generate` for every model of the host that has none of its own."""
    from vieval_plugin.hosts.lmms_eval.generate_task import generate

    return generate(model, instances)
