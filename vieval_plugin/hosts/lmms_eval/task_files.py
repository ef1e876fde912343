"""Writes lmms-eval's YAML files from the table of tasks: ours into task_configs/, those of other packages into the cache.

`python -m vieval_plugin.hosts.lmms_eval.task_files` (`make tasks`) writes ours anew.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import platformdirs

import vieval_plugin.task_configs
from vieval_plugin import registry, tasks
from vieval_plugin.data.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.files import write_whole
from vieval_plugin.tasks import Task, TaskGroup

OURS = Path(vieval_plugin.task_configs.__path__[0])
SHARED = ("judged.inc", "generated.inc", "group.inc")


def files(found: Sequence[Task], grouped: Sequence[TaskGroup]) -> dict[str, str]:
    """The text of each file by its path below the folder: a folder a benchmark, with a README."""
    texts = {f"{task.benchmark}/{task.name}.yaml": _task(task) for task in found}
    texts |= {f"{group.benchmark}/{group.name}.yaml": _group(group) for group in grouped}
    for name in dict.fromkeys(task.benchmark for task in found):
        own = [task for task in found if task.benchmark == name]
        texts[f"{name}/README.md"] = _readme(registry.benchmark(name), own)
    return texts


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write all files, and remove other YAML files that are there."""
    for path in folder.glob("*/*.yaml"):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        write_whole(folder / name, [text])


def of_other_packages() -> Path | None:
    """A folder with the tasks that other packages bring, named by its content; None where they bring none."""
    rows = tasks.brought()
    if not rows:
        return None
    texts = files(tasks.tasks(rows), tasks.groups(rows)) | {name: (OURS / name).read_text() for name in SHARED}
    name = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]
    folder = Path(platformdirs.user_cache_dir("vieval")) / "tasks" / name
    try:
        write(folder, texts)
    except VievalError:  # a cache that cannot be written to is no reason not to run
        folder = Path(tempfile.mkdtemp(prefix="vieval-tasks-"))
        write(folder, texts)
    return folder


def _task(task: Task) -> str:
    # a part such as 527 must stay a text
    part = json.dumps(task.part) if task.part.isdigit() else task.part
    about = {"version": "1", "benchmark": task.benchmark, "part": part, "judge": task.judge}
    about |= {"setting": task.setting} if task.setting else {}
    about |= {"subset": "true"} if task.subset else {}
    listed = ", ".join(f"{key}: {value}" for key, value in about.items())
    include = "generated" if registry.benchmark(task.benchmark).generates else "judged"
    return f"include: ../{include}.inc\ntask: {task.name}\nmetadata: {{{listed}}}\n"


def _group(group: TaskGroup) -> str:
    include = "include: ../group.inc\n" if group.averaged else ""
    return f"{include}group: {group.name}\ntask:\n" + "".join(f"  - {member}\n" for member in group.members)


def _readme(benchmark: Benchmark, own: Sequence[Task]) -> str:
    terms = "may" if benchmark.trainable else "may not"
    lines = [
        f"# {benchmark.name}",
        "",
        *([benchmark.note, ""] if benchmark.note else []),
        f"- Source: {benchmark.source}",
        f"- Licence: {benchmark.licence}",
        f"- Its data {terms} train a model.",
        f"- Parts: {', '.join(benchmark.parts)}",
        "",
        "| judge | setting | tasks |",
        "|---|---|---|",
    ]
    settings = dict.fromkeys((task.judge, "subset" if task.subset else task.setting) for task in own)
    for judge, setting in settings:
        same = [t for t in own if (t.judge, "subset" if t.subset else t.setting) == (judge, setting)]
        named = _braced([t.name for t in same], [t.part for t in same])
        lines.append(f"| {judge} | {setting or 'plain'} | {named} |")
    lines += ["", "The files in this folder are written by `make tasks` from `vieval_plugin/tasks.py`."]
    return "\n".join(lines) + "\n"


def _braced(names: Sequence[str], parts: Sequence[str]) -> str:
    """Names that end in their parts, as a shell would have them."""
    if len(names) == 1:
        return f"`{names[0]}`"
    stem = names[0].removesuffix(parts[0])
    return f"`{stem}{{{','.join(parts)}}}`"


if __name__ == "__main__":
    write(OURS, files(tasks.tasks(tasks.TABLE), tasks.groups(tasks.TABLE)))
    print(f"wrote {OURS}")
