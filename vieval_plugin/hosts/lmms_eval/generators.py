"""lmms-eval models of ours that make images, for our tasks of generators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate import PartialState
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms

from vieval_plugin.errors import VievalError
from vieval_plugin.generators.made_elsewhere import MadeElsewhere
from vieval_plugin.generators.wanted import Wanted
from vieval_plugin.hosts.ending import one_line
from vieval_plugin.hosts.lmms_eval.answering import is_padding
from vieval_plugin.hosts.lmms_eval.generate_task import finish


class _Generating(lmms):  # type: ignore[misc]
    """What these models have in common: they answer our requests for images; subclasses make them."""

    is_simple = True

    @property
    def device(self) -> Any:
        """Where the host counts requests when there are several processes."""
        return PartialState().device

    def answers(self, wanted: Sequence[Wanted]) -> list[str]:
        """Answers in the form of the host, in order."""
        raise NotImplementedError

    @one_line
    def vieval_generate(self, instances: list[Instance]) -> list[str]:
        turns: Counter[int] = Counter()
        wanted = []
        for instance in instances:
            request = instance.args[2]
            wanted.append(Wanted(request.conditions, request.prompt, request.images, turns[id(request)]))
            turns[id(request)] += 1
        real = [one for one, instance in zip(wanted, instances, strict=True) if not is_padding(instance)]
        found = iter(self.answers(real))
        outputs = ["" if is_padding(instance) else next(found) for instance in instances]
        finish(self, instances, outputs)
        return outputs

    def generate_until(self, requests: list[Instance]) -> list[str]:
        raise SystemExit(f"vieval: {type(self).__name__} answers tasks generate_* of VIEval only; see `vieval tasks`")

    loglikelihood = generate_until_multi_round = generate_until


class VievalImages(_Generating):
    """Images made elsewhere: `--model vieval_images --model_args folder=FOLDER` or `file=JSONL`, and `name=...`.

    `name` is what tables call the generator; of a file with several image models it says which is meant.
    """

    @one_line
    def __init__(self, folder: str = "", file: str = "", name: str = "", **host_arguments: Any) -> None:
        super().__init__()
        place = str(folder or file)
        if not place:
            raise VievalError("vieval_images needs --model_args folder=<images called by uid> or file=<JSONL>")
        if not Path(place).expanduser().exists():
            raise VievalError(f"{place}: no such folder or file of images")
        self.images = MadeElsewhere(Path(place).expanduser(), str(name))

    def answers(self, wanted: Sequence[Wanted]) -> list[str]:
        return [self.images.answer(one) for one in wanted]
