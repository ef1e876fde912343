"""A judge as the reward of a language model that writes prompts, trained by TRL or ms-swift; a
renderer draws them.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from vieval_plugin.api.judge import Judge
from vieval_plugin.api.verdicts import main_aspect
from vieval_plugin.rewards.in_process import OpenReward, numbers
from vieval_plugin.text.errors import VievalError

_FIRST_WITH_NONE = (1, 6)
#: Makes images of texts, one each, in order; an image is anything that `Judge` takes.
Render: TypeAlias = Callable[[list[str]], Iterable[Any]]


@dataclass
class PromptWriterReward:
    """A reward of completions: how well the image of what was written fits what was asked for.

    It can be pickled if `render` can.
    """

    #: The reward of an image.
    reward: OpenReward
    #: Makes the images of texts.
    render: Render

    def __post_init__(self) -> None:
        self.__name__ = "judge"  # which TRL calls its numbers by

    def __call__(
        self,
        completions: Sequence[Any],
        prompts: Sequence[Any] | None = None,
        **columns: Any,
    ) -> list[Any]:
        """The rewards of completions.

        Args:
            completions: texts, or conversations whose last turn counts.
            prompts: the same of what was asked for, as TRL passes it.
            columns: those of the data set; ms-swift has what was asked for in `messages`.

        Returns:
            A number each; None where there is none, for a TRL that leaves such out (1.6 and newer).

        Raises:
            VievalError: a completion has no reward, and the trainer would take None for 0; or
                nothing was asked for.
        """
        requests = prompts if prompts is not None else columns.get("messages")
        if requests is None:
            raise VievalError("completions require prompts or messages, got neither")
        written = [_text(completion, "assistant") for completion in completions]
        texts = [_text(request, "user") for request in requests]
        samples = self.reward.samples(texts, list(self.render(written)))
        values = self.reward.values(samples)
        if prompts is not None and _leaves_none_out():
            return [value.value for value in values]
        return list(numbers(values))


def prompt_writer_reward(
    judge: Judge, render: Render, aspect: str = ""
) -> PromptWriterReward:
    """A reward function for TRL, also used by a class for ms-swift.

    Args:
        judge: an open judge of images made from a prompt.
        render: makes images of texts.
        aspect: which score (default: O where the judge rates it, else its first).

    Raises:
        VievalError: the judge rates no such aspect.
    """
    spec = judge.prepared.spec
    name = str(spec.file.path) if spec.file else spec.name
    definition = f"{name}:{aspect or main_aspect(judge.aspects)}"
    opened = OpenReward(definition, {name: judge})
    _ = opened.reward
    return PromptWriterReward(opened, render)


def _text(written: Any, role: str) -> str:
    """A text, or the last turn of a role in a conversation."""
    if isinstance(written, str):
        return written
    turns = [turn["content"] for turn in written if turn.get("role", role) == role]
    if not turns or not isinstance(turns[-1], str):
        raise VievalError(f"a conversation has no {role} turn with text")
    return turns[-1]


def _leaves_none_out() -> bool:
    """Return whether the installed TRL leaves rewards out that are None."""
    try:
        numbers_of = re.findall(r"\d+", importlib.metadata.version("trl"))
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(map(int, numbers_of[:2])) >= _FIRST_WITH_NONE
