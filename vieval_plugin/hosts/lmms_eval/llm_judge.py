"""Every judge in lmms-eval's own registry of judges: `get_server("vieval_viescore", ServerConfig(model_name="NAME"))`.

A judge in a setting has the name of both, such as `vieval_viescore_1shot`.

`evaluate(Request(images=[...], question=prompt))` judges an image. Of a `ServerConfig` the model's name counts: that of
a backbone of the options, or a model behind the server of `backbones.judge`. All else is said in the options. A
`Request` may say more in `prompt_kwargs`:

- `roles`: what each image is, in their order (default: `output`; of two `source`, `output`). Two that are `output` are
  compared.
- `kind`: one of the seven kinds of samples (default: `tie` where there is a source, else `tig`).
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, NoReturn

from lmms_eval.llm_judge.base import AsyncServerInterface
from lmms_eval.llm_judge.protocol import Request, Response, ServerConfig

from vieval_plugin import config
from vieval_plugin.api import conversion
from vieval_plugin.api.judge import Judge
from vieval_plugin.api.verdicts import main_aspect, preference
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, SampleId, Status, Verdict
from vieval_plugin.records import OWN, unjudged, verdict_document
from vieval_plugin.rewards.samples import Conditions, sample_of
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.text.errors import VievalError

FACTORY = "lmms_eval.llm_judge.factory"
_OUTPUT = "output"
_ROLES = {1: (_OUTPUT,), 2: ("source", _OUTPUT)}
_DATA, _LONGEST_PATH = "data:image/", 4096


class VievalJudge(AsyncServerInterface):  # type: ignore[misc]
    """A judge of images as a judge of the host; calls of all threads and loops share one that is open."""

    #: Name of the judge.
    judge: ClassVar[str]
    #: Its setting.
    setting: ClassVar[str]

    def __init__(self, config: ServerConfig | None = None) -> None:
        super().__init__(config or ServerConfig(model_name=""))
        self._open(self.config)  # what is wrong with the options is said now, and not for each image

    def is_available(self) -> bool:
        """Return whether it measures, or the options name a server that answers it."""
        judge = self._open(self.config)
        return JUDGE in judge.options.backbones or not judge.prepared.asks_a_model

    def evaluate(self, request: Request) -> Response:
        """The verdict on the images of a request; one that failed is `success=False`, with its status and reason."""
        judge, judged = self._asked(request)
        if isinstance(judged, Verdict):
            return _response(judge, judged)
        try:
            [verdict] = judge([judged])
        except VievalError as error:
            return _response(judge, unjudged(Status.API_ERROR, str(error)))
        return _response(judge, verdict)

    async def evaluate_async(self, request: Request) -> Response:
        """`evaluate` for a running event loop."""
        judge, judged = self._asked(request)
        if isinstance(judged, Verdict):
            return _response(judge, judged)
        try:
            [verdict] = await judge.judge_async([judged])
        except VievalError as error:
            return _response(judge, unjudged(Status.API_ERROR, str(error)))
        return _response(judge, verdict)

    def evaluate_comparative(
        self,
        question: str,
        response1: str = "",
        response2: str = "",
        context: str | None = None,
        score_range: tuple[int, int] = (0, 1),
        custom_prompt: str | None = None,
        images: Sequence[Any] | None = None,
        **further: Any,
    ) -> dict[str, Any]:
        """The contest of two images; `scores` are those of each, in [0, 1], and None for a failure.

        Of a judge that votes they are (1 + p)/2 and (1 - p)/2, where p in [-1, 1] is how far it prefers the first. Of
        the texts that the host's own judges compare, the question alone is read: it is the prompt.
        """
        return _compared(self.evaluate(_contest_request(question, images or (), further)), question)

    async def evaluate_comparative_async(
        self, question: str, *texts: Any, images: Sequence[Any] | None = None, **further: Any
    ) -> dict[str, Any]:
        """`evaluate_comparative` for a running event loop."""
        return _compared(await self.evaluate_async(_contest_request(question, images or (), further)), question)

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:
        raise VievalError(
            f"vieval_{self.judge} judges images and no texts: call evaluate(Request(messages=[], images=[...], question=prompt))"
        )

    evaluate_binary = evaluate_with_rubric = evaluate_binary_async = evaluate_with_rubric_async = _refuse

    def _asked(self, request: Request) -> tuple[Judge, Judged | Verdict]:
        """The judge of a request and what it is to judge, or the verdict on a request that says nothing of the sort."""
        judge = self._open(request.config or self.config)
        try:
            return judge, judged_of(request)
        except VievalError as error:
            return judge, unjudged(Status.NOT_APPLICABLE, str(error))

    def _open(self, config: ServerConfig) -> Judge:
        return _judge(self.judge, self.setting, config.model_name)


def install(factory: ModuleType | None) -> None:
    """Register all judges, those in files too; where the host's factory is being imported, as soon as it is there."""
    if factory is not None and not hasattr(factory, "ProviderFactory"):
        factory.__class__ = _FactoryUnderWay
        return
    from lmms_eval.llm_judge.factory import ProviderFactory

    _register(ProviderFactory)


