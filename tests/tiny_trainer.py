"""TRL's trainer of a tiny language model, on rewards of what its words make."""

import pytest


def rewards_of_training(rewards, prompts, folder, steps, batch=4):
    """What the trainer logged after each of its steps: the mean of the first reward."""
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    transformers = pytest.importorskip("transformers")
    from tests.tiny_scorers import clip_tokenizer

    tokenizer = clip_tokenizer()
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    ends = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    trainer = trl.GRPOTrainer(
        model=transformers.LlamaForCausalLM(
            transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes, **ends)
        ),
        reward_funcs=rewards,
        train_dataset=datasets.Dataset.from_list(
            [{"prompt": prompt} for prompt in prompts]
        ),
        processing_class=tokenizer,
        args=trl.GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=batch,
            num_generations=4,
            max_completion_length=4,
            max_steps=steps,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            bf16=False,
            save_strategy="no",
        ),
    )
    trainer.train()
    logged = f"rewards/{trainer.reward_func_names[0]}/mean"
    return [line[logged] for line in trainer.state.log_history if logged in line]
