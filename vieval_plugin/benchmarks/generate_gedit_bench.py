"""GEdit-Bench as lmms-eval has it: edits by instruction in eleven groups, in English and Chinese."""

from __future__ import annotations

from vieval_plugin.benchmarks.loading.lmms_eval_task import HostTask, of_lmms_eval

BENCHMARK = of_lmms_eval(
    HostTask(
        folder="gedit_bench",
        kind="tie",
        text="instruction",
        image="source",
        uid="key",
        category="task_type",
        tags=("instruction_language", "Intersection_exist"),
        source="Liu et al., Step1X-Edit (2025); the hub's stepfun-ai/GEdit-Bench, read by lmms-eval's task",
        licence="see the hub's card of stepfun-ai/GEdit-Bench",
    )
)
