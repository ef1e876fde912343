#!/bin/bash
# Make an environment with VLMEvalKit: ms-vlmeval in it, and nvidia-vlmeval in a folder of its own for PYTHONPATH.
# usage: tests/vlmevalkit/environment.sh ENV
set -euo pipefail
(($# == 1)) || { sed -n '2,/^set/{/^#/s/^# //p}' "$0" >&2; exit 2; }
env=$1
[[ -x $env/bin/python ]] || "${PYTHON:-python3.11}" -m venv "$env"
install() { "$env/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

# First of all, or what comes next brings the build for GPUs. pip finds one for CPUs on the PyTorch project's own index where it is not
# configured to look elsewhere: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
install torch==2.13.0
install --no-deps torchvision==0.28.0
# What was read and tried are these versions; several of what they need are built from source.
install ms-vlmeval==0.0.20
install --no-deps --target "$env/nvidia" nvidia-vlmeval==26.3
install --editable ".[http,metrics,scorers,text]" "hypothesis>=6.100" "jsonschema>=4.18" "pytest>=8" "pytest-asyncio>=0.24"
# The published torchvision has no C++ operators for the CPU build of torch, and declaring a fake for a missing operator fails on
# import ("operator torchvision::nms does not exist"). Declare the fakes only where the operators are; no model here needs one.
sed -i -E 's/^@torch\.library\.register_fake\("(torchvision::\w+)"\)$/@(torch.library.register_fake("\1") if torchvision.extension._has_ops() else (lambda f: f))/' \
  "$env"/lib/python3*/site-packages/torchvision/_meta_registrations.py
