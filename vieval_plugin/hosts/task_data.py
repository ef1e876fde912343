"""Data of a task for any host: its samples, and what is to be known of its judge to report on
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import data_root
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.config import Config
from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.spec import JudgeSpec
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.text.errors import VievalError, system_reason


def samples_of(task: Task, options: Config) -> Sequence[Judged]:
    """The samples or contests of a task, less those that the options leave out; VievalError says
    what is missing.
    """
    benchmark = benchmark_registry.benchmark(task.benchmark)
    samples = benchmark.load(data_root(benchmark, options), task.part)
    if options.uids is None:
        return samples
    return select_subset(samples, options.uids, benchmark.folders)


def select_subset(
    samples: Iterable[Judged], path: Path, folders: Mapping[str, str]
) -> list[Judged]:
    """The samples that a file names: one uid a line, or CIGEval's published split.

    A text file has one uid a line, wanted of every image model. A JSON file maps parts (or names of
    theirs that `folders` leads from, see `Benchmark`) to image models, and those to ``{"sample":
    [uid, ...]}`` or a list of uids.

    Raises:
        VievalError: the file cannot be read or is of neither form, or names none of the samples.
    """
    all_samples = list(samples)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(
            f"{path}: cannot read the list of uids ({system_reason(error)}); set the "
            "option `uids` to a readable file"
        ) from None
    if path.suffix == ".json":
        split = _read_split(path, text, folders)
        selected = [
            sample
            for sample in all_samples
            if sample.id.uid in split.get((sample.id.part, sample.id.image_model), ())
        ]
        count = sum(map(len, split.values()))
    else:
        uids = {line.strip() for line in text.splitlines() if line.strip()}
        selected = [sample for sample in all_samples if sample.id.uid in uids]
        count = len(uids)
    if all_samples and not selected:
        first = all_samples[0].id
        raise VievalError(
            f"{path}: its {count} uids do not match any sample of "
            f"{first.benchmark}/{first.part}; use uids of this part"
        )
    return selected


def _read_split(
    path: Path, text: str, folders: Mapping[str, str]
) -> dict[tuple[str, str], set[str]]:
    """Uids by part and image model."""
    try:
        uids = {}
        for folder, models in json.loads(text).items():
            part = folders.get(folder, folder)
            for model, entry in models.items():
                uids[part, model] = _uids(entry)
        return uids
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise VievalError(
            f'{path}: the split must map parts to image models, and these to {{"sample": [uid, ...]}}'
        ) from None


def _uids(entry: Any) -> set[str]:
    uids = entry["sample"] if isinstance(entry, dict) else entry
    if not isinstance(uids, list):
        raise TypeError
    return {str(uid) for uid in uids}


def rating_of(judge: JudgeSpec, options: Config, repeats: int = 1) -> Rating:
    """Describe a judge, and the number of verdicts on each sample, for a benchmark's report."""
    judge = options.judges.narrowed(judge)
    grades = judge.grades(options.judges.options_of(judge))
    return Rating(
        judge.aspects,
        judge.dimensions,
        grades,
        judge.intervals,
        repeats,
        judge.against_all,
    )


def document_of(judged: Judged) -> str:
    """Sample or contest as JSON for a host's logs: uid, generator, task type and texts.

    It is one text, as lmms-eval takes each text that ends like the name of an image for one.
    """
    return json.dumps(_shown_fields(judged), ensure_ascii=False)


def text_of(judged: Judged) -> str:
    """Sample or contest in lines for a reader of a host's logs."""
    return "\n".join(f"{name}: {text}" for name, text in _shown_fields(judged).items())


def image_files(judged: Judged) -> dict[str, str]:
    """Paths of the images by role, the output first; without those that lie in a table or an
    archive, so that no log repeats a data set.

    Those of a contest's candidates are `output 1`, `output 2` and so on.
    """
    first, *others = candidates_of(judged)
    images = {
        "output": first.images.get("output"),
        **first.images,
    }
    if others:
        del images["output"]
        outputs = (sample.images.get("output") for sample in (first, *others))
        numbered = enumerate(outputs, start=1)
        images = {f"output {n}": image for n, image in numbered} | images
    return {
        role: str(image.source.absolute())
        for role, image in images.items()
        if image and isinstance(image.source, Path) and not image.origin
    }


def _shown_fields(judged: Judged) -> dict[str, str]:
    candidates = candidates_of(judged)
    generators = [sample.id.image_model for sample in candidates]
    return {
        **candidates[0].texts,
        "generator": " / ".join(filter(None, generators)),
        "uid": judged.id.uid,
        "task type": judged.kind,
    }
