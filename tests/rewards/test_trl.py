"""TRL trains a tiny language model on the reward of the images that its words make, and leaves out what has no reward."""

import hashlib
import json
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from tests.fake_server import FakeServer, _parts, score_count
from tests.pictures import plain
from tests.rewards.page import blocks_of

pytestmark = pytest.mark.slow


def drawn(texts):
    """An image for each text, of a colour that follows from it."""
    return [plain(tuple(hashlib.sha256(text.encode()).digest()[:3])) for text in texts]


def half_unreadable(request):
    """Scores that follow from the image; for about half of the images no score at all."""
    parts = [part for turn in request["messages"] for part in _parts(turn["content"])]
    digest = hashlib.sha256(
        json.dumps([part.get("image_url") for part in parts if "image_url" in part]).encode()
    ).digest()
    text = " ".join(part.get("text", "") for part in parts)
    score = json.dumps({"score": [digest[1] % 11] * score_count(text), "reasoning": "fine"})
    return score if digest[0] % 2 else "no score at all"


def test_trl_trains_on_the_images_that_were_judged(tmp_path, store):
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    transformers = pytest.importorskip("transformers")
    from tests.tiny_scorers import clip_tokenizer

    tokenizer = clip_tokenizer()
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes, **ends))
    with (
        FakeServer(reply=half_unreadable, schema_support="ignored") as server,
        ExitStack() as opened,
    ):
        page = {"pipeline": lambda texts, output_type: SimpleNamespace(images=drawn(texts))}
        exec(blocks_of("TRL and ms-swift", server.base_url)[0], page)
        opened.enter_context(page["judge"])
        reward = page["reward"]
        answers = []

        def noted(**columns):
            answers.extend(reward(**columns))
            return answers[-len(columns["completions"]) :]

        trainer = trl.GRPOTrainer(
            model=model,
            reward_funcs=[reward, noted],
            train_dataset=datasets.Dataset.from_list([{"prompt": "a red cube"}, {"prompt": "a blue ball"}] * 4),
            processing_class=tokenizer,
            args=trl.GRPOConfig(
                output_dir=str(tmp_path / "out"),
                per_device_train_batch_size=8,
                num_generations=4,
                max_completion_length=4,
                max_steps=3,
                logging_steps=1,
                report_to=[],
                use_cpu=True,
                bf16=False,
                save_strategy="no",
            ),
        )
        trainer.train()
    means = [line["rewards/judge/mean"] for line in trainer.state.log_history if "rewards/judge/mean" in line]
    assert len(means) == 3
    assert None in answers
    assert any(answer is not None for answer in answers)
    assert all(0 <= mean <= 1 for mean in means)
