"""The host's pipeline for servers (--api-mode), which asks and evaluates datasets side by side."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

from vieval_plugin.hosts.vlmevalkit.dataset import JudgedImages
from vieval_plugin.hosts.vlmevalkit.judging import answers_of


def install(pipeline: Any) -> None:
    """Judge the datasets of ours before the pipeline starts, which then collects; end with 1 where it noted an error.

    It evaluates in other processes, waits for ever for a model that raises, and exits 0.
    """
    begin, run = pipeline.__init__, pipeline.run

    @wraps(begin)
    def __init__(self: Any, dataset_configs: Any, *arguments_after: Any, **options: Any) -> None:
        begin(self, dataset_configs, *arguments_after, **options)
        for dataset_config in self.dataset_configs:
            if isinstance(dataset_config.dataset_obj, JudgedImages) and self.run_infer:
                arguments = {"retry_failed": self.retry_failed, "api_nproc": self.concurrency}
                inference = (
                    dataset_config.model_obj,
                    Path(dataset_config.work_dir),
                    dataset_config.model_name,
                    dataset_config.dataset_obj,
                    arguments,
                )
                dataset_config.model_obj = answers_of(*inference)[0]

    @wraps(run)
    async def run_and_tell(self: Any) -> None:
        await run(self)
        for dataset_config in self.dataset_configs:
            if isinstance(dataset_config.dataset_obj, JudgedImages) and dataset_config.eval_status.name == "Error":
                raise SystemExit(f"vieval: the evaluation of {dataset_config.dataset_name} failed (see above)")

    pipeline.__init__, pipeline.run = __init__, run_and_tell
