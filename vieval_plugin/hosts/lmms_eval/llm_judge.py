"""Every judge in lmms-eval's own registry of judges: `get_server("vieval_viescore",
ServerConfig(model_name="NAME"))`.

A judge in a setting has the name of both, such as `vieval_viescore_1shot`.

`evaluate(Request(images=[...], question=prompt))` judges an image. Of a `ServerConfig` the model's
name counts: that of a backbone of the options, or a model behind the server of `backbones.judge`.
All else is said in the options. A `Request` may say more in `prompt_kwargs`:

- `roles`: what each image is, in their order (default: `output`; of two `source`, `output`). Two
  that are `output` are compared.
- `kind`: one of the seven kinds of samples (default: `tie` where there is a source, else `tig`).
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import json
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, NoReturn

from lmms_eval.llm_judge.base import AsyncServerInterface
from lmms_eval.llm_judge.protocol import Request, Response, ServerConfig

from vieval_plugin import config
from vieval_plugin.api import conversion
from vieval_plugin.api.judge import Opened
from vieval_plugin.api.verdicts import main_aspect, preference
from vieval_plugin.config import Config
from vieval_plugin.hosts.lmms_eval.answering import JudgeUsage
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, SampleId, Status, Verdict
from vieval_plugin.readers.tables import are_texts
from vieval_plugin.records import OWN, unjudged, verdict_document
from vieval_plugin.rewards.samples import Conditions, sample_of
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import JsonObject

FACTORY = "lmms_eval.llm_judge.factory"
_OUTPUT = "output"
_ROLES = {1: (_OUTPUT,), 2: ("source", _OUTPUT)}
_DATA = "data:image/"
_BASE64 = re.compile(
    r"[A-Za-z0-9+/]{60,}={0,2}"
)  # names of images have a dot, and are shorter


class VievalJudge(AsyncServerInterface):  # type: ignore[misc]
    """A judge of images as a judge of the host; calls of all threads and loops share one that is
    open.
    """

    judge: ClassVar[str]
    setting: ClassVar[str]

    def __init__(self, config: ServerConfig | None = None) -> None:
        super().__init__(config or ServerConfig(model_name=""))
        self._open(
            self.config
        )  # what is wrong with the options is said now, and not for each image

    def is_available(self) -> bool:
        """Return whether it measures, or the options name a server that answers it."""
        judge = self._open(self.config)
        return JUDGE in judge.options.backbones or not judge.prepared.asks_a_model

    def evaluate(self, request: Request) -> Response:
        """The verdict on the images of a request; one that failed is `success=False`, with its
        status and reason.
        """
        judge = self._open(request.config or self.config)
        return judge.opened.loop.call(_answer(judge, _judged_or_fault(request)))

    async def evaluate_async(self, request: Request) -> Response:
        """`evaluate` for a running event loop."""
        judge = self._open(request.config or self.config)
        judged = await asyncio.to_thread(_judged_or_fault, request)
        return await asyncio.wrap_future(
            judge.opened.loop.begin(_answer(judge, judged))
        )

    def evaluate_comparative(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """The contest of two images; `scores` are those of each, in [0, 1], and None for a failure.

        Of a judge that votes they are (1 + p)/2 and (1 - p)/2, where p in [-1, 1] is how far it
        prefers the first. The arguments are those of `contest_request`, which may come by position.
        """
        request = contest_request(*arguments, **keywords)
        return _compared(self.evaluate(request), request)

    async def evaluate_comparative_async(
        self, *arguments: Any, **keywords: Any
    ) -> JsonObject:
        """`evaluate_comparative` for a running event loop."""
        request = contest_request(*arguments, **keywords)
        return _compared(await self.evaluate_async(request), request)

    def _refuse(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise VievalError(
            f"vieval_{self.judge} judges images, not texts; call evaluate(Request(messages=[], "
            "images=[...], question=prompt))"
        )

    evaluate_binary = evaluate_with_rubric = evaluate_binary_async = (
        evaluate_with_rubric_async
    ) = _refuse

    def _open(self, config: ServerConfig) -> _OpenJudge:
        return _opened(self.judge, self.setting, config.model_name)


def install(factory: ModuleType | None) -> None:
    """Register all judges, those in files too; where the host's factory is being imported, as
    soon as it is there.
    """
    if factory is not None and not hasattr(factory, "ProviderFactory"):
        factory.__class__ = _FactoryUnderWay
        return
    from lmms_eval.llm_judge.factory import ProviderFactory

    _register(ProviderFactory)


class _FactoryUnderWay(ModuleType):
    """The host's module whose import led to ours: judges are registered when its class is first
    taken from it.
    """

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name == "ProviderFactory":
            self.__class__ = ModuleType  # type: ignore[assignment]
            _register(value)
        return value


def _register(factory: Any) -> None:
    """Register each judge by its name, and in each setting but its plain one by the name of
    both.
    """
    for spec in judge_registry.judges().values():
        for setting in ("", *spec.settings[1:]):
            name = f"vieval_{spec.name}_{setting}".rstrip("_")
            provider = type(
                name,
                (VievalJudge,),
                {
                    "judge": spec.name,
                    "setting": setting or spec.plain,
                },
            )
            factory.register_provider(name, provider)


@dataclass(frozen=True)
class _OpenJudge:
    """A judge in a setting, ready to be asked."""

    prepared: PreparedJudge
    #: Options, in which `backbones.judge` is the model that was named.
    options: Config
    #: Event loop, connections and store, which all judges of the same options share.
    opened: Opened


_judges: dict[tuple[str, str, str, int], _OpenJudge] = {}
_opening = threading.Lock()


def _opened(name: str, setting: str, model: str) -> _OpenJudge:
    """The open judge of all callers; VievalError where it cannot be asked by this model."""
    process = os.getpid()  # a loop does not outlive a fork
    key = name, setting, model, process
    with _opening:
        if key not in _judges:
            options = _select_model(config.current(), model)
            prepared = prepare(name, setting or None, options)
            provenance_of(
                prepared, options, None
            )  # which refuses a calibration of another judge
            asks_a_model = prepared.asks_a_model
            shared = (
                judge.opened
                for judge in _judges.values()
                if (judge.options, judge.prepared.asks_a_model)
                == (options, asks_a_model)
                and judge.opened.process == process
            )
            opened = next(shared, None) or Opened(
                options,
                Progress(JudgeUsage()),
                asks_a_model,
            )
            atexit.register(opened.close)
            _judges[key] = _OpenJudge(prepared, options, opened)
        return _judges[key]


def _select_model(options: Config, model: str) -> Config:
    """The options with `backbones.judge` as the one of that name, or as a further model behind
    its server.
    """
    backbone = options.backbones.get(model) or options.backbones.get(JUDGE)
    if backbone is None:
        return options
    if model not in ("", *options.backbones):
        backbone = backbone.model_copy(update={"model": model})
    return options.model_copy(
        update={"backbones": {**options.backbones, JUDGE: backbone}}
    )


def _judged_or_fault(request: Request) -> Judged | Verdict:
    """The sample or contest of a request, or a failed verdict on a request that is not valid."""
    try:
        return judged_of(request)
    except VievalError as error:
        return unjudged(Status.NOT_APPLICABLE, str(error))


async def _answer(judge: _OpenJudge, judged: Judged | Verdict) -> Response:
    """The response on a sample, in the judge's own loop."""
    if isinstance(judged, Verdict):
        return _response(judge, judged)
    outcomes: dict[int, Outcome] = {}
    try:
        session = await judge.opened.session()
        await session.judge(
            [judged],
            judge.prepared,
            outcomes,
            bar=False,
        )
    except VievalError as error:
        return _response(judge, unjudged(Status.API_ERROR, str(error)))
    return _response(judge, outcomes[0].verdict)


