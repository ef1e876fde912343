"""T2I-Eval's conversations as training examples: one a sub-task, those of a question together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from vieval_plugin.exchanges import Exchange, final_chats
from vieval_plugin.judges.protocol import Chat, Message, SampleId
from vieval_plugin.judges.t2i_eval.structure import KINDS
from vieval_plugin.training.chat_format import Example
from vieval_plugin.training.rebalance import Unit


def units(identity: SampleId, found: Sequence[Exchange]) -> list[Unit]:
    """The examples of one sample, from the exchanges behind its verdict; of answers that could not be read, none.

    A question's score is that of its last turn; each turn is an example of its own, with the turns before it as history.
    """
    threads: dict[str, list[tuple[str, Chat, str]]] = defaultdict(list)
    for label, (chat, answer) in final_chats(found).items():
        if not label.endswith("/quality"):
            threads[label.rpartition("/")[0] or label].append((label, chat, answer))
    scores = {one.ask.label: one.step.scores for one in found if one.step.status.usable and one.step.scores}
    return [_unit(identity, thread, turns, scores.get(turns[-1][0])) for thread, turns in threads.items()]


def _unit(
    identity: SampleId, thread: str, turns: Sequence[tuple[str, Chat, str]], scores: tuple[float, ...] | None
) -> Unit:
    kind = thread.split("/")[0]
    summary = thread in KINDS or thread == "overall"
    examples = []
    for label, chat, answer in turns:
        stage = label.rpartition("/")[2] if "/" in label else ""
        sub_task = " ".join(filter(None, [kind, "summary" if summary else "", stage]))
        messages = (*chat.messages, Message("assistant", (answer,)))
        examples.append(Example(f"{identity}/{label}", sub_task, messages, (len(messages) - 1,)))
    return Unit("summary" if summary else kind, kind, scores[0] if scores else None, tuple(examples))
