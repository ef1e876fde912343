"""Our own models as classes of the host: they answer judges, and no other dataset of the host.

Each judges all rows of a dataset before the host's loop, which then collects what was judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from vieval_plugin import config
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.local.huggingface import TransformersBackend
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Backbone, Config
from vieval_plugin.hosts.host_models import (
    ForeignHost,
    given_backbone,
    scorer_options,
)
from vieval_plugin.hosts.shutdown import one_line
from vieval_plugin.run.answerers import (
    Answerer,
    EngineAnswerer,
    MetricAnswerer,
    ServerAnswerer,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

_HOST = ForeignHost(
    "VievalOpenAI",
    "a model and a base_url (in the --config file, or as --vieval-model and --vieval-base-url)",
    "VLMEvalKit prints and logs model arguments",
)


class OwnModel:
    """Base of our models.

    `backbone` is what tables call the model, None where each judge goes by its own name; `identity`
    is what its answers depend on; `served_by` is the backbone of the options' kind, where there is
    one.
    """

    is_api = False
    measures: ClassVar[bool] = False
    backbone: str | None = None
    served_by: Backbone | None = None
    options: Config
    answerer: Answerer
    identity: JsonObject

    def generate(self, message: Any, dataset: str | None = None) -> str:
        """Refuse datasets that are not VIEval's."""
        raise SystemExit(
            f"vieval: {type(self).__name__} supports only VIEval's datasets; "
            "`vieval vlmevalkit --list` lists them"
        )

    def set_dump_image(self, dump_image: Any) -> None:
        """The host hands this to every model; judges have their own images."""
        del dump_image


class VievalScorer(OwnModel):
    """Image metrics, of pixels and by networks. `name` is weights on the hub, in a folder or a
    file, or an options' scorer.

    Without it each judge's scorer is that of the options, or of the judge's definition.
    """

    measures = True

    @one_line
    def __init__(self, name: str = "", **fields: Any) -> None:
        self.options = scorer_options({"model": str(name), **fields})
        self.backbone = Path(str(name)).name or None
        self.identity = {
            judge: [scorer.model, scorer.revision]
            for judge, scorer in self.options.scorers.items()
        }
        self.answerer = MetricAnswerer(Scorers(self.options.scorers))


class VievalOpenAI(OwnModel):
    """An OpenAI-compatible server as the judge's backbone, each sample at its own pace.

    Every field of a backbone in the options file can be given, or `backbone_name` of one in that
    file; with neither `backbones.judge` of it is used. The key comes from the environment, because
    the host prints arguments.
    """

    @one_line
    def __init__(self, backbone_name: str = "", **fields: Any) -> None:
        self.options = config.current()
        backbones = self.options.backbones
        self.served_by = backbones.get(backbone_name) or given_backbone(
            fields, backbones, _HOST
        )
        self.backbone = self.served_by.model
        self.answerer = ServerAnswerer(self.served_by)
        self.identity = self.served_by.model_dump(
            mode="json",
            include={"model", "temperature", "max_tokens", "max_pixels", "extra"},
        )


class _InProcess(OwnModel):
    """A model in this process that answers whole batches, in batch steps; subclasses name the
    backend.

    `temperature` and `max_tokens` hold for every answer (default: 0, and what each question
    allows).
    """

    load: ClassVar[Callable[..., VLLMBackend | TransformersBackend]]

    @one_line
    def __init__(
        self,
        model: str = "",
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **arguments: Any,
    ) -> None:
        if not model:
            raise VievalError(
                f"{type(self).__name__} requires `model`: a folder or a name on the Hugging Face Hub"
            )
        self.options = config.current()
        self.backbone = Path(model).name
        identity = {
            "model": model,
            "temperature": temperature,
            "max_tokens": max_tokens,
            **arguments,
        }
        self.identity = {name: str(value) for name, value in identity.items()}
        self.answerer = EngineAnswerer(
            type(self).load, model, arguments, Sampling(temperature, max_tokens)
        )


class VievalVLLM(_InProcess):
    """vLLM in this process: `model` is a folder or a name, every other argument goes to
    `vllm.LLM` as it is.
    """

    load = VLLMBackend


class VievalTransformers(_InProcess):
    """transformers in this process, for exact likelihoods; arguments go to `from_pretrained` as
    they are.
    """

    load = TransformersBackend


CLASSES = (VievalOpenAI, VievalTransformers, VievalVLLM, VievalScorer)


def makers_by_name() -> Mapping[str, Callable[[], OwnModel]]:
    """Names of our models in the host, with what makes each: the classes, and the backbones of
    the options.
    """
    makers: dict[str, Callable[[], OwnModel]] = {
        kind.__name__: kind for kind in CLASSES
    }
    return makers | {
        f"vieval_{name}": partial(VievalOpenAI, backbone_name=name)
        for name in config.current().backbones
    }
