"""`vieval doctor`: what a run would need."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "settings and checks"


def add(commands: Commands) -> None:
    parser = commands.add_parser("doctor", help="check options, packages, data, servers and keys, and say what to do")
    parser.add_argument("--base-url", metavar="URL", help="ask this server, in place of those in the options")
    parser.add_argument("--model", help="the model to ask it for (default: the one that it lists)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
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
    say(
        f"{problems} of {len(checks)} checks found a problem" if problems else f"no problem in {len(checks)} checks", ""
    )
    say(*(redacted(str(check)) for check in sorted(checks, key=lambda check: check.fine)))
    return 1 if problems else 0
