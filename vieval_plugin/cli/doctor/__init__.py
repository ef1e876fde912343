"""`vieval doctor`: what a run would need."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "doctor",
        "say what is ready to use, and what the rest needs",
        "It checks packages, options, data, the store of replies, and the servers of your backbones.",
        ("this environment", "vieval doctor"),
        ("a server", "vieval doctor --base-url http://127.0.0.1:8000/v1"),
    )
    parser.add_argument("--base-url", metavar="URL", help="check this server, in place of those in the options")
    parser.add_argument("--model", help="the model to ask there (default: the one that the server lists)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.cli.doctor import abilities
    from vieval_plugin.cli.doctor.checks import examine, listed_model
    from vieval_plugin.config import Backbone
    from vieval_plugin.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.redaction import redacted

    backbone = None
    if options.base_url:
        model = options.model or listed_model(options.base_url)
        backbone = Backbone(model=model, base_url=(options.base_url,))
    elif options.model:
        raise VievalError("--model goes with --base-url; models of the options are asked without either")
    checks = list(examine(backbone))
    problems = sum(not check.fine for check in checks)
    with contextlib.suppress(VievalError):  # of options that cannot be read, which is among the problems
        say(*abilities.lines(config.current(), next((check.model for check in checks if check.model), "")), "")
    say(
        f"{problems} of {len(checks)} checks found a problem" if problems else f"no problem in {len(checks)} checks", ""
    )
    say(*(redacted(str(check)) for check in sorted(checks, key=lambda check: check.fine)))
    return 1 if problems else 0
