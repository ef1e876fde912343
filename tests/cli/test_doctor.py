"""`vieval doctor`: what is wrong is found, and no key shown."""

import importlib.util
import json
import re

import pytest

from tests.fake_server import FakeServer, Fault

KEY = "sk-distinctive-0123456789"


def parts(out):
    """The answer with its problems, what can be done, what the rest needs, and the checks."""
    blocks = {"You can:": [], "You need:": []}
    answer, *rest = [block.splitlines() for block in out.split("\n\n")]
    for heading, *lines in rest[:-1]:
        blocks[heading] = lines
    return answer, *blocks.values(), rest[-1]


def test_an_installation_without_data_and_servers_is_healthy(vieval):
    out = vieval("doctor").out
    answer, _, _, lines = parts(out)
    assert answer == [f"no problems found in {len(lines)} checks"]
    assert all(line.startswith("ok ") for line in lines)
    assert max(map(len, out.splitlines())) < 600


def has(lines, pattern):
    return any(re.match(pattern, line) for line in lines)


def test_what_is_ready_and_what_the_rest_needs(vieval, server):
    _, can, needs, _ = parts(vieval("doctor").out)
    assert has(can, r"  score images with ssim, .*sharpness$")
    [of_model] = [line for line in needs if "viescore" in line]
    needed = r"a model on a server \(--model NAME --base-url URL\); see http"
    assert re.match(rf"  to score images with .*viescore.*: {needed}", of_model)
    assert has(needs, r".*benchmarks, such as.*`vieval prepare NAME`")
    _, can, needs, _ = parts(vieval("doctor", "--base-url", server.base_url).out)
    assert has(can, r"  score images with .*viescore.* by fake$")
    assert not has(needs, ".*viescore")


def test_a_judge_that_cannot_begin_is_not_offered(vieval, server, tmp_path):
    options = tmp_path / "vieval.yaml"
    options.write_text("judges: {viescore: {pack: nowhere}}")
    flags = ("--config", options, "--base-url", server.base_url)
    _, can, needs, _ = parts(vieval("doctor", *flags).out)
    assert not has(can, ".*(hpsv3|edit_reward|viescore)")
    assert has(needs, ".*viescore by fake: nowhere: not a prompt pack")
    for name in ("hpsv3", "edit_reward"):
        [line] = [line for line in needs if name in line]
        assert "torch" in line or "its training prompt is not included" in line


LACKING = {
    "score images with ssim, psnr": "metrics",
    "score images with clip_score": "scorers",
    "run lmms-eval tasks on vieval_demo": "lmms-eval",
    "serve judges as rewards": "http",
}


def test_what_a_light_installation_lacks_is_named(monkeypatch, vieval):
    find_spec, import_module = importlib.util.find_spec, importlib.import_module

    def imported(name, *rest):
        if name.startswith("skimage"):
            raise ImportError(name)
        return import_module(name, *rest)

    absent = ("torch", "aiohttp", "lmms_eval")
    hidden = lambda name, *rest: None if name in absent else find_spec(name, *rest)
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    monkeypatch.setattr(importlib, "import_module", imported)
    monkeypatch.setenv("PATH", "")  # no nvidia-smi
    out = vieval("doctor").out
    assert re.search("^ok .*no GPU: set PIP_EXTRA_INDEX_URL=https://", out, re.M)
    _, can, needs, _ = parts(out)
    assert "  score images with histogram" in can
    for job, extra in LACKING.items():
        [line] = [line for line in needs if line.startswith(f"  to {job}")]
        assert f'pip install ".[{extra}]" in a checkout' in line


def test_a_model_with_braces_in_its_name_is_named(vieval):
    with FakeServer(model="fake{0}") as server:
        _, can, _, _ = parts(vieval("doctor", "--base-url", server.base_url).out)
    assert any(line.endswith(" by fake{0}") for line in can)


def without_probabilities(number, body):
    return Fault("400") if body.get("logprobs") else None


BLIND = {"sees": False, "reply": lambda body: "red"}
LESS = [
    ({"faults": without_probabilities}, "vqascore", "a server that returns log-proba"),
    (BLIND, "viescore", "a model that sees images"),
]


@pytest.mark.parametrize(("settings", "judge", "wanted"), LESS)
def test_a_judge_is_offered_only_if_its_server_will_do(vieval, settings, judge, wanted):
    code = int(settings is BLIND)
    with FakeServer(**settings) as server:
        printed = vieval("doctor", "--base-url", server.base_url, code=code)
    answer, can, needs, _ = parts(printed.out)
    assert answer[0].startswith("1 of " if code else "no problems")
    assert judge not in "".join(can)
    [line] = [line for line in needs if judge in line]
    assert f": {wanted}" in line


def test_a_server_is_asked_by_its_address_alone(server, monkeypatch, vieval):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    out = vieval("doctor", "--base-url", server.base_url).out
    answers = f"fake at {server.base_url}: answers; schemas enforced"
    assert f"ok       backbone judge: {answers}" in out
    assert KEY not in out


def test_several_models_are_named(server, monkeypatch, vieval):
    async def two(self, url, most):
        return json.dumps({"data": [{"id": "a"}, {"id": "b"}]}).encode()

    monkeypatch.setattr("vieval_plugin.backends.http.server.Server.fetch", two)
    printed = vieval("doctor", "--base-url", server.base_url, code=1).err
    assert "lists 2 models (a, b); pass one as --model" in printed
