"""ImgEdit-Bench as lmms-eval has it: edits by instruction in nine types."""

from __future__ import annotations

from vieval_plugin.benchmarks.loading.lmms_eval_task import HostTask, of_lmms_eval

BENCHMARK = of_lmms_eval(
    HostTask(
        folder="imgedit",
        kind="tie",
        text="instruction",
        image="source",
        uid="key",
        category="edit_type",
        tags=(),
        source="Ye et al., ImgEdit (2025); the hub's kcz358/imgedit, read by lmms-eval's task",
        licence="see the hub's card of kcz358/imgedit",
    )
)