class _FactoryUnderWay(ModuleType):
    """The host's module whose import led to ours: judges are registered when its class is first taken from it."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name == "ProviderFactory":
            self.__class__ = ModuleType  # type: ignore[assignment]
            _register(value)
        return value


def _register(factory: Any) -> None:
    """Register each judge by its name, and in each setting but its plain one by the name of both."""
    for spec in judge_registry.judges().values():
        for setting in ("", *spec.settings[1:]):
            name = f"vieval_{spec.name}_{setting}".rstrip("_")
            provider = type(name, (VievalJudge,), {"judge": spec.name, "setting": setting or spec.plain})
            factory.register_provider(name, provider)


@cache
def _judge(name: str, setting: str, model: str) -> Judge:
    """The open judge of all callers; VievalError where it cannot be asked by this model."""
    options = config.current()
    backbone = options.backbones.get(model) or options.backbones.get(JUDGE)
    if backbone and model not in ("", *options.backbones):
        backbone = backbone.model_copy(update={"model": model})
    if backbone:
        options = options.model_copy(update={"backbones": {**options.backbones, JUDGE: backbone}})
    return Judge(name, setting=setting or None, options=options)


def judged_of(request: Request) -> Judged:
    """The sample of a request, or the contest of one with several outputs.

    Raises:
        VievalError: its images are not those that its roles name, or are none.
    """
    images = [_image(image) for image in request.images or ()]
    roles = tuple(request.prompt_kwargs.get("roles") or _ROLES.get(len(images), ()))
    if len(roles) != len(images) or _OUTPUT not in roles:
        raise VievalError(
            f"images: {len(images)}, roles: {', '.join(roles) or 'none'}; say in prompt_kwargs what each image is, such as "
            '{"roles": ["subject", "output"], "kind": "sdig"}'
        )
    by_role = list(zip(roles, images, strict=True))
    conditions = Conditions(request.prompt_kwargs.get("kind", ""), tuple(role for role in roles if role != _OUTPUT))
    shared = [image for role, image in by_role if role != _OUTPUT]
    outputs = [image for role, image in by_role if role == _OUTPUT]
    samples = [
        sample_of(number, request.question or "", output, shared, conditions) for number, output in enumerate(outputs)
    ]
    first = samples[0]
    return Contest(SampleId(OWN, first.kind, "", first.id.uid), tuple(samples)) if samples[1:] else first


def _image(given: Any) -> Image:
    """An image as the host has it: a path, a picture of Pillow, base64 in bytes or a data address; or a file's bytes."""
    text = given if isinstance(given, str) and (given.startswith(_DATA) or len(given) > _LONGEST_PATH) else None
    if text or isinstance(given, bytes):
        try:
            return Image(base64.b64decode(text.rpartition(",")[2] if text else given, validate=True))
        except (binascii.Error, ValueError):
            return conversion.image(b"" if text else given)
    return conversion.image(given)


def _contest_request(question: str, images: Sequence[Any], further: dict[str, Any]) -> Request:
    prompt_kwargs = {"roles": [_OUTPUT] * max(2, len(images)), **further.get("prompt_kwargs", {})}
    return Request(messages=[], images=list(images), question=question, prompt_kwargs=prompt_kwargs)


def _response(judge: Judge, verdict: Verdict) -> Response:
    backbone = judge.options.backbones.get(JUDGE)
    model = backbone.model if backbone and judge.prepared.asks_a_model else judge.prepared.spec.name
    document = {key: value for key, value in verdict_document(verdict).items() if key != "trace"}
    content = json.dumps({**document, "reason": verdict.reason}, ensure_ascii=False)
    if not verdict.status.usable:
        return Response(
            content, model, raw_response=verdict, success=False, error_message=f"{verdict.status}: {verdict.reason}"
        )
    scores = verdict.scores if verdict.choice is None else _contest_scores(judge, verdict)
    return Response(content, model, raw_response=verdict, parsed_result=dict(scores))


def _contest_scores(judge: Judge, verdict: Verdict) -> dict[str, Any]:
    """Scores of each candidate by the main aspect, where the judge scores, and how far the first is preferred."""
    aspect = main_aspect(judge.aspects)
    scored = verdict.choice.scores if verdict.choice else ()
    scores = {"scores": [candidate.get(aspect) for candidate in scored]} if scored else {}
    return {**scores, "preference": preference(verdict, aspect)}


def _compared(response: Response, question: str) -> dict[str, Any]:
    found = response.parsed_result or {}
    preferred = found.get("preference")
    scores = found.get("scores") or (None if preferred is None else [(1 + preferred) / 2, (1 - preferred) / 2])
    return {
        "scores": tuple(scores) if scores else None,
        "raw_response": response.content,
        "model": response.model_used,
        "prompt": question,
        "success": response.success,
    }


install(sys.modules.get(FACTORY))
