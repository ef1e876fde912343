"""Rewards in a trainer's process, loaded and called as each trainer does."""

import pickle
import sys
import types

import numpy as np
import PIL.Image
import pytest

from tests.fake_server import FakeServer
from tests.pictures import encoded
from tests.refusals import refuses
from tests.work import run_process
from vieval_plugin import Judge, VievalError
from vieval_plugin.images import decode
from vieval_plugin.rewards.in_process import open_reward

torch = pytest.importorskip("torch")

from tests.rewards import trainers  # noqa: E402
from vieval_plugin.rewards import prompt_writer, verl_omni  # noqa: E402
from vieval_plugin.rewards.flow_grpo import judge_reward  # noqa: E402
from vieval_plugin.rewards.prompt_writer import prompt_writer_reward  # noqa: E402

NO_STORE = {"store": {"use": False}}
PIXELS = np.random.RandomState(0).randint(0, 256, (3, 16, 16, 3)).astype(np.uint8)
PROMPTS = ["a red cube", "a blue ball", "a cat"]
FLOATS = torch.tensor(np.random.RandomState(0).rand(2, 3, 20, 20)).float()
TENSOR = torch.tensor(PIXELS).permute(0, 3, 1, 2)
UNREADABLE = {"reply": lambda request: "no score at all", "schema_support": "ignored"}


def at(server):
    return {"model": "fake", "base_url": server.base_url}


@pytest.fixture
def expected(server, store):
    with Judge("viescore", **at(server)) as judge:
        return judge.score(PIXELS, PROMPTS).tolist()


def test_flow_grpo_sums_it_with_its_own(server, expected):
    judged = judge_reward("viescore", **at(server))
    functions = {"judge": judged, "sharp": judge_reward("sharpness")}
    score = trainers.flow_grpo(functions, {"judge": 0.5, "sharp": 0.25})
    details, _ = score(PIXELS, np.array(PROMPTS), [{}] * 3)
    assert details["judge"] == expected
    totals = 0.5 * np.array(expected) + 0.25 * np.array(details["sharp"])
    assert details["avg"] == pytest.approx(totals)


def test_flow_grpo_for_edits_has_a_source(server, store):
    edits = [
        {"images": {"output": one, "source": PIXELS[0]}, "texts": {"instruction": text}}
        for one, text in zip(PIXELS, PROMPTS, strict=True)
    ]
    with Judge("viescore", **at(server)) as judge:
        known = judge([{**edit, "kind": "tie"} for edit in edits]).scores().tolist()
    reward = judge_reward("viescore", **at(server))("cuda")
    sources = [PIL.Image.fromarray(PIXELS[0])] * 3
    assert reward(PIXELS, PROMPTS, None, ref_images=sources)[0] == known


def test_a_reward_opens_again_where_it_is_sent_and_options_may_be_a_file(tmp_path):
    (tmp_path / "options.yaml").write_text("store: {use: false}")
    reward = judge_reward("sharpness", options=NO_STORE)("cpu")
    sent = pickle.loads(pickle.dumps(reward))
    by_file = judge_reward("sharpness", options=str(tmp_path / "options.yaml"))("cpu")
    found = reward(PIXELS, PROMPTS)
    assert sent(PIXELS, PROMPTS) == by_file(PIXELS, PROMPTS) == found


def test_images_that_are_none_are_refused():
    reward = judge_reward("sharpness", options=NO_STORE)("cpu")
    for images in (torch.rand(3, 5, 16, 16), PIXELS[0], PIXELS[:2]):
        with pytest.raises(VievalError):
            reward(images, PROMPTS)


async def test_a_failure_is_0_for_verl_omni_unless_the_reward_is_required(store):
    with FakeServer(**UNREADABLE) as server:
        entry = {"required": False, "reward": "viescore", "attempts": 1, **at(server)}
        judged = (verl_omni.compute_score, TENSOR[0], PROMPTS[0])
        assert await trainers.verl_omni(*judged, entry) == 0
        with pytest.raises(RuntimeError, match="Required sub-reward failed: no reward"):
            await trainers.verl_omni(*judged, {**entry, "required": True})


async def test_verl_omni_edits(server, store):
    picture = PIL.Image.fromarray(PIXELS[1])
    file = {"bytes": encoded(picture), "path": None}
    entry = {"required": True, "reward": "viescore", **at(server)}
    judged = (verl_omni.compute_score, TENSOR[0], PROMPTS[0], entry)
    for source in (file, picture, PIXELS[1]):
        assert 0 <= await trainers.verl_omni(*judged, {"source_img": source}) <= 1


def config(server, judge="viescore", **more):
    about = {"device": "cpu", "dtype": None, "batch_size": 2, "name": "r"}
    return types.SimpleNamespace(judge=judge, **about, **at(server), **more)


