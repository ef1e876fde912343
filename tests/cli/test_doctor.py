"""`vieval doctor`: what is wrong is found, and no key shown."""

import importlib.metadata
import importlib.util
import json
import re
from pathlib import Path

import pytest

from vieval_plugin.cli import main
from vieval_plugin.cli.doctor import checks

KEY = "sk-distinctive-0123456789"


def checks_of(out):
    """The lines on checks, which stand behind those on what can be done."""
    lines = out.splitlines()
    return lines[next(number for number, line in enumerate(lines) if re.search(r"\bchecks\b", line)) :]


def test_doctor_finds_what_is_wrong_and_shows_no_key(tmp_path, server, monkeypatch, vieval):
    options = tmp_path / "v.yaml"
    backbones = {
        "judge": {"model": "fake", "base_url": server.base_url, "api_key_env": "GOOD_KEY"},
        "other": {"model": "fake", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "GOOD_KEY"},
        "nokey": {"model": "fake", "base_url": server.base_url, "api_key_env": "ABSENT_KEY"},
    }
    options.write_text(json.dumps({"backbones": backbones, "store": {"path": "r.sqlite"}, "data": str(tmp_path)}))
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    monkeypatch.setenv("GOOD_KEY", KEY)
    monkeypatch.setattr("vieval_plugin.cli.doctor.checks._SECONDS", 4.0)
    lines = checks_of(vieval("doctor", code=1).out)
    assert re.fullmatch(r"2 of \d+ checks found a problem", lines[0])
    assert [line.split()[0] for line in lines[2:5]] == ["PROBLEM", "PROBLEM", "ok"]
    assert any(
        re.match(r"ok .*backbone judge: .*answers; schemas enforced; log-probabilities given", line) for line in lines
    )
    assert any(re.match(r"PROBLEM .*backbone other: .*answered nothing", line) for line in lines)
    assert any(re.match(r"PROBLEM .*backbone nokey: .*set the environment variable ABSENT_KEY", line) for line in lines)
    assert any(re.match(r"ok .*data: .*not there: .*imagenhub,.*`vieval prepare NAME`", line) for line in lines)
    assert KEY not in "\n".join(lines)


def test_an_installation_without_data_and_servers_is_healthy(vieval):
    out = vieval("doctor").out
    answer, empty, *lines = checks_of(out)
    assert (answer, empty) == (f"no problem in {len(lines)} checks", "")
    assert all(line.startswith("ok ") for line in lines)
    assert max(map(len, out.splitlines())) < 600


def parts(out):
    """What can be done, and what the rest needs, of what doctor printed."""
    can, needs = re.fullmatch(
        r"You can:\n((?:  [^\n]*\n)+)\n(?:You need:\n((?:  [^\n]*\n)+)\n)?.*", out, re.DOTALL
    ).groups()
    return can.splitlines(), (needs or "").splitlines()


def test_what_is_ready_comes_first_and_then_what_the_rest_needs(vieval, server):
    can, needs = parts(vieval("doctor").out)
    assert "  try everything without a server with vieval_small, a toy that knows its own drawings only" in can
    assert any(re.match(r"  score images with ssim, .*sharpness$", line) for line in can)
    [of_model] = [line for line in needs if "viescore" in line]
    assert re.match(
        r"  to score images with .*viescore.*: a model on a server \(--model NAME --base-url URL\); see http", of_model
    )
    assert any("benchmarks, such as" in line and "`vieval prepare NAME`" in line for line in needs)
    can, needs = parts(vieval("doctor", "--base-url", server.base_url).out)
    assert any(re.match(r"  score images with .*viescore.* by fake$", line) for line in can)
    assert not any("viescore" in line for line in needs)


def test_what_a_light_installation_lacks_is_named_with_how_to_install_it(monkeypatch, vieval):
    find_spec, import_module = importlib.util.find_spec, importlib.import_module

    def imported(name, *rest):
        if name.startswith("skimage"):
            raise ImportError(name)
        return import_module(name, *rest)

    absent = ("torch", "aiohttp", "lmms_eval")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in absent else find_spec(name, *rest)
    )
    monkeypatch.setattr(importlib, "import_module", imported)
    can, needs = parts(vieval("doctor").out)
    assert "  score images with histogram" in can
    for job, extra in (
        ("score images with ssim, psnr", "metrics"),
        ("score images with clip_score", "scorers"),
        ("run tasks in lmms-eval on vieval_demo", "lmms-eval"),
        ("serve judges as rewards", "http"),
    ):
        assert any(
            line.startswith(f"  to {job}") and f'pip install ".[{extra}]" in a checkout' in line for line in needs
        ), job


def test_a_server_is_asked_by_its_address_alone(server, monkeypatch, vieval):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    out = vieval("doctor", "--base-url", server.base_url).out
    assert f"ok       backbone judge: fake at {server.base_url}: answers; schemas enforced" in out
    assert KEY not in out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--base-url", "http://127.0.0.1:9/v1"],
            "http://127.0.0.1:9/v1 does not list its models (a file cannot be had",
        ),
        (["--base-url", "{url}"], "does not list its models (a file cannot be had: HTTP 404"),
        (["--base-url", "nowhere"], "base_url: pass an address such as http://127.0.0.1:8000/v1"),
        (["--model", "fake"], "--model goes with --base-url"),
    ],
)
def test_an_address_without_a_model_is_one_line(server, monkeypatch, vieval, given, told):
    monkeypatch.setattr("vieval_plugin.cli.doctor.checks._SECONDS", 2.0)
    [line] = vieval("doctor", *(one.replace("{url}", server.url) for one in given), code=1).err.splitlines()
    assert told in line


def test_several_models_are_named(monkeypatch, vieval):
    async def two(url):
        return json.dumps({"data": [{"id": "a"}, {"id": "b"}]}).encode()

    monkeypatch.setattr("vieval_plugin.cli.doctor.checks._model_list", two)
    printed = vieval("doctor", "--base-url", "http://127.0.0.1:9/v1", code=1).err
    assert "lists 2 models (a, b); name one with --model" in printed


@pytest.mark.parametrize(
    ("installed", "told"),
    [
        (
            {"numpy": "1.25.9", "lmms-eval": "0.7.2"},
            ["numpy 1.25.9 (tested from 1.26)", "lmms-eval 0.7.2 (tested from"],
        ),
        (
            {"torch": "2.1.2+cu121", "pillow": "10.2"},
            ["pillow 10.2 (tested from 10.3)", "torch 2.1.2+cu121 (tested from 2.2)"],
        ),
        ({"numpy": "1.26.0", "torch": "10.0rc1", "transformers": "4.56.0.dev0", "aiohttp": "3.10"}, []),
    ],
)
def test_doctor_names_packages_that_are_older_than_tested(monkeypatch, capsys, installed, told):
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: installed.get(name) or version(name))
    main(["doctor"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "older than tested" in line]
    assert len(lines) == bool(told)
    for one in told:
        assert one in lines[0]
    assert not told or f"pip install --upgrade {' '.join(one.split()[0] for one in told)}" in lines[0]


def test_every_lower_bound_of_setup_is_one_that_doctor_reads():
    setup = (Path(__file__).parents[2] / "setup.cfg").read_text()
    bounds = re.findall(r"^\s+([A-Za-z0-9_-]+>=[0-9.]+)$", setup, re.MULTILINE)
    assert len(bounds) > 20
    for bound in bounds:
        for required in (
            bound,
            f'{bound}; extra == "tools"',
            bound.replace(">=", "<99,>="),
        ):  # as an installed package has it
            assert ">=".join(checks._LOWER_BOUND_PATTERN.match(required).groups()) == bound
