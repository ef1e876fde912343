"""Serve judges as rewards for trainers.

The server supports Flow-Factory, UniRL and your own scripts; flow_grpo, VeRL-Omni, TRL and ms-swift
run judges in their own process. See
docs/tutorials/reward.md

Examples:
    # try it without a model, with a pixel metric
    vieval serve --reward sharp=sharpness
    # serve a weighted sum of two judges
    vieval serve --reward r=0.7*viescore:SC+0.3*sharpness --model NAME --base-url http://127.0.0.1:8000/v1
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from vieval_plugin.cli import Count, Options, flag, number_between, tell
from vieval_plugin.cli.options import (
    BackboneOptions,
    SettingOptions,
    named_backbone,
    options_in_force,
    patience_flag,
)

if TYPE_CHECKING:
    from vieval_plugin.config import Config
    from vieval_plugin.run.prepare import PreparedJudge
    from vieval_plugin.serve.options import ServeOptions
    from vieval_plugin.serve.run import ServerSetup

#: Seconds without any answer of the backbone until it counts as away: trainers wait for 60 to 300.
_PATIENCE = 30.0


class SampleOptions(Options, group=("samples",)):
    """The samples that are judged."""

    kind: str | None = flag(
        "task type of all samples (default: tie for samples with a second image, else "
        "tig)"
    )
    role: list[str] = flag(
        "role of an image sent with the output; may be repeated (default: source)"
    )


class FailureOptions(Options, group=("failures",)):
    """The verdicts that fail."""

    attempts: Count = flag(
        "maximum attempts per question (default: %(default)s)", 3, metavar="N"
    )
    repeats: Count = flag(
        "number of verdicts averaged per reward, for a backbone with a temperature "
        "(default: %(default)s)",
        1,
        metavar="K",
    )
    on_failure: Literal["error", "neutral"] = flag(
        "for a failed sample, return an error, or the mean of its group if a request "
        "is one group (default: %(default)s)",
        "error",
    )
    max_imputed: float = flag(
        "maximum share of failures in a group that are replaced by the group's mean "
        "(default: %(default)s)",
        0.1,
        type=number_between(0, 0.99, float),
        metavar="SHARE",
    )


class CallerOptions(Options, group=("callers",)):
    """Access of callers, and limits of their requests."""

    no_token: bool = flag(
        "allow requests without a token from anyone who can reach --host"
    )
    allow_host: list[str] = flag(
        "additional host name of this server; may be repeated", metavar="NAME"
    )
    max_samples: Count = flag(
        "maximum samples per request (default: %(default)s)", 1024, metavar="N"
    )
    max_body: Count = flag(
        "maximum size of a request in MiB (default: %(default)s)", 256, metavar="MIB"
    )


class ServerOptions(
    SampleOptions, FailureOptions, CallerOptions, SettingOptions, BackboneOptions
):
    """Options of `vieval serve`."""

    reward: list[str] = flag(
        "reward, or weighted sum such as NAME=0.7*JUDGE:SC+0.3*JUDGE; may be repeated",
        required=True,
        metavar="NAME=JUDGE[:ASPECT]",
    )
    host: str = flag(
        "address to listen on (default: %(default)s, this machine only)", "127.0.0.1"
    )
    port: int = flag(
        "port to listen on, 0 for any (default: %(default)s)",
        8200,
        type=number_between(0, 65535),
    )
    patience: float | None = patience_flag(_PATIENCE)


def run(options: ServerOptions) -> int:
    from vieval_plugin.text.errors import VievalError, install_advice

    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise VievalError(
            f"a server requires aiohttp; {install_advice('http')}"
        ) from None
    from vieval_plugin.run.loop import run
    from vieval_plugin.serve.run import serve

    setup = _server_setup(options)
    logging.basicConfig(format="vieval: %(message)s", stream=sys.stderr)
    logging.getLogger("vieval").setLevel(logging.INFO)
    run(serve(setup, lambda port: tell(*_announcement(setup, port))))
    return 0


def _server_setup(options: ServerOptions) -> ServerSetup:
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
        options = replace(options, patience=_PATIENCE)
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
    reserved = {
        "v1",
        "compute",
        "group",
        "unirl",
        "health",
        "live",
        "metrics",
    } & set(names)
    if reserved:
        raise VievalError(
            f"--reward {min(reserved)}: the name is reserved; choose another name"
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise VievalError(f"--reward names must be unique, got {repeated[0]} twice")
    guard = guard_of(
        options.host,
        tuple(options.allow_host),
        os.environ.get(TOKEN_VARIABLE, ""),
        options.no_token,
    )
    return ServerSetup(
        rewards,
        current,
        backbone,
        guard,
        _serve_options(options),
    )


def _serve_options(options: ServerOptions) -> ServeOptions:
    from vieval_plugin.rewards.samples import Conditions
    from vieval_plugin.serve.options import MIB, Bounds, ServeOptions

    return ServeOptions(
        host=options.host,
        port=options.port,
        attempts=options.attempts,
        repeats=options.repeats,
        on_failure=options.on_failure,
        max_imputed=options.max_imputed,
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
    host = setup.options.host
    location = f"[{host}]" if ":" in host else host
    address = f"http://{location}:{port}"
    lines = [
        f"rewards at {address} (open it in a browser to try them); health at "
        f"{address}/health"
    ]
    for reward in setup.rewards:
        lines.append(f"{reward.name} = {reward}, at {address}/{reward.name}/v1/judge")
    if not setup.guard.token and setup.guard.any_address:
        lines.append("NO TOKEN: anyone who can reach this address can use the judges")
    return lines
