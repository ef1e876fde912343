#!/bin/bash
# VIEval beside a real vLLM and on a GPU: one page of Markdown, in steps of at most ten minutes, forty in all.
# usage: bench/gpu_day.sh [STEP ...]     all steps where none is named: weights server orders engine transformers adiee metrics objects ray
# A step whose part of the page is there is not run again (remove OUT/SIZE/STEP.md for that), so an interrupted day goes on.
# environment:
#   OUT          folder with one for each size, of weights and of the page gpu_day.md (default: out/gpu_day)
#   SIZE         7b (default: random weights in the shape of Qwen2.5-VL-7B, a GPU of 40 GB, 32 GB on disk), or tiny, for a CPU
#   PYTHON       Python with VIEval and all its extras (default: .venv/bin/python, of `make test`)
#   VLLM_PYTHON  Python with vLLM and VIEval's extra http (default: .venv-vllm/bin/python, of `make test-vllm`)
set -uo pipefail
cd "$(dirname "$0")/.."
size=${SIZE:-7b} python=${PYTHON:-.venv/bin/python}
out=${OUT:-out/gpu_day}/$size
export VLLM_PYTHON=${VLLM_PYTHON:-.venv-vllm/bin/python}
export VLLM_LOGGING_STREAM=ext://sys.stderr # what a step prints is the page
export VLLM_SERVER_DEV_MODE=1 # its prefix cache can be emptied between two runs
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 PYTHONPATH=$PWD:$PWD/bench:$PWD/tests
[[ $size == 7b ]] || export VLLM_CPU_KVCACHE_SPACE=1 TORCH_COMPILE_DISABLE=1
steps=(weights server orders engine transformers adiee metrics objects ray)
mkdir -p "$out"
failed=0 seconds=2400 step_process=
trap '[[ -z $step_process ]] || kill -- "-$step_process" 2> /dev/null' EXIT
trap 'exit 130' INT TERM HUP

write_page() {
  printf '# VIEval beside vLLM, weights of size %s\n\n' "$size"
  for part in "${steps[@]}"; do
    printf '## %s\n\n' "$part"
    if ! cat "$out/$part.md" 2> /dev/null; then
      cat "$out/$part.part" 2> /dev/null # what a step measured before it was ended
      echo "Not measured to its end."
    fi
    echo
  done
}

for step in "${@:-${steps[@]}}"; do
  [[ -e $out/$step.md ]] && continue
  echo "== $step (log: $out/$step.log)"
  interpreter=$python
  [[ $step == engine ]] && interpreter=$VLLM_PYTHON
  start=$SECONDS
  left=$((seconds - SECONDS))
  if ((left < 30)); then
    echo "== no time is left for $step; run it again: bench/gpu_day.sh $step"
    failed=1
    continue
  fi
  # a session of its own, so that all that a step started ends with it
  setsid --wait timeout --kill-after=20 $((left < 600 ? left : 600)) "$interpreter" bench/gpu_day.py "$step" "$out" --size "$size" > "$out/$step.part" 2> "$out/$step.log" &
  step_process=$!
  if wait "$step_process"; then
    printf '\n%s s.\n' $((SECONDS - start)) >> "$out/$step.part"
    mv "$out/$step.part" "$out/$step.md"
  else
    echo "== $step failed with exit code $? after $((SECONDS - start)) s; run it again: bench/gpu_day.sh $step"
    tail -n 5 "$out/$step.log"
    failed=1
  fi
  step_process=
  write_page > "$out/gpu_day.md"
done
echo "== $out/gpu_day.md"
exit $failed