@pytest.fixture
def flow_factory(monkeypatch):
    """The rewards of a model of Flow-Factory's."""
    bases = trainers.install_flow_factory(monkeypatch)

    def rewards(name, configuration, batch):
        path = f"vieval_plugin.rewards.flow_factory.{name}"
        return trainers.flow_factory(bases, path, configuration, batch)

    return rewards


def test_flow_factory_says_what_its_configuration_lacks(flow_factory):
    given = (types.SimpleNamespace(extra_kwargs={}), {"prompt": []})
    refuses("the reward has no judge", flow_factory, "JudgeRewardModel", *given)


def test_a_failed_member_is_neutral_if_asked(server, store, flow_factory):
    def rewards(images, **fields):
        group = {"prompt": PROMPTS[:1] * 3, "image": images}
        return flow_factory("JudgeGroupRewardModel", config(server, **fields), group)

    # each of three contests gives a win in all
    assert rewards(list(PIXELS), judge="pairwise").sum().item() == pytest.approx(1.5)
    torn = [PIXELS[0], PIXELS[1], b"torn"]
    with pytest.raises(VievalError, match="1 of 3 samples"):
        rewards(torn)
    neutral = rewards(torn, on_failure="neutral", max_imputed=0.4)
    assert neutral[2].item() == pytest.approx((neutral[0] + neutral[1]).item() / 2)
    with pytest.raises(VievalError, match="more than --max-imputed"):
        rewards(torn, on_failure="neutral")


def drawn(texts):
    return PIXELS[: len(texts)]


def test_a_writer_of_prompts_is_rewarded(server, expected, store):
    with Judge("viescore", **at(server)) as judge:
        reward = prompt_writer_reward(judge, drawn)
        trl = {"completion_ids": [], "trainer_state": None}
        assert reward(prompts=PROMPTS, completions=list("xyz"), **trl) == expected
        system = {"role": "system", "content": "s"}
        asked = [[system, {"role": "user", "content": text}] for text in PROMPTS]
        written = [[{"role": "assistant", "content": text}] for text in "xyz"]
        assert reward(prompts=asked, completions=written) == expected
        assert reward(list("xyz"), messages=asked, solution=[1, 2, 3]) == expected
        assert reward.__name__ == "judge"
        refuses("require prompts or messages", reward, ["x"])
        refuses("unknown aspect", prompt_writer_reward, judge, drawn, "XX")


VERSIONS = [("1.6.0", True), ("1.16.1", True), ("1.5.9", False), ("0.29", False)]


@pytest.mark.parametrize(("version", "trl"), VERSIONS)
def test_a_failure_is_none_for_some_trl(version, trl, store, monkeypatch):
    installed = lambda package: version
    monkeypatch.setattr(prompt_writer.importlib.metadata, "version", installed)
    with FakeServer(**UNREADABLE) as server, Judge("viescore", **at(server)) as judge:
        reward = prompt_writer_reward(judge, drawn)
        given = {"prompts": PROMPTS[:1], "completions": ["x"]}
        if trl:
            assert reward(**given) == [None]
        else:
            refuses("no reward", reward, **given)
        # ms-swift would take None for 0
        messages = [[{"role": "user", "content": "a cat"}]]
        refuses("no reward", reward, ["x"], messages=messages)


@pytest.mark.parametrize(
    ("form", "magic"), [("png", b"\x89PNG"), ("jpeg", b"\xff\xd8")]
)
def test_jpeg_is_sent_where_it_is_asked_for(server, store, form, magic):
    opened = judge_reward("viescore", image_format=form, **at(server))("cpu")
    for sample in opened.reward.samples(PROMPTS, PIXELS):
        assert sample.images["output"].source.startswith(magic)


async def test_one_picture_is_meant():
    entry = {"required": True, "reward": "sharpness"}
    with pytest.raises(RuntimeError, match="one image, got 2"):
        await trainers.verl_omni(verl_omni.compute_score, FLOATS, "x", entry)
    reward = judge_reward("sharpness", options=NO_STORE)("cpu")
    refuses("one image, got 2", reward, torch.stack([FLOATS, FLOATS]), ["x"] * 2)
    refuses("number, 3, height, width", reward, FLOATS[0], ["x"] * 3)


def test_pixels_are_what_was_generated():
    reward = open_reward("sharpness", options=NO_STORE)
    clipped = FLOATS.clone()
    clipped[0].view(-1)[:10] = 1.45
    [first, second] = reward.samples(["x", "y"], clipped)
    expected = (clipped.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    for sample, pixels in zip((first, second), expected, strict=True):
        assert np.array_equal(np.asarray(decode(sample.images["output"])), pixels)


def test_clipped_pictures_are_counted_in_one_line_at_the_end():
    script = """
import numpy as np
from vieval_plugin.rewards.in_process import pictures
for number in range(5):
    batch = np.full((2, 20, 20, 3), 0.5)
    batch[0, 0, 0] = 1.3 if number < 3 else 1.01
    pictures(batch)
"""
    [line] = run_process([sys.executable, "-c", script], check=True).stderr.splitlines()
    assert "3 of 10 images" in line
