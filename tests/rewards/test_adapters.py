"""Rewards in a trainer's process: loaded and called as each trainer does, equal to `Judge`, and
never a number for a failure.
"""

import io
import pickle
import types

import numpy as np
import PIL.Image
import pytest

from tests.fake_server import FakeServer
from tests.refusals import refusal
from vieval_plugin import Judge, VievalError

torch = pytest.importorskip("torch")

from tests.rewards import trainers  # noqa: E402
from vieval_plugin.rewards import prompt_writer, verl_omni  # noqa: E402
from vieval_plugin.rewards.flow_grpo import judge_reward  # noqa: E402
from vieval_plugin.rewards.prompt_writer import prompt_writer_reward  # noqa: E402

NO_STORE = {"store": {"use": False}}
PIXELS = np.random.RandomState(0).randint(0, 256, (3, 16, 16, 3)).astype(np.uint8)
PROMPTS = ["a red cube", "a blue ball", "a cat"]
TENSOR = torch.tensor(PIXELS).permute(0, 3, 1, 2)
UNREADABLE = {"reply": lambda request: "no score at all", "schema_support": "ignored"}


def at(server):
    return {"model": "fake", "base_url": server.base_url}


@pytest.fixture
def expected(server, store):
    with Judge("viescore", **at(server)) as judge:
        return judge.score(PIXELS, PROMPTS).tolist()


def test_flow_grpo_sums_it_with_its_own(server, expected):
    functions = {
        "judge": judge_reward("viescore", **at(server)),
        "sharp": judge_reward("sharpness"),
    }
    score = trainers.flow_grpo(functions, {"judge": 0.5, "sharp": 0.25})
    for images in (TENSOR.float() / 255, PIXELS):
        details, _ = score(images, np.array(PROMPTS), [{}] * 3)
        assert details["judge"] == expected
        totals = [
            0.5 * one + 0.25 * other
            for one, other in zip(expected, details["sharp"], strict=True)
        ]
        assert details["avg"] == pytest.approx(totals)


def test_flow_grpo_for_edits_has_a_source(server, store):
    edits = [
        {
            "images": {"output": PIXELS[n], "source": PIXELS[0]},
            "texts": {"instruction": PROMPTS[n]},
            "kind": "tie",
        }
        for n in range(3)
    ]
    with Judge("viescore", **at(server)) as judge:
        known = judge(edits).scores().tolist()
    reward = judge_reward("viescore", **at(server))("cuda")
    sources = [PIL.Image.fromarray(PIXELS[0])] * 3
    assert reward(PIXELS, PROMPTS, None, ref_images=sources)[0] == known


def test_a_reward_opens_again_where_it_is_sent():
    reward = judge_reward("sharpness", options=NO_STORE)("cpu")
    found = pickle.loads(pickle.dumps(reward))(PIXELS, PROMPTS)
    assert found == (reward(PIXELS, PROMPTS))


def test_a_failure_is_an_error_and_no_number(store):
    with FakeServer(**UNREADABLE) as server:
        reward = judge_reward("viescore", attempts=1, **at(server))("cpu")
        line = refusal(reward, PIXELS, PROMPTS)
        assert "no reward for 3 of 3 samples: parse_failure" in line


def test_images_that_are_none_are_refused():
    reward = judge_reward("sharpness", options=NO_STORE)("cpu")
    for images in (torch.rand(3, 5, 16, 16), PIXELS[0], PIXELS[:2]):
        with pytest.raises(VievalError):
            reward(images, PROMPTS)
    assert len(reward(torch.rand(3, 3, 16, 16) * 1.01, PROMPTS)[0]) == 3


@pytest.mark.parametrize("shape", ["CHW", "NCHW"])
async def test_verl_omni_awaits_it(shape, server, expected):
    entry = {
        "path": "pkg://vieval_plugin.rewards.verl_omni",
        "name": "compute_score",
        "required": True,
    }
    entry |= {"reward": "viescore", **at(server)}
    image = TENSOR[0] if shape == "CHW" else TENSOR[:1]
    found = await trainers.verl_omni(verl_omni.compute_score, image, PROMPTS[0], entry)
    assert found == expected[0]


async def test_verl_omni_hears_of_failures_where_the_reward_is_required(store):
    with FakeServer(**UNREADABLE) as server:
        entry = {"required": True, "reward": "viescore", "attempts": 1, **at(server)}
        with pytest.raises(
            RuntimeError,
            match="Required sub-reward failed: no reward for 1 of 1 samples",
        ):
            await trainers.verl_omni(
                verl_omni.compute_score, TENSOR[0], PROMPTS[0], entry
            )
        found = await trainers.verl_omni(
            verl_omni.compute_score, TENSOR[0], PROMPTS[0], {**entry, "required": False}
        )
        assert found == 0


async def test_verl_omni_edits(server, store):
    file = io.BytesIO()
    PIL.Image.fromarray(PIXELS[1]).save(file, "PNG")
    for source in (
        {"bytes": file.getvalue(), "path": None},
        PIL.Image.fromarray(PIXELS[1]),
        PIXELS[1],
    ):
        found = await trainers.verl_omni(
            verl_omni.compute_score,
            TENSOR[0],
            PROMPTS[0],
            {"required": True, "reward": "viescore", **at(server)},
            {"source_img": source},
        )
        assert 0 <= found <= 1


def config(server, **more):
    return types.SimpleNamespace(
        judge="viescore",
        device="cpu",
        dtype=None,
        batch_size=2,
        name="r",
        **at(server),
        **more,
    )


