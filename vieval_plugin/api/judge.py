"""A judge that stays open: connections, store and networks are there for one image or a million."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from vieval_plugin import config
from vieval_plugin.api import conversion
from vieval_plugin.api.conversion import Format, GivenImage
from vieval_plugin.api.verdicts import Verdicts, main_aspect, unknown_aspect_error
from vieval_plugin.config import Backbone, Config, Options, resolved
from vieval_plugin.judges.arguments import named_arguments, require
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status
from vieval_plugin.records import OWN, unjudged
from vieval_plugin.run.loop import CLOSED, LoopThread
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import path_of

if TYPE_CHECKING:
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.session import Session

Images: TypeAlias = "GivenImage | Iterable[GivenImage]"
Texts: TypeAlias = str | Iterable[str]
INTERRUPTED = "the run was interrupted before this sample was judged"
_TIG = "tig"
_ALIKE = 0.6


class Judge:
    """A judge of images, with its model and its store open until it is closed.

    It is used from a script, a notebook, a thread or a training loop alike; each method has a form
    whose name ends in `_async`, for `await`. One judge may be asked from several threads at once.
    `with` closes it, and so does the end of the program.

    Args:
        name: the judge, by its name, which `vieval tasks` lists, or the file that describes it.
        model: its backbone, as the server knows it (default: `backbones.judge` of the options;
            judges that measure need none).
        base_url: the address of that server, or several, each ending in /v1.
        setting: one of the judge's settings, such as "1shot" (default: its plain one).
        scorer: weights of a judge that measures with a network: a name, a folder or a file
            (default: its own).
        options: what an options file says, as a mapping or a `Config` (default: the file that
            VIEVAL_CONFIG names).
        fresh: ask anew at each call whatever the store holds, for a model that is being trained
            under one name.
        image_format: how pictures and arrays are written for a server: "png", which loses nothing,
            or "jpeg" of quality 95.
        bar: whether calls show a progress bar.
        attempts: how often a question is asked in all until its answer can be read; the store does
            not answer it again.
        calibration: a file of `vieval calibrate`, which adds a score such as "O_calibrated": what
            people would say.
        backbone: further fields of the backbone, such as `num_concurrent=64`, `temperature=0.0`,
            `api_key_env="NAME"`.

    Raises:
        VievalError: an unknown judge, setting or option, with the nearest that there is.

    >>> judge = Judge("sharpness", options={"store": {"use": False}})
    >>> noise = np.random.RandomState(0).random_sample((2, 64, 64, 3))
    >>> judge.score(noise, "grains of sand").round(2).tolist()
    [0.88, 0.88]
    >>> judge.close()
    """

    @named_arguments
    def __init__(
        self,
        name: str = "viescore",
        *,
        model: str | None = None,
        base_url: str | Sequence[str] | None = None,
        setting: str | None = None,
        scorer: str | None = None,
        options: Options = None,
        fresh: bool = False,
        image_format: Format = "png",
        bar: bool = False,
        attempts: int = 1,
        calibration: str | Path | None = None,
        **backbone: Any,
    ) -> None:
        require(name, str, "Judge(name)", "a judge's name; `vieval tasks` lists them")
        texts = {"model": model, "setting": setting, "scorer": scorer}
        for argument, text in texts.items():
            require(text, (str, type(None)), f"Judge({argument})", "a text")
        for argument, switch in {"fresh": fresh, "bar": bar}.items():
            require(switch, bool, f"Judge({argument})", "True or False")
        if image_format not in ("png", "jpeg"):
            raise VievalError(
                f'`image_format` must be "png" or "jpeg", got {image_format!r}'
            )
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise VievalError(f"`attempts` must be at least 1, got {attempts!r}")
        arguments = [
            argument
            for argument in inspect.signature(Judge).parameters
            if argument != "backbone"
        ]
        self.options = judge_options(
            options,
            {"model": model, "base_url": base_url, **backbone},
            arguments,
        )
        if scorer is not None:
            self.options = self.options.scored_by({"model": scorer})
        if calibration is not None:
            self.options = self.options.model_copy(
                update={"calibration": path_of(calibration)}
            )
        self.prepared = prepare(name, setting, self.options)
        from vieval_plugin.run.evaluate import provenance_of
        from vieval_plugin.run.progress import Progress

        self._provenance = provenance_of(self.prepared, self.options, None)
        if scorer is not None and not self.prepared.spec.scored:
            raise VievalError(
                f"{name} does not use a network, so `scorer` cannot replace one"
            )
        self.aspects = (
            *self.prepared.spec.aspects,
            *self._provenance.calibrated_scores,
        )
        self.progress = Progress()
        self.last = Verdicts((), (), self.aspects)
        self._fresh = fresh
        self._format = image_format
        self._bar = bar
        self._attempts = attempts
        self._open: Opened | None = None
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        spec = self.prepared.spec
        backbone = self.options.backbones.get("judge")
        model = f" by {backbone.model}" if backbone and not spec.scored else ""
        return f"<Judge {spec.name}{model}>"

    def __reduce__(self) -> tuple[Callable[[], Judge], tuple[()]]:
        """Open again where a copy is used, or in the process that it is sent to; keys stay in
        the environment.
        """
        spec = self.prepared.spec
        judge = str(spec.file.path) if spec.file else spec.name
        again = partial(
            type(self),
            judge,
            setting=self.prepared.setting,
            options=self.options,
            fresh=self._fresh,
            bar=self._bar,
            image_format=self._format,
            attempts=self._attempts,
        )
        return again, ()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Judge:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Let go of connections and store; the next call opens them again."""
        with self._opening:
            opened = self._open
            self._open = None
        if opened is not None:
            self._ending.detach()
            opened.close()

    def __call__(self, samples: Iterable[Any], *, kind: str | None = None) -> Verdicts:
        """Judge samples.

        Args:
            samples: each a `Sample`, a `Contest`, or a mapping such as
                `{"kind": "tie", "images": {"source": ..., "output": ...}, "texts": {"instruction":
                ...}}` with the keys of a samples file. An image is a path, the bytes of a file, a
                PIL image, or an array (height, width, 3).
            kind: that of mappings which name none.

        Returns:
            A verdict a sample, in order; a failed call is a verdict with a status.

        Raises:
            VievalError: what is given is no samples, or the run cannot go on at all.
            KeyboardInterrupt: it was interrupted; `last` has the verdicts so far, `missing` for the
                others.
        """
        return self._waited(conversion.samples(samples, kind, self._format))

    async def judge_async(
        self, samples: Iterable[Any], *, kind: str | None = None
    ) -> Verdicts:
        """`judge(samples)` for a running event loop."""
        converted = await asyncio.to_thread(
            conversion.samples, samples, kind, self._format
        )
        return await self._awaited(converted)

    @overload
    def score(self, images: GivenImage, prompts: str, *, aspect: str = "") -> float: ...  # type: ignore[overload-overlap]

    @overload
    def score(
        self,
        images: Iterable[GivenImage],
        prompts: Texts,
        *,
        aspect: str = "",
    ) -> NDArray[np.float64]: ...

    @named_arguments
    def score(
        self,
        images: Images,
        prompts: Texts,
        *,
        aspect: str = "",
    ) -> NDArray[np.float64] | float:
        """Score an image for its prompt, or each of several.

        Args:
            images: an image, a sequence of images, or a batch (number, height, width, 3).
            prompts: as many texts, or one for all.
            aspect: which score (default: O where the judge rates it, else its first).

        Returns:
            Scores in [0, 1], those of a reward model on its own scale, shape (number,), or the one
            score of one image; NaN where a call failed, of which `last` has the status.

        Raises:
            VievalError: what is given are no images and texts, a file is not there, the judge rates
                no such images, or its server is away.
        """
        self._require_aspect(aspect or main_aspect(self.aspects))
        scores = self._waited(self._pairs(images, prompts)).scores(aspect)
        return float(scores[0]) if conversion.is_one_image(images) else scores

    async def score_async(
        self,
        images: Images,
        prompts: Texts,
        *,
        aspect: str = "",
    ) -> NDArray[np.float64] | float:
        """`score` for a running event loop."""
        self._require_aspect(aspect or main_aspect(self.aspects))
        pairs = await asyncio.to_thread(self._pairs, images, prompts)
        scores = (await self._awaited(pairs)).scores(aspect)
        return float(scores[0]) if conversion.is_one_image(images) else scores

    @named_arguments
    def compare(
        self,
        a: Iterable[GivenImage],
        b: Iterable[GivenImage],
        prompts: Texts,
        *,
        aspect: str = "",
    ) -> NDArray[np.float64]:
        """Compare two images for their prompt.

        Args:
            a: a sequence of images, or a batch (number, height, width, 3).
            b: as many.
            prompts: as many texts, or one for all.
            aspect: which score is compared, of judges that score (default: O where the judge rates
                it, else its first).

        Returns:
            How far `a` is preferred to `b`, in [-1, 1], shape (number,): above 0 where it is
            better, 0 for a tie, NaN where a call failed. Of a judge of pairs it is the mean over
            both orders, of one that scores the difference of scores.
        """
        if aspect:
            self._require_aspect(aspect)
        return self._waited(self._contests(a, b, prompts)).preferences(aspect)

    async def compare_async(
        self,
        a: Iterable[GivenImage],
        b: Iterable[GivenImage],
        prompts: Texts,
        *,
        aspect: str = "",
    ) -> NDArray[np.float64]:
        """`compare` for a running event loop."""
        if aspect:
            self._require_aspect(aspect)
        contests = await asyncio.to_thread(self._contests, a, b, prompts)
        return (await self._awaited(contests)).preferences(aspect)

    def _require_aspect(self, aspect: str) -> None:
        if aspect not in self.aspects:
            raise unknown_aspect_error(aspect, self.aspects)

    def _pairs(self, images: Any, prompts: Any) -> list[Sample]:
        self._require_prompted()
        if conversion.is_one_image(images):
            require(
                prompts,
                str,
                "prompts",
                "one string for one image, or a list of images",
            )
            images = [images]
        [outputs], texts = conversion.columns({"images": images}, prompts, self._format)
        pairs = enumerate(zip(outputs, texts, strict=True))
        return [_sample("", number, *pair) for number, pair in pairs]

    def _contests(self, a: Any, b: Any, prompts: Any) -> list[Contest]:
        self._require_prompted()
        images = {"images a": a, "images b": b}
        [first, second], texts = conversion.columns(images, prompts, self._format)
        contests = []
        for number, prompt in enumerate(texts):
            sample_a = _sample("a", number, first[number], prompt)
            sample_b = _sample("b", number, second[number], prompt)
            contest_id = SampleId(OWN, _TIG, "", str(number))
            contests.append(Contest(contest_id, (sample_a, sample_b)))
        return contests

    def _require_prompted(self) -> None:
        """Raise VievalError for a judge that rates no images made from a prompt alone."""
        spec = self.prepared.spec
        if spec.rates == "sample" and not spec.kinds([_TIG]):
            supported = ", ".join(spec.needs)
            raise VievalError(
                f"{spec.name} does not support text-to-image ({_TIG}); it supports "
                f"{supported}; pass samples of these kinds"
            )

    async def _judged(
        self, opened: Opened, samples: Sequence[Sample | Contest]
    ) -> Verdicts:
        """Judge in the judge's own loop; `last` has what is there, however it ends."""
        outcomes: dict[int, Outcome] = {}
        ending = ""
        opened.runs += 1
        try:
            session = await opened.session()
            if self._fresh:
                session.ask_anew()
            await session.judge(
                samples,
                self.prepared,
                outcomes,
                self._bar,
                attempts=self._attempts,
            )
        except BaseException as error:
            ending = str(error) if isinstance(error, VievalError) else INTERRUPTED
            if opened.loop.closing:
                raise VievalError(CLOSED) from error
            # questions whose answers are no longer awaited must not go on
            if opened.runs == 1:
                await opened.shut()
            raise
        finally:
            opened.runs -= 1
            missing = Outcome(unjudged(Status.MISSING, ending))
            verdicts = [
                outcomes.get(number, missing).verdict for number in range(len(samples))
            ]
            self.last = Verdicts(samples, verdicts, self.aspects, self._provenance)
        return self.last

    def _opened(self) -> Opened:
        with self._opening:
            # a loop does not outlive a fork
            if self._open is None or self._open.process != os.getpid():
                self._open = Opened(
                    self.options,
                    self.progress,
                    self.prepared.asks_a_model,
                )
                self._ending = weakref.finalize(self, self._open.close)
            return self._open

    def _waited(self, samples: Sequence[Sample | Contest]) -> Verdicts:
        opened = self._opened()
        return opened.loop.call(self._judged(opened, samples))

    async def _awaited(self, samples: Sequence[Sample | Contest]) -> Verdicts:
        opened = self._opened()
        future = opened.loop.begin(self._judged(opened, samples))
        return await asyncio.wrap_future(future)


