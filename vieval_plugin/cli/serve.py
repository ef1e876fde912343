"""`vieval serve`: judges as a reward server for trainers of image generators."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_aspects,
    add_backbone,
    add_command,
    number_between,
)
from vieval_plugin.cli.score.backbone import (
    named_backbone,
    options_in_force,
)
from vieval_plugin.text.errors import docs_url

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.config import Config
    from vieval_plugin.run.prepare import PreparedJudge
    from vieval_plugin.serve.options import ServeOptions
    from vieval_plugin.serve.run import ServerSetup

#: Seconds without any answer of the backbone until it counts as away: trainers wait for 60 to 300.
_PATIENCE = 30.0


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "serve",
        "serve judges as rewards to trainers",
        "It answers Flow-Factory, UniRL and your own scripts; flow_grpo, VeRL-Omni, TRL and "
        f"ms-swift call judges in their own process. See {docs_url('tutorials/reward.md')}",
        (
            "try it without a model, by a pixel metric",
            "vieval serve --reward sharp=sharpness",
        ),
        (
            "a weighted sum of two judges",
            f"vieval serve --reward r=0.7*viescore:SC+0.3*sharpness {EXAMPLE_BACKBONE}",
        ),
    )
    parser.add_argument(
        "--reward",
        action="append",
        required=True,
        metavar="NAME=JUDGE[:ASPECT]",
        help="a reward, or a weighted sum such as NAME=0.7*JUDGE:SC+0.3*JUDGE; may be repeated",
    )
    listening = "address to listen on (default: %(default)s, this machine alone)"
    parser.add_argument("--host", default="127.0.0.1", help=listening)
    parser.add_argument(
        "--port",
        type=int,
        default=8200,
        help="port to listen on, 0 for any (default: %(default)s)",
    )
    parser.add_argument(
        "--setting",
        help="a setting of the judges, such as 1shot (default: the first of each)",
    )
    add_aspects(parser)
    parser.add_argument(
        "--config",
        type=Path,
        help="the options file (default: the one that VIEVAL_CONFIG names)",
    )
    weights = "weights of judges that are networks: a name, folder or file (default: their own)"
    parser.add_argument("--scorer", help=weights)

    samples = parser.add_argument_group("samples")
    kinds = (
        "the task type of all samples (default: tie, an edit, if there is a second image, else "
        "tig)"
    )
    roles = "the role of an image beside the output; may be repeated (default: source)"
    samples.add_argument("--kind", help=kinds)
    samples.add_argument("--role", action="append", help=roles)

    _add_failures(parser)
    _add_callers(parser)
    add_backbone(parser, _PATIENCE)
    parser.set_defaults(run=_run, fresh=False, lazy=False)


def _add_failures(parser: argparse.ArgumentParser) -> None:
    """The flags of verdicts that fail."""
    failing = parser.add_argument_group("failures")
    attempts = "how often a question is asked at most (default: %(default)s)"
    repeats = (
        "verdicts to average into a reward, for a backbone with a temperature (default: "
        "%(default)s)"
    )
    failures = (
        "answer a failure with an error, or its group's mean if a request is one group "
        "(default: %(default)s)"
    )
    share = "largest share of a group that gets its mean (default: %(default)s)"
    failing.add_argument(
        "--attempts", type=number_between(1), default=3, metavar="N", help=attempts
    )
    failing.add_argument(
        "--repeats", type=number_between(1), default=1, metavar="K", help=repeats
    )
    failing.add_argument(
        "--on-failure", choices=("error", "neutral"), default="error", help=failures
    )
    failing.add_argument(
        "--max-imputed",
        type=number_between(0, 0.99, float),
        default=0.1,
        metavar="SHARE",
        help=share,
    )


def _add_callers(parser: argparse.ArgumentParser) -> None:
    """The flags of callers: who may call, and how much they may send."""
    callers = parser.add_argument_group("callers")
    names = "a further name of this server; may be repeated"
    size = "largest request in MiB (default: %(default)s)"
    callers.add_argument(
        "--no-token",
        action="store_true",
        help="let anybody call who reaches --host, without a token",
    )
    callers.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help=names
    )
    number = "most samples in a request (default: %(default)s)"
    callers.add_argument(
        "--max-samples", type=number_between(1), default=1024, metavar="N", help=number
    )
    callers.add_argument(
        "--max-body", type=number_between(1), default=256, metavar="MIB", help=size
    )


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.text.errors import VievalError, install_advice

    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise VievalError(f"a server needs aiohttp; {install_advice('http')}") from None
    from vieval_plugin.run.loop import run
    from vieval_plugin.serve.run import serve
    from vieval_plugin.text.escaping import say

    setup = _server_setup(options)
    logging.basicConfig(format="vieval: %(message)s", stream=sys.stderr)
    logging.getLogger("vieval").setLevel(logging.INFO)
    run(serve(setup, lambda port: say(*_announcement(setup, port), file=sys.stderr)))
    return 0


def _server_setup(options: argparse.Namespace) -> ServerSetup:
    """The server that the flags describe; VievalError for flags that do not go together."""
    from vieval_plugin.rewards.reward import read_reward, require_a_score_each
    from vieval_plugin.run.backbones import JUDGE, require_model
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.serve.run import ServerSetup
    from vieval_plugin.serve.security import TOKEN_VARIABLE, guard_of
    from vieval_plugin.text.errors import VievalError

    current = _set_own_store(options_in_force(options))
    configured = current.backbones.get(JUDGE)
    if options.patience is None and not (
        configured and "patience" in configured.model_fields_set
    ):
        options.patience = _PATIENCE
    backbone = named_backbone(options, current)

    @cache
    def prepared(name: str) -> PreparedJudge:
        judge = prepare(name, options.setting, current, backbone)
        if judge.asks_a_model:
            require_model(name, current, backbone)
        return judge

    rewards = [read_reward(text, prepared) for text in options.reward]
    if options.on_failure != "neutral":
        require_a_score_each(term for reward in rewards for term in reward.terms)
    names = [reward.name for reward in rewards]
    if reserved := {
        "v1",
        "compute",
        "group",
        "unirl",
        "health",
        "live",
        "metrics",
    } & set(names):
        raise VievalError(
            f"--reward {min(reserved)}: that is an address of the server itself; choose another "
            "name"
        )
    if repeated := [name for name in names if names.count(name) > 1]:
        raise VievalError(
            f"--reward {repeated[0]} is there twice; give each a name of its own"
        )
    token = os.environ.get(TOKEN_VARIABLE, "")
    guard = guard_of(options.host, tuple(options.allow_host), token, options.no_token)
    return ServerSetup(rewards, current, backbone, guard, _serve_options(options))


def _serve_options(options: argparse.Namespace) -> ServeOptions:
    from vieval_plugin.rewards.samples import Conditions
    from vieval_plugin.serve.options import MIB, Bounds, ServeOptions

    same = ("host", "port", "attempts", "repeats", "on_failure", "max_imputed")
    return ServeOptions(
        **{name: getattr(options, name) for name in same},
        conditions=Conditions(options.kind or "", tuple(options.role or ("source",))),
        bounds=Bounds(body=options.max_body * MIB, samples=options.max_samples),
    )


def _set_own_store(current: Config) -> Config:
    """The options with a store of the server's own, unless they name one: its oldest replies are
    deleted in time.
    """
    if not current.store.use or current.store.path:
        return current
    from vieval_plugin.media.files import cache_folder

    path = cache_folder() / "serve.sqlite"
    return current.model_copy(
        update={"store": current.store.model_copy(update={"path": path})}
    )


def _announcement(setup: ServerSetup, port: int) -> list[str]:
    """Lines on what is served where."""
    host = setup.options.host
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    lines = [
        f"vieval: rewards at {address}, where a page tries them; health at {address}/health"
    ]
    for reward in setup.rewards:
        lines.append(
            f"vieval: {reward.name} = {reward}, at {address}/{reward.name}/v1/judge"
        )
    if not setup.guard.token and setup.guard.any_address:
        lines.append(
            "vieval: NO TOKEN: everybody who can reach this address may use the judges, and is "
            "answered"
        )
    return lines
