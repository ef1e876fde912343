"""Show, export or clear the reply cache.

Replies of models are cached, so you pay for each question only once.

Examples:
    # count the replies of each model
    vieval cache info
    # delete those of one model
    vieval cache clear --model gpt-4o
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vieval_plugin.cli import Options, argument, flag
from vieval_plugin.text.escaping import console

if TYPE_CHECKING:
    from vieval_plugin.backends.cache.store import Store


class CacheOptions(Options):
    """Options of `vieval cache`."""

    action: Literal["info", "export", "clear", "forget"] = argument(
        "count replies, print them as JSON lines, delete them, or forget what "
        "servers support"
    )
    model: str | None = flag(
        "clear or forget only entries of this model (default: all)"
    )
    yes: bool = flag("clear without confirmation")


def run(options: CacheOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.backends.cache.store import Store
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    path = config.current().store_path()
    if path is None or not path.is_file():
        raise VievalError(f"{path or 'store.use is off'}: no reply cache yet")
    store = Store(path)
    if options.action == "clear":
        try:
            say(_clear(options, store, path))
        finally:
            store.close()
        return 0
    if options.action == "forget":
        facts = store.forget(options.model)
        say(
            f"forgot {plural(facts, 'fact')} about servers (the next run checks them "
            "again); all replies are kept"
        )
    elif options.action == "info":
        say(f"{path}  {path.stat().st_size / 2**20:.1f} MiB")
        for model, count, first, last in store.info():
            span = " to ".join(
                time.strftime("%Y-%m-%d %H:%M", time.localtime(t))
                for t in (first, last)
            )
            say(f"{model}  {_replies(count)}, {span}")
    else:
        for row in store.export():
            say(json.dumps(row))
    store.close()
    return 0


def _clear(options: CacheOptions, store: Store, path: Path) -> str:
    """Delete what is named, once that is confirmed; what was done."""
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.suggestions import did_you_mean
    from vieval_plugin.text.wording import plural

    counts = {model: count for model, count, _, _ in store.info()}
    if options.model is not None and options.model not in counts:
        hint = (
            did_you_mean(options.model, counts, 0.6)
            or "; `vieval cache info` lists the models"
        )
        raise VievalError(f"{path} contains no replies from {options.model!r}{hint}")
    count = sum(counts.values()) if options.model is None else counts[options.model]
    what = f"{_replies(count)} from {options.model or plural(len(counts), 'model')}"
    question = f"delete {what} in {path}? Getting them again requires new calls. [y/N] "
    if not options.yes and not _confirmed(question):
        return f"not confirmed: kept {what} in {path}"
    return f"deleted {_replies(store.clear(options.model))}"


def _replies(count: int) -> str:
    return "1 reply" if count == 1 else f"{count} replies"


def _confirmed(question: str) -> bool:
    """Ask for confirmation at the terminal; VievalError without a terminal."""
    from vieval_plugin.text.errors import VievalError

    if not sys.stdin.isatty():
        raise VievalError("cannot ask for confirmation without a terminal; pass --yes")
    print(console(question), end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