def _sample(image_model: str, number: int, image: Image, prompt: str) -> Sample:
    sample_id = SampleId(OWN, _TIG, image_model, str(number))
    return Sample(sample_id, {"output": image}, {"prompt": prompt})


def judge_options(
    options: Options, fields: Mapping[str, Any], arguments: Iterable[str]
) -> Config:
    """The options of a judge.

    Args:
        options: those of a file, as a mapping or read already; None for those that VIEVAL_CONFIG
            names.
        fields: those of the backbone, in place of theirs; None stands for one that is not named.
        arguments: the names that may be meant where a field is none.

    Raises:
        VievalError: an option or field that there is not, with the nearest, or one that it cannot
            have.
    """
    from vieval_plugin.run.backbones import JUDGE

    base = resolved(options)
    fields = {name: value for name, value in fields.items() if value is not None}
    unknown = sorted(set(fields) - set(Backbone.model_fields))
    if unknown:
        names = [*Backbone.model_fields, *arguments]
        suggestion = did_you_mean(unknown[0], names, cutoff=_ALIKE)
        if not suggestion:
            suggestion = f"; known arguments: {', '.join(names)}"
        raise VievalError(f"Judge has no argument {unknown[0]!r}{suggestion}")
    if ("model" in fields) != ("base_url" in fields):
        raise VievalError(
            "model and base_url must be passed together; pass both, or set backbones.judge "
            "in the options"
        )
    if not fields:
        return base
    if "model" not in fields and JUDGE not in base.backbones:
        raise VievalError(
            f"{min(fields)} applies to a backbone; pass model and base_url too"
        )
    configured = {} if "model" in fields else base.backbones[JUDGE].model_dump()
    judge_fields = {**configured, **fields}
    judge_config = config.from_mapping({"backbones": {JUDGE: judge_fields}}, "Judge")
    all_backbones = {**base.backbones, **judge_config.backbones}
    return base.model_copy(update={"backbones": all_backbones})


class Opened:
    """A judge's event loop and its open resources."""

    def __init__(self, options: Config, progress: Progress, asks_a_model: bool) -> None:
        self._run = options, None, progress, asks_a_model
        self.loop = LoopThread(self.shut)
        self.process = os.getpid()
        self.runs = 0
        self._session: asyncio.Task[Session] | None = None

    async def session(self) -> Session:
        """The open session; opened by whoever comes first."""
        if self._session is None:
            from vieval_plugin.run.session import Session

            self._session = asyncio.ensure_future(Session(*self._run).__aenter__())
        try:
            return await asyncio.shield(self._session)
        except VievalError:
            self._session = None
            raise

    async def shut(self) -> None:
        """Close the session; the next run opens another."""
        opening = self._session
        self._session = None
        if opening is not None:
            # these are raised where it never opened
            with contextlib.suppress(asyncio.CancelledError, VievalError):
                session = await opening
                await session.__aexit__(None, None, None)

    def close(self) -> None:
        if self.process == os.getpid() and not sys.is_finalizing():
            self.loop.close()
