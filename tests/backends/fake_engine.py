"""vLLM as far as the backend in this process uses it."""

import sys
import types
from types import SimpleNamespace


class LLM:
    """Says of each conversation the last words that it was asked."""

    llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: None))

    def __init__(self, **_): ...

    def chat(self, conversations, parameters, **_):
        made = []
        for conversation in conversations:
            words = str(conversation[-1]["content"])[-60:]
            about = {"text": words, "token_ids": [1], "finish_reason": "length"}
            made.append(SimpleNamespace(outputs=[SimpleNamespace(**about)]))
            made[-1].prompt_token_ids = [1]
        return made


def put_in(monkeypatch):
    parameters = lambda **given: given
    parts = {
        "vllm": {"LLM": LLM, "SamplingParams": parameters},
        "vllm.sampling_params": {"StructuredOutputsParams": parameters},
    }
    for name, held in parts.items():
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        vars(sys.modules[name]).update(held)