def judged_of(request: Request) -> Judged:
    """The sample of a request, or the contest of one with several outputs.

    Raises:
        VievalError: its images are not those that its roles name, or are none.
    """
    images = [_image(image) for image in request.images or ()]
    arguments = request.prompt_kwargs or {}
    roles = _roles(arguments.get("roles") or _ROLES.get(len(images), ()))
    if len(roles) != len(images) or _OUTPUT not in roles:
        raise VievalError(
            "each image must have a role, and one must be `output`, got images: "
            f"{len(images)}, roles: {', '.join(roles) or 'none'}; set prompt_kwargs, such as "
            '{"roles": ["subject", "output"], "kind": "sdig"}'
        )
    by_role = list(zip(roles, images, strict=True))
    shared_roles = tuple(role for role in roles if role != _OUTPUT)
    conditions = Conditions(arguments.get("kind", ""), shared_roles)
    shared = [image for role, image in by_role if role != _OUTPUT]
    outputs = [image for role, image in by_role if role == _OUTPUT]
    samples = [
        sample_of(
            number,
            request.question or "",
            output,
            shared,
            conditions,
        )
        for number, output in enumerate(outputs)
    ]
    first, *others = samples
    if not others:
        return first
    return Contest(
        SampleId(
            OWN,
            first.kind,
            "",
            first.id.uid,
        ),
        tuple(samples),
    )


