"""TRL's trainer of a tiny language model, on rewards of what its words make."""

import pytest


def rewards_of_training(rewards, prompts, folder, steps, batch=4):
    """What the trainer logged after each of its steps: the mean of the first reward."""
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    transformers = pytest.importorskip("transformers")
    from tests.tiny_scorers import clip_tokenizer

    tokenizer = clip_tokenizer()
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    sizes = {"hidden_size": 16, "intermediate_size": 32}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {
        name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id")
    }
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes)
    rows = [{"prompt": prompt} for prompt in prompts]
    about = {"per_device_train_batch_size": batch, "num_generations": 4}
    about |= {"max_completion_length": 4, "max_steps": steps, "logging_steps": 1}
    about |= {"report_to": [], "use_cpu": True, "bf16": False, "save_strategy": "no"}
    trainer = trl.GRPOTrainer(
        model=transformers.LlamaForCausalLM(config),
        reward_funcs=rewards,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
        args=trl.GRPOConfig(output_dir=str(folder), **about),
    )
    trainer.train()
    logged = f"rewards/{trainer.reward_func_names[0]}/mean"
    return [line[logged] for line in trainer.state.log_history if logged in line]
