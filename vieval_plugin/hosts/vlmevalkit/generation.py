"""The second role of a judge in this host: its image generators make images from prompts, and a judge scores them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pandas
from vlmeval.dataset.image_base import ImageBaseDataset
from vlmeval.smp import load

from vieval_plugin import config
from vieval_plugin.benchmarks import generate_prompts
from vieval_plugin.config import Backbone
from vieval_plugin.hosts.host_models import output_folders
from vieval_plugin.hosts.shutdown import one_line, tell
from vieval_plugin.hosts.vlmevalkit import judging
from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import OWN
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.run.evaluate import evaluate, provenance_of
from vieval_plugin.run.generated import (
    GeneratedImage,
    condition_images,
    generated_images,
    prompt_of,
    read_answer,
    trusted_folders,
)
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.verdict_lines import write_verdicts
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.untrusted import path_of

_SUFFIX = "/chat/completions"
_KINDS = {"VIEval_T2I": "tig", "VIEval_TIE": "tie"}
#: Below the working folder, and where the host's Bagel saves unless it is told otherwise.
_BAGEL = Path("output_image")


class GeneratedImages(ImageBaseDataset):  # type: ignore[misc]
    """Prompts from a file, as the option `generate.prompts` names one; `conditions` has each by its uid."""

    # its generators take from this word what they are to do
    TYPE = "VIEval_GEN"
    MODALITY = "IMAGE"
    force_use_dataset_prompt = True
    output_folders: tuple[Path, ...] = ()

    @one_line
    def __init__(
        self, dataset: str = "VIEval_T2I", prompts: str = "", judge: str = "viescore", skip_noimg: bool = True
    ) -> None:
        self.prompts, self.judge = path_of(prompts), judge
        super().__init__(dataset, skip_noimg)

    @classmethod
    def supported_datasets(cls) -> list[str]:
        return ["VIEval_T2I"]

    def load_data(self, dataset: str) -> Any:
        samples = generate_prompts.load(self.prompts, generate_prompts.PART)
        if foreign := [sample for sample in samples if sample.kind != _KINDS[dataset]]:
            problem = f"prompt {foreign[0].id.uid} is of kind {foreign[0].kind}, and {dataset} has {_KINDS[dataset]}"
            raise VievalError(f"{self.prompts}: {problem}")
        self.conditions = {s.id.uid: replace(s, id=SampleId(OWN, s.kind, "", s.id.uid)) for s in samples}
        questions = [prompt_of(sample) for sample in samples]
        return pandas.DataFrame({"index": range(len(samples)), "uid": list(self.conditions), "question": questions})

    def dump_image(self, line: Any) -> list[str]:
        """The files of the images that a generator is shown."""
        return [str(image.source) for image in condition_images(self.conditions[str(line["uid"])])]

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """The images of the conditions, and the words."""
        row = self.data.iloc[line] if isinstance(line, int) else line
        image_parts = [{"type": "image", "value": path} for path in self.dump_image(row)]
        return [*image_parts, {"type": "text", "value": row["question"]}]

    @one_line
    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        """Judge the images whose files the predictions name; the rest are counted as `no_image`, the first with its reason."""
        sheet = Path(eval_file)
        model = sheet.stem.removesuffix(f"_{self.dataset_name}")
        table = load(str(sheet))
        trusted = trusted_folders(config.current(), sheet.parent, _BAGEL, *self.output_folders)
        images = [self._image_of_row(row, number, model, trusted) for number, (_, row) in enumerate(table.iterrows())]
        samples = [image.sample for image in images if not image.reason]
        if missing := [f"{image.sample.id}: {image.reason}" for image in images if image.reason]:
            say(f"vieval: no_image {len(missing)}, the first: {missing[0]}", file=sys.stderr)
        options, backbone, progress = config.current(), _backbone(judge_kwargs), Progress()
        prepared = prepare(self.judge, None, options, backbone)
        if prepared.spec.pack and backbone is None and JUDGE not in options.backbones:
            raise VievalError(
                "no model judges these images: pass --judge NAME --judge-base-url URL (nvidia-vlmeval: --judge NAME "
                "--judge-args '{\"api_base\": URL}'), or set backbones.judge in VIEVAL_CONFIG's file"
            )
        judged = partial(evaluate, samples, judge=self.judge, backbone=backbone, progress=progress, bar=True)
        with ThreadPoolExecutor(1) as pool:  # the host may have an event loop running in this thread
            verdicts = pool.submit(judged).result()
        tell(progress)
        judging.failed.append(progress.failed_calls)
        path = sheet.with_name(f"{sheet.stem}_verdicts_{self.dataset_name}.jsonl")
        write_verdicts(path, samples, verdicts, provenance_of(prepared, options, backbone))
        row = _numbers(prepared.spec.aspects, verdicts) | {"no_image": len(missing)}
        numbers = pandas.DataFrame([{"split": "Overall", **row}])
        write_whole(sheet.with_name(f"{sheet.stem}_acc.csv"), [numbers.to_csv(index=False)], "--work-dir")
        return numbers

    def _image_of_row(self, row: Mapping[str, Any], number: int, model: str, trusted: Sequence[Path]) -> GeneratedImage:
        conditions, answer = self.conditions[str(row["uid"])], read_answer(str(row["prediction"]), number)
        [image] = generated_images(conditions, model, [answer], 1, trusted)
        return image

    @classmethod
    def report_primary_metric(cls, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: value for name, value in (metrics or {}).items() if name.endswith("_mean")}

    @classmethod
    def report_judge_err(cls, prediction_file: Any, **_: Any) -> dict[str, None]:
        """Failed calls of the judge are columns of the table."""
        return {"failed": None, "total": None}


class EditedImages(GeneratedImages):
    """The same of edits: each prompt is an instruction, and comes with the image to be edited."""

    TYPE = "VIEval_EDIT"

    @classmethod
    def supported_datasets(cls) -> list[str]:
        return ["VIEval_TIE"]


def noting_output_folders(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's `infer_data_job`, after which a dataset of prompts knows where the model that it used saves images."""

    @wraps(original)
    def infer_data_job(model: Any, work_dir: Any, model_name: str, dataset: Any, **host_arguments: Any) -> Any:
        used = original(model, work_dir=work_dir, model_name=model_name, dataset=dataset, **host_arguments)
        if isinstance(dataset, GeneratedImages):
            # where all is predicted already, some distributions return nothing
            dataset.output_folders = output_folders(used) or output_folders(model)
        return used

    return infer_data_job


def _backbone(judge_arguments: Mapping[str, Any]) -> Backbone | None:
    """The model that the host's own arguments for judges name, None where they name none."""
    if not judge_arguments.get("model") or not judge_arguments.get("api_base"):
        return None
    address = str(judge_arguments["api_base"]).removesuffix(_SUFFIX)
    return Backbone(model=str(judge_arguments["model"]), base_url=(address,))


def _numbers(aspects: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    statuses = Counter(str(verdict.status) for verdict in verdicts)
    numbers: dict[str, Any] = {}
    for aspect in aspects:
        scores = [verdict.scores[aspect] for verdict in verdicts if aspect in verdict.scores]
        numbers |= {f"{aspect}_mean": sum(scores) / len(scores) if scores else None, f"{aspect}_count": len(scores)}
    return {**numbers, **{f"status_{status}": statuses[str(status)] for status in Status}}
