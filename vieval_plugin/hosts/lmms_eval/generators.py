"""lmms-eval models of ours that make images, for our tasks of generators."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.instance import Instance

from vieval_plugin import config
from vieval_plugin.backends.http.server import Usage, server_options
from vieval_plugin.config import Backbone
from vieval_plugin.generation import diffusion, image_api
from vieval_plugin.generation.diffusion import Diffusion
from vieval_plugin.generation.image_api import ImageApi
from vieval_plugin.generation.precomputed_images import PrecomputedImages
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.hosts.host_models import given_backbone
from vieval_plugin.hosts.lmms_eval.answering import (
    insert_padding,
    requests_with_repeats,
)
from vieval_plugin.hosts.lmms_eval.generate_task import finish
from vieval_plugin.hosts.lmms_eval.models import HOST, OwnModel
from vieval_plugin.hosts.shutdown import tell_usage, vieval_errors
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import exists, path_of


class _Generating(OwnModel):
    """Base of these models: they answer our requests for images; subclasses make them."""

    accepted_tasks = "VIEval's generate_* tasks; see `vieval tasks`"
    # the files of its answers are its own or the user's, and nobody else's text: any may be named
    output_dir = "/"

    @abc.abstractmethod
    def answers(self, requests: Sequence[ImageRequest]) -> list[str]:
        """Answers in the form of the host, in order."""

    @vieval_errors
    def vieval_generate(self, instances: list[Instance]) -> list[str]:
        requests = [
            ImageRequest(
                r.conditions,
                r.prompt,
                r.images,
                turn,
            )
            for r, turn in requests_with_repeats(instances)
        ]
        outputs = insert_padding(instances, self.answers(requests), "")
        finish(self, instances, outputs)
        return outputs


class VievalImages(_Generating):
    """Images made elsewhere: `--model vieval_images --model_args folder=FOLDER` or `file=JSONL`,
    and `name=...`.

    `name` is what tables call the generator; of a file with several image models it says which is
    meant.
    """

    @vieval_errors
    def __init__(
        self, folder: str = "", file: str = "", name: str = "", **host_arguments: Any
    ) -> None:
        super().__init__()
        source = str(folder or file)
        if not source:
            raise VievalError(
                "vieval_images requires --model_args folder=<images named by uid> or file=<JSONL>"
            )
        if not exists(path_of(source)):
            raise VievalError(f"{source}: no such file or folder")
        self.images = PrecomputedImages(path_of(source), str(name))

    def answers(self, requests: Sequence[ImageRequest]) -> list[str]:
        self.images.require_any(requests)
        return list(map(self.images.answer, requests))


class VievalImageApi(_Generating):
    """An image model behind a server: `--model vieval_image_api --model_args
    model=NAME,base_url=http://.../v1,size=1024x1024`.

    Every field of a backbone can be given; any other is a field of the request, such as `size` or
    `quality`. The key comes from the environment, because the host writes its arguments into the
    results.
    """

    @vieval_errors
    def __init__(
        self,
        batch_size: Any = None,
        device: Any = None,
        max_batch_size: Any = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        known_names = Backbone.model_fields.keys() & fields.keys()
        backbone_fields = {name: fields.pop(name) for name in sorted(known_names)}
        fields.pop("name", None)
        self.options = config.current()
        if "api_key" in fields or not {"model", "base_url"} <= known_names:
            raise VievalError(
                "vieval_image_api requires --model_args model=...,base_url=...; set the key in "
                "the environment variable OPENAI_API_KEY, or in the one passed as api_key_env="
            )
        backbone = given_backbone(
            backbone_fields, {}, replace(HOST, model="vieval_image_api")
        )
        self.api = ImageApi(
            backbone.model,
            server_options("judge", backbone),
            self.options.generated_folder() / "images",
            {**backbone.extra, **fields},
        )

    def answers(self, requests: Sequence[ImageRequest]) -> list[str]:
        usage = Usage()
        try:
            return image_api.make(
                self.api,
                requests,
                usage,
                self.options.statistics.seed,
                bar=self.rank == 0,
            )
        finally:
            tell_usage(usage, "images already in the folder")


class VievalDiffusers(_Generating):
    """A diffusers pipeline in this process: `--model vieval_diffusers --model_args
    model=FOLDER_OR_NAME,pipeline=CLASS`.

    `dtype` and `variant` are of its weights, `seed` seeds each image with its prompt and number;
    every other argument goes to the pipeline's call, such as `num_inference_steps`. `--batch_size`
    is how many images it makes at once.
    """

    @vieval_errors
    def __init__(
        self,
        model: str = "",
        pipeline: str = "",
        dtype: str = "float32",
        variant: str = "",
        seed: int = 0,
        name: str = "",
        batch_size: Any = None,
        device: Any = None,
        max_batch_size: Any = None,
        **call: Any,
    ) -> None:
        super().__init__()
        if not model:
            raise VievalError(
                "vieval_diffusers requires --model_args model=<folder or name on the Hugging Face Hub>"
            )
        loaded = diffusion.load(
            str(model),
            str(pipeline),
            str(device or "auto"),
            str(dtype),
            {"variant": variant} if variant else {},
        )
        at_once = max(int(batch_size), 1) if str(batch_size or "").isdecimal() else 1
        self.diffusion = Diffusion(
            loaded,
            f"{model} {dtype} {variant}",
            config.current().generated_folder() / "images",
            call,
            at_once,
            int(seed),
        )

    def answers(self, requests: Sequence[ImageRequest]) -> list[str]:
        return diffusion.make(
            self.diffusion,
            requests,
            bar=self.rank == 0,
        )