def _roles(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Sequence) or not are_texts([*names]):
        raise VievalError(f"`roles` must be a list of names, got {str(names)[:80]}")
    return tuple(names)


def _image(image: Any) -> Image:
    """An image as the host has it: a path, a picture of Pillow, base64, a data address; or a
    file's bytes.
    """
    encoded = image
    if isinstance(image, str):
        is_base64 = _BASE64.fullmatch(image) and not isfile(image)
        if not is_base64 and not image.startswith(_DATA):  # a path
            return conversion.image(image)
        encoded = image.rpartition(",")[2]
        image = b""
    if isinstance(image, bytes):
        with suppress(ValueError):
            return Image(base64.b64decode(encoded, validate=True))
    return conversion.image(image)


def contest_request(
    question: str,
    response1: str = "",
    response2: str = "",
    context: str | None = None,
    score_range: tuple[int, int] = (0, 1),
    custom_prompt: str | None = None,
    images: Sequence[Any] | None = None,
    **further: Any,
) -> Request:
    """The request for a contest, by the arguments of the host's comparisons of texts.

    Of the texts the question alone is read: it is the prompt.
    """
    roles = [_OUTPUT] * max(2, len(images or ()))
    return Request(
        messages=[],
        images=list(images or ()),
        question=question,
        prompt_kwargs={
            "roles": roles,
            **(further.get("prompt_kwargs") or {}),
        },
    )


def _response(judge: _OpenJudge, verdict: Verdict) -> Response:
    backbone = judge.options.backbones.get(JUDGE)
    model = (
        backbone.model
        if backbone and judge.prepared.asks_a_model
        else judge.prepared.spec.name
    )
    document = {**verdict_document(verdict), "reason": verdict.reason}
    del document["trace"]
    content = json.dumps(document, ensure_ascii=False)
    if not verdict.status.usable:
        reason = f"{verdict.status}: {verdict.reason}"
        return Response(
            content, model, raw_response=verdict, success=False, error_message=reason
        )
    scores = (
        verdict.scores if verdict.choice is None else _contest_scores(judge, verdict)
    )
    return Response(content, model, raw_response=verdict, parsed_result=dict(scores))


def _contest_scores(judge: _OpenJudge, verdict: Verdict) -> JsonObject:
    """Scores of each candidate by the main aspect, where the judge scores, and how far the first
    is preferred.
    """
    aspect = main_aspect(judge.prepared.spec.aspects)
    preferred = {"preference": preference(verdict, aspect)}
    if not verdict.choice or not verdict.choice.scores:
        return preferred
    scores = [candidate.get(aspect) for candidate in verdict.choice.scores]
    return {"scores": scores, **preferred}


def _compared(response: Response, request: Request) -> JsonObject:
    parsed = response.parsed_result or {}
    preferred = parsed.get("preference")
    scores = parsed.get("scores")
    if not scores and preferred is not None:
        scores = [(1 + preferred) / 2, (1 - preferred) / 2]
    return {
        "scores": tuple(scores) if scores else None,
        "raw_response": response.content,
        "model": response.model_used,
        "prompt": request.question,
        "success": response.success,
    }


install(sys.modules.get(FACTORY))