def test_flow_factory_finds_its_own_bases(server, expected, monkeypatch):
    bases = trainers.install_flow_factory(monkeypatch)
    batch = {
        "prompt": PROMPTS,
        "image": [PIL.Image.fromarray(one) for one in PIXELS],
        "condition_images": None,
    }
    for name in ("JudgeRewardModel", "JudgeGroupRewardModel"):
        path = f"vieval_plugin.rewards.flow_factory.{name}"
        found = trainers.flow_factory(bases, path, config(server), batch)
        assert found.tolist() == pytest.approx(
            expected, abs=1e-7
        )  # it is a tensor of float32


def test_flow_factory_says_what_its_configuration_lacks(server, monkeypatch):
    bases = trainers.install_flow_factory(monkeypatch)
    path = "vieval_plugin.rewards.flow_factory.JudgeRewardModel"
    assert "the reward has no judge" in refusal(
        trainers.flow_factory,
        bases,
        path,
        types.SimpleNamespace(extra_kwargs={}),
        {"prompt": []},
    )
    extra_kwargs = {"judge": "sharpness", "options": NO_STORE}
    further = types.SimpleNamespace(extra_kwargs=extra_kwargs)
    images = [PIL.Image.fromarray(PIXELS[0])]
    found = trainers.flow_factory(
        bases, path, further, {"prompt": ["x"], "image": images}
    )
    assert found.shape == (1,)


def test_a_failed_member_is_neutral_if_asked(server, store, monkeypatch):
    bases = trainers.install_flow_factory(monkeypatch)
    path = "vieval_plugin.rewards.flow_factory.JudgeGroupRewardModel"
    group = {"prompt": PROMPTS[:1] * 3, "image": list(PIXELS)}
    wins = config(server)
    wins.judge = "pairwise"
    shares = trainers.flow_factory(bases, path, wins, group)
    assert shares.sum().item() == pytest.approx(
        1.5
    )  # each of three contests gives a win in all
    torn = {"prompt": PROMPTS[:1] * 3, "image": [PIXELS[0], PIXELS[1], b"torn"]}
    with pytest.raises(VievalError, match="1 of 3 samples"):
        trainers.flow_factory(bases, path, config(server), torn)
    neutral = trainers.flow_factory(
        bases, path, config(server, on_failure="neutral", max_imputed=0.4), torn
    )
    assert neutral[2].item() == pytest.approx((neutral[0] + neutral[1]).item() / 2)
    with pytest.raises(VievalError, match="more than --max-imputed"):
        trainers.flow_factory(bases, path, config(server, on_failure="neutral"), torn)


def drawn(texts):
    return PIXELS[: len(texts)]


def test_a_writer_of_prompts_is_rewarded(server, expected, store):
    with Judge("viescore", **at(server)) as judge:
        reward = prompt_writer_reward(judge, drawn)
        found = reward(
            prompts=PROMPTS,
            completions=["x", "y", "z"],
            completion_ids=[],
            trainer_state=None,
        )
        assert found == expected
        asked = [
            [{"role": "system", "content": "s"}, {"role": "user", "content": text}]
            for text in PROMPTS
        ]
        written = [[{"role": "assistant", "content": text}] for text in "xyz"]
        assert reward(prompts=asked, completions=written) == expected
        assert reward(["x", "y", "z"], messages=asked, solution=[1, 2, 3]) == expected
        assert reward.__name__ == "judge"
        assert "require prompts or messages" in refusal(reward, ["x"])
        assert "unknown aspect" in refusal(prompt_writer_reward, judge, drawn, "XX")


@pytest.mark.parametrize(
    ("version", "trl"),
    [("1.6.0", True), ("1.16.1", True), ("1.5.9", False), ("0.29", False)],
)
def test_a_failure_is_none_for_some_trl(version, trl, store, monkeypatch):
    monkeypatch.setattr(
        prompt_writer.importlib.metadata, "version", lambda package: version
    )
    with FakeServer(**UNREADABLE) as server, Judge("viescore", **at(server)) as judge:
        reward = prompt_writer_reward(judge, drawn)
        if trl:
            assert reward(prompts=PROMPTS[:1], completions=["x"]) == [None]
        else:
            with pytest.raises(VievalError, match="no reward"):
                reward(prompts=PROMPTS[:1], completions=["x"])
        with pytest.raises(
            VievalError, match="no reward"
        ):  # ms-swift would take None for 0
            reward(["x"], messages=[[{"role": "user", "content": "a cat"}]])


def test_jpeg_is_sent_where_it_is_asked_for(server, store):
    plain, jpeg = (
        judge_reward("viescore", image_format=form, **at(server))("cpu")
        for form in ("png", "jpeg")
    )
    samples = [one.reward.samples(PROMPTS, PIXELS) for one in (plain, jpeg)]
    found = [sample.images["output"].source[:4] for sample in samples[0]]
    assert found == ([b"\x89PNG"] * 3)
    found = [sample.images["output"].source[:2] for sample in samples[1]]
    assert found == ([b"\xff\xd8"] * 3)


def test_options_may_be_a_file(tmp_path):
    (tmp_path / "options.yaml").write_text("store: {use: false}")
    reward = judge_reward("sharpness", options=str(tmp_path / "options.yaml"))("cpu")
    assert reward(PIXELS, PROMPTS) == judge_reward("sharpness", options=NO_STORE)(
        "cpu"
    )(PIXELS, PROMPTS)
