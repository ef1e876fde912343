"""llama.cpp's server with a tiny random model: bytes as tokens, two layers, half a megabyte.

As a script in an environment with `gguf` and `xllamacpp`, whose last word leaves its vision out::

    python tests/real/llama_server.py FOLDER PORT [blind]
"""

import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import xllamacpp
from gguf import GGUFWriter, TokenType

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
SIGHT, SIDE, PATCH = 32, 56, 14
MERGES = ["Y e", "Ye s", "N o"]
MERGED = ["Ye", "Yes", "No"]
CONTROL = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
#: Tokens that are likely to be first. Texts have no end, as a quote is not among them.
LIKELY = ("Yes", "No")
UNLIKELY = -3.0
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}{{- part['text'] -}}{%- endfor -%}
{%- endif -%}
{{- '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""
RANDOM = np.random.default_rng(0)


def bytes_as_signs():
    """The sign of each byte in a vocabulary like GPT-2's."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def weights(*shape, scale=0.3):
    return (RANDOM.normal(size=shape) * scale).astype(np.float32)


@contextmanager
def file_of(path, architecture):
    """A file whose fields and tensors are written at the end."""
    writer = GGUFWriter(path, architecture)
    yield writer
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(path):
    """A Llama whose first channel is the same for all tokens, which makes some of them likely."""
    tokens = [*bytes_as_signs(), *MERGED, *CONTROL]
    normal = len(tokens) - len(CONTROL)
    kinds = [TokenType.NORMAL] * normal + [TokenType.CONTROL] * len(CONTROL)
    end = tokens.index(CONTROL[0])
    embedding = weights(len(tokens), WIDTH, scale=1)
    embedding[:, 0] = 6
    output = weights(len(tokens), WIDTH, scale=0.12)
    output[:, 0] = 0
    output[[*range(32), *range(127, 256)], 0] = UNLIKELY
    output[[tokens.index(token) for token in LIKELY], 0] = 1
    with file_of(path, "llama") as file:
        file.add_context_length(8192)
        file.add_embedding_length(WIDTH)
        file.add_block_count(LAYERS)
        file.add_feed_forward_length(INNER)
        file.add_head_count(HEADS)
        file.add_head_count_kv(HEADS)
        file.add_layer_norm_rms_eps(1e-5)
        file.add_rope_dimension_count(WIDTH // HEADS)
        file.add_tokenizer_model("gpt2")
        file.add_tokenizer_pre("gpt-2")
        file.add_token_list(tokens)
        file.add_token_types(kinds)
        file.add_token_merges(MERGES)
        file.add_bos_token_id(end)
        file.add_eos_token_id(end)
        file.add_add_bos_token(False)
        file.add_chat_template(CHAT_TEMPLATE)
        file.add_tensor("token_embd.weight", embedding)
        file.add_tensor("output.weight", output)
        file.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
        for layer in range(LAYERS):
            for name in ("attn_norm", "ffn_norm"):
                ones = np.ones(WIDTH, np.float32)
                file.add_tensor(f"blk.{layer}.{name}.weight", ones)
            for name in ("attn_q", "attn_k", "attn_v"):
                file.add_tensor(f"blk.{layer}.{name}.weight", weights(WIDTH, WIDTH))
            for name in ("ffn_gate", "ffn_up"):
                file.add_tensor(f"blk.{layer}.{name}.weight", weights(INNER, WIDTH))
            for name, width in (("attn_output", WIDTH), ("ffn_down", INNER)):
                added = weights(WIDTH, width, scale=0.1)
                added[0] = 0
                file.add_tensor(f"blk.{layer}.{name}.weight", added)


def write_vision(path):
    """A CLIP with LLaVA's projector."""
    patches = (SIDE // PATCH) ** 2
    with file_of(path, "clip") as file:
        file.add_bool("clip.has_vision_encoder", True)
        file.add_bool("clip.has_llava_projector", True)
        file.add_bool("clip.use_gelu", True)
        file.add_string("clip.projector_type", "mlp")
        file.add_vision_image_size(SIDE)
        file.add_vision_patch_size(PATCH)
        file.add_vision_embedding_length(SIGHT)
        file.add_vision_feed_forward_length(2 * SIGHT)
        file.add_vision_projection_dim(WIDTH)
        file.add_vision_head_count(2)
        file.add_vision_attention_layernorm_eps(1e-5)
        file.add_vision_block_count(LAYERS)
        file.add_vision_image_mean([0.5] * 3)
        file.add_vision_image_std([0.5] * 3)

        def add(name, *shape):
            file.add_tensor(f"{name}.weight", weights(*shape))
            file.add_tensor(f"{name}.bias", np.zeros(shape[0], np.float32))

        def add_norm(name):
            file.add_tensor(f"{name}.weight", np.ones(SIGHT, np.float32))
            file.add_tensor(f"{name}.bias", np.zeros(SIGHT, np.float32))

        file.add_tensor("v.class_embd", weights(SIGHT))
        file.add_tensor("v.patch_embd.weight", weights(SIGHT, 3, PATCH, PATCH))
        file.add_tensor("v.position_embd.weight", weights(patches + 1, SIGHT))
        add_norm("v.pre_ln")
        add_norm("v.post_ln")
        for layer in range(LAYERS):
            for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
                add(f"v.blk.{layer}.{name}", SIGHT, SIGHT)
            add_norm(f"v.blk.{layer}.ln1")
            add_norm(f"v.blk.{layer}.ln2")
            add(f"v.blk.{layer}.ffn_up", 2 * SIGHT, SIGHT)
            add(f"v.blk.{layer}.ffn_down", SIGHT, 2 * SIGHT)
        add("mm.0", WIDTH, SIGHT)
        add("mm.2", WIDTH, WIDTH)


def main(folder, port, *blind):
    """Write the model, and serve it until this process ends."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(folder) / "tiny.gguf")
    write_model(settings.model.path)
    if not blind:
        settings.mmproj.path = str(Path(folder) / "vision.gguf")
        write_vision(settings.mmproj.path)
    settings.hostnames = ["127.0.0.1"]
    settings.port = int(port)
    settings.n_ctx = 16_384
    settings.n_parallel = 2
    settings.use_jinja = True
    settings.cpuparams.n_threads = 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
