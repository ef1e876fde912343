"""docs/rewards.md: its commands start servers, its configuration is what adapters read, and its bounds are the code's."""

import ast
import inspect
import re
import shlex
from pathlib import Path

import yaml

from vieval_plugin.cli import _parser
from vieval_plugin.cli.serve import _PATIENCE, _served
from vieval_plugin.rewards import verl_omni
from vieval_plugin.serve.app import _PROTOCOLS
from vieval_plugin.serve.health import FRESH
from vieval_plugin.serve.options import Bounds, ServeOptions
from vieval_plugin.serve.protocols import pickled

TEXT = (Path(__file__).parents[2] / "docs" / "rewards.md").read_text(encoding="utf-8")
CLIENTS = {"flow_factory": 60, "flow_factory_group": 120, "unirl": 300, "pickle": 120, "judge_v1": 300}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_every_command_starts_a_server(monkeypatch):
    monkeypatch.setenv("VIEVAL_SERVE_TOKEN", "0123456789abcdef")
    commands = [
        line[line.index("vieval serve") :]
        for line in TEXT.splitlines()
        if re.match(r"(VIEVAL_\S+ )?vieval serve ", line)
    ]
    assert len(commands) >= 3
    for command in commands:
        assert _served(_parser("serve").parse_args(shlex.split(command)[1:])).rewards
    flags = set(re.findall(r"`(--[a-z-]+)", TEXT))
    known = {
        option for action in _parser("serve")._actions[2].choices["serve"]._actions for option in action.option_strings
    }
    assert flags - known <= {"--external"}


def test_every_reward_of_the_table_is_one():
    rewards = re.findall(r"^\| `(r=[^`]+)` \|", TEXT, re.MULTILINE)
    assert len(rewards) == 4
    flags = [part for reward in rewards for part in ("--reward", reward.replace("r=", f"r{rewards.index(reward)}=", 1))]
    model = ["--model", "NAME", "--base-url", "http://127.0.0.1:8000/v1"]
    assert len(_served(_parser("serve").parse_args(["serve", *flags, *model])).rewards) == 4


def test_configurations_are_read_by_their_adapters():
    verl, *flow_factory, unirl = map(yaml.safe_load, blocks("yaml"))
    entry = verl["reward"]["reward_functions"]["judge"]
    assert entry["required"] is True
    assert set(entry) - {"path", "name", "weight", "required"} <= set(
        inspect.signature(verl_omni.compute_score).parameters
    )
    assert [one["rewards"][0]["name"] for one in flow_factory] == ["judge", "judge"]
    assert unirl["required_rewards"] == ["r"]
    for block in blocks("python"):
        ast.parse(block)


def test_each_protocol_answers_before_its_client_gives_up():
    protocols = {protocol.name: protocol.deadline for protocol in (*_PROTOCOLS, pickled.PROTOCOL)}
    assert set(protocols) == set(CLIENTS)
    assert all(deadline < CLIENTS[name] for name, deadline in protocols.items())
    assert min(protocols.values()) > _PATIENCE


def test_numbers_of_the_page_are_those_of_the_code():
    options, bounds = ServeOptions(), Bounds()
    assert f"`--patience` seconds ({_PATIENCE:g} here)" in TEXT
    assert f"in the last {FRESH:g} seconds" in TEXT
    assert f"above {options.store_replies:,} are deleted" in TEXT
    assert f"up to `--attempts` times in all ({options.attempts})" in TEXT
    assert f"`--max-imputed` ({options.max_imputed:g})" in TEXT
    assert f"for {bounds.drain_seconds:g} seconds at most" in TEXT
