"""Plays a judge's program: sends it scripted replies until it ends, and keeps what it asked. The
one driver of the tests.

Replies come by round, or from a function that is called with each ask::

    played = play(judge(sample), [Text("I like it.")], [Text('{"score": [7], "reasoning": "x"}')])
    played = play(judge(sample), answer=lambda ask: Text('{"score": [7], "reasoning": "x"}'))
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Ask, Image, Judge
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, Needs, NoOptions
from vieval_plugin.records import Provenance
from vieval_plugin.run.prepare import PreparedJudge, prepare

T = TypeVar("T")


@dataclass(frozen=True)
class Played(Generic[T]):
    """What a program returned (a judge's its verdict), and its asks round by round."""

    result: T
    rounds: list[list[Any]]

    @property
    def verdict(self) -> T:
        return self.result

    @property
    def asks(self) -> list[Any]:
        return [ask for asks in self.rounds for ask in asks]

    @property
    def labels(self) -> list[list[str]]:
        """The names of the questions, round by round."""
        return [[label_of(ask) for ask in asks] for asks in self.rounds]

    @property
    def calls(self) -> int:
        return len(self.asks)

    def asked(self, label: str) -> Any:
        """The only ask of that name."""
        [found] = [ask for ask in self.asks if label_of(ask) == label]
        return found

    def shown(self, label: str) -> list[Image]:
        """The images of a chat in order."""
        return images_of(self.asked(label))

    def text(self, label: str) -> str:
        """The words of a chat."""
        return text_of(self.asked(label))


def play(
    program: Generator[list[Any], list[Any], T],
    *rounds: Sequence[Any],
    answer: Callable[[Any], Any] | None = None,
) -> Played[T]:
    """Run a program to its end; replies by round must match its rounds and their asks."""
    asked: list[list[Any]] = []
    script = iter(rounds)
    try:
        asks = next(program)
        while True:
            asked.append(asks)
            if answer is not None:
                replies = [answer(ask) for ask in asks]
            else:
                replies = list(next(script, ()))
                assert len(asked) <= len(rounds), f"asked again: {asks}"
                assert len(replies) == len(asks), f"{len(replies)} replies for {asks}"
            asks = program.send(replies)
    except StopIteration as end:
        is_whole = answer is not None or len(asked) == len(rounds)
        assert is_whole, f"ended after {len(asked)} rounds of {len(rounds)}"
        return Played(end.value, asked)


def first_asks(program: Generator[list[Any], list[Any], Any]) -> list[Any]:
    """What a program asks before it has heard anything."""
    return next(program)


def prepared(judge: str, setting: str | None = None, **options: Any) -> PreparedJudge:
    """A judge as a run has it, in a setting and with its own options."""
    given = {"judges": {judge: options} if options else {}}
    return prepare(judge, setting, Config.model_validate(given))


def scripted(judge: Judge) -> PreparedJudge:
    """A judge of a test's own as a run has it; it takes every sample."""
    about = ("scripted", "Scripted", ("SC",), {EVERY_KIND: Needs()}, NoOptions)
    spec = JudgeSpec(*about, lambda options, pack, setting: judge)
    return PreparedJudge(spec, judge, Provenance(spec.name, (), spec.aspects))


def label_of(ask: Ask) -> str:
    """The name of a question; reminders of it have the same."""
    return "/".join(ask.path)


def images_of(ask: Any) -> list[Image]:
    return [part for part in _parts(ask) if isinstance(part, Image)]


def text_of(ask: Any) -> str:
    return "\n".join(part for part in _parts(ask) if isinstance(part, str))


def _parts(ask: Any) -> list[Any]:
    return [part for message in ask.messages for part in message.parts]
