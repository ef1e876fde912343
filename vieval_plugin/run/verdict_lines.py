"""Verdicts on a user's own samples, one line each, and what all verdicts of a run have
in common, once beside them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vieval_plugin.images import digest, is_there
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Image, Sample, TableCell, Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import (
    OWN,
    SCHEMA,
    Provenance,
    Totals,
    target_json,
    verdict_document,
)
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.versions import versions_of
from vieval_plugin.text.yaml_json import JsonObject, read_json

if TYPE_CHECKING:
    from vieval_plugin.backends.http.server import Usage
    from vieval_plugin.readers.samples import SampleSource

#: Options of a backbone or scorer that change no answer.
TRANSPORT = frozenset(
    {
        "base_url",
        "api_key_env",
        "num_concurrent",
        "timeout",
        "retries",
        "patience",
        "device",
        "price_input",
        "price_cached_input",
        "price_output",
    }
)
_PACKAGES = (
    "numpy",
    "pillow",
    "torch",
    "transformers",
    "vllm",
)
_ALWAYS = ("scores", "status")


@dataclass(frozen=True)
class Inputs:
    """Samples that were judged."""

    name: str
    #: Their number; None where it is not known.
    total: int | None
    #: Hash that changes when they do.
    fingerprint: str
    #: Command of the run.
    command: str = ""
    #: Totals of the benchmark whose layout they have; None for other samples.
    totals: Totals | None = None


def inputs_of(source: SampleSource, command: str = "") -> Inputs:
    """The samples of a source, as a file of verdicts has them."""
    return Inputs(
        source.name,
        source.total,
        source.fingerprint,
        command,
        source.totals,
    )


def run_file(path: Path) -> Path:
    """The file beside verdicts that has what all verdicts of a run have in common."""
    return path.with_name(f"{path.name}.run.json")


def identity_of(provenance: Provenance) -> JsonObject:
    """Fields of a provenance that tell one run from another, as JSON values: what changes no
    answer is left out.
    """
    fields = asdict(provenance)
    del fields["config_hash"]
    options = {
        name: fields["options"].get(name) for name in ("judges", "backbones", "scorers")
    }
    fields["options"] = _less_transport(options)
    return dict(json.loads(json.dumps(fields)))


def _less_transport(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: _less_transport(nested)
        for name, nested in value.items()
        if name not in TRANSPORT
    }


def run_hash(provenance: Provenance) -> str:
    """Short hash of a run: its judge, its model and all options that affect answers."""
    text = json.dumps(identity_of(provenance), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differing(
    inputs: JsonObject,
    runs: JsonObject,
    inputs_now: Inputs,
    runs_now: Mapping[str, Provenance],
) -> str:
    """The first difference between a run that was begun and this one, such as `with a,
    now b`; empty if they are the same.
    """
    if inputs["fingerprint"] != inputs_now.fingerprint:
        text = f"{inputs['name']} ({inputs['total']} samples)"
        text_now = f"{inputs_now.name} ({inputs_now.total} samples)"
        change = "which has changed since" if text == text_now else f"now {text_now}"
        return f"with {text}, {change}"
    return differing_judges(runs, runs_now)


def differing_judges(runs: JsonObject, runs_now: Mapping[str, Provenance]) -> str:
    """The first difference between the judges of a run that was begun and of this one, as
    `differing`.
    """
    if set(runs) == set(runs_now):
        return ""
    judges = [run["judge"] for run in runs.values()]
    judges_now = [run.judge for run in runs_now.values()]
    if judges != judges_now:
        return f"with --judge {', '.join(judges)}, now {', '.join(judges_now)}"
    identities = map(identity_of, runs_now.values())
    differences = map(differing_runs, runs.values(), identities)
    return next(filter(None, differences), "with other options")


def require_same_judges(path: Path, runs: Mapping[str, Provenance]) -> None:
    """Raise VievalError if a file contains verdicts of other judges, which writing
    would replace.
    """
    if not path.is_file():
        return
    try:
        document = read_json(run_file(path).read_text(encoding="utf-8"))
        earlier = {name: run["provenance"] for name, run in document["runs"].items()}
        difference = differing_judges(earlier, runs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if difference:
        raise VievalError(
            f"{path} contains verdicts from a run {difference}; choose another --out, or "
            "delete the file"
        )


def differing_runs(earlier: JsonObject, current: JsonObject) -> str:
    """The first difference between two runs by `identity_of` or in its form, in words;
    empty if they are the same.
    """
    fields = dict(flat(earlier))
    for name, value in flat(current):
        if fields.get(name) != value:
            text = _option_text(fields.get(name))
            begun_with = f"with {name} {text}" if text else f"without {name}"
            return f"{begun_with}, now {_option_text(value) or f'without {name}'}"
    return ""


def _option_text(value: Any) -> str:
    """A value in words; empty for one that says nothing."""
    return "" if value in (None, "", [], ()) else str(value)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings with the names that lead to them, such as
    `backbones.judge.model`.
    """
    if isinstance(value, Mapping):
        for key, nested in value.items():
            yield from flat(nested, f"{name}.{key}" if name else key)
    else:
        yield name.removeprefix("options."), value


def runs_document(
    inputs: Inputs,
    runs: Mapping[str, Provenance],
    usage: Mapping[str, Usage],
) -> JsonObject:
    """The document of the file beside verdicts: inputs, versions, and of each run its origin and
    what it cost.
    """
    described = {}
    for name, provenance in runs.items():
        described[name] = {"provenance": asdict(provenance)}
        if name in usage:
            described[name]["usage"] = usage[name].json_values()
    return {
        "vieval": SCHEMA,
        "inputs": asdict(inputs),
        "versions": {"python": platform.python_version(), **versions_of(*_PACKAGES)},
        "runs": described,
    }


@contextlib.contextmanager
def write_run_file(path: Path, document: JsonObject) -> Iterator[None]:
    """Write the file that stands beside verdicts, which are written within.

    Until they are, it has the runs of the verdicts that were there before as well: whatever ends
    the process, what is there can be read.
    """
    earlier = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        earlier = dict(read_json(run_file(path).read_text(encoding="utf-8"))["runs"])
    _write_json(run_file(path), {**document, "runs": {**earlier, **document["runs"]}})
    yield
    _write_json(run_file(path), document)


def _write_json(path: Path, document: JsonObject) -> None:
    write_whole(path, [json.dumps(document, indent=1, allow_nan=False), "\n"])


def verdict_line(
    number: int,
    judged: Judged,
    outcome: Outcome,
    provenance: Provenance,
    run: str,
    folder: Path,
) -> str:
    """A verdict as a line of JSON, with the texts that it is about and where the images are.

    Of a benchmark's sample it has the ratings or votes too, in the form that hosts keep.

    Args:
        number: the sample's or contest's, from 0.
        judged: what was judged.
        outcome: its verdict, and the tokens that it took.
        provenance: who judged.
        run: the run's hash.
        folder: of the file that the line is for, where relative paths start.
    """
    # the group of a contest stands with its candidates
    is_grouped = isinstance(judged, Sample) and judged.group != judged.id.uid
    extras = {
        "draw": judged.id.draw,
        "tags": judged.tags,
        "category": getattr(judged, "category", ""),
        "group": judged.group if is_grouped else "",
    }
    tokens = (outcome.input_tokens, outcome.output_tokens)
    document = {
        "vieval": SCHEMA,
        "row": number,
        "uid": judged.id.uid,
        "image_model": judged.id.image_model,
        "kind": judged.kind,
        **{name: value for name, value in extras.items() if value},
        **_compact(verdict_document(outcome.verdict)),
        "judge": provenance.judge,
        "model": provenance.backbone,
        "setting": provenance.setting,
        "run": run,
    }
    if any(tokens):
        document["tokens"] = tokens
    document |= _texts_and_images(judged, folder)
    if judged.id.benchmark != OWN:
        document["target"] = target_json(judged)
    line = json.dumps(document, allow_nan=False)
    if "\\ud" in line:  # perhaps half a character, which no file of texts can hold
        text = json.dumps(document, ensure_ascii=False)
        line = json.dumps(json.loads(text.encode(errors="replace")))
    return line


def _texts_and_images(judged: Judged, folder: Path) -> JsonObject:
    """The texts and images of a sample, or of each candidate of a contest."""
    if isinstance(judged, Sample):
        images = {
            role: image_json(image, folder) for role, image in judged.images.items()
        }
        return {"texts": dict(judged.texts), "images": images}
    candidates = [
        {
            "image_model": candidate.id.image_model,
            "uid": candidate.id.uid,
            "draw": candidate.id.draw,
            **_texts_and_images(candidate, folder),
        }
        for candidate in judged.candidates
    ]
    return {"group": judged.group, "candidates": candidates}


def _compact(verdict: JsonObject) -> JsonObject:
    """A verdict without empty fields, which readers fill in."""
    fields = {
        name: value for name, value in verdict.items() if value or name in _ALWAYS
    }
    return {**fields, "trace": [_compact_step(step) for step in verdict["trace"]]}


def _compact_step(step: JsonObject) -> JsonObject:
    values = {
        name: value for name, value in step.items() if value not in (None, "", [], ())
    }
    if values.get("attempt") == 0:
        del values["attempt"]
    return values


def image_json(image: Image, folder: Path) -> JsonObject:
    """The place of an image, and its SHA-256: its file, with the row and column where that is a
    table; its address.

    A path is relative to `folder` unless it shares no folder with it but the root.
    """
    origin = image.origin
    document: JsonObject = {}
    if isinstance(origin, TableCell):
        document |= {
            "file": _path(origin.file, folder),
            "row": origin.row,
            "column": origin.column,
        }
    # an address that nobody fetched is no path
    elif isinstance(image.source, Path) and (is_there(image) or not origin):
        path = _path(image.source, folder)
        document["file"] = path if is_there(image) else redacted(path)
    if isinstance(origin, str) and origin:
        document["address"] = redacted(origin)
    with contextlib.suppress(
        VievalError
    ):  # then the verdict says that it cannot be read
        document["sha256"] = digest(image)
    return document


def _path(path: Path, folder: Path) -> str:
    absolute = Path(os.path.abspath(path))
    start = Path(os.path.abspath(folder))
    try:
        common = Path(os.path.commonpath([absolute, start]))
    except ValueError:  # on two drives
        return absolute.as_posix()
    if common != Path(common.anchor):
        absolute = Path(os.path.relpath(absolute, start))
    return absolute.as_posix().encode(errors="replace").decode()


def write_verdicts(
    path: Path,
    judged: Sequence[Judged],
    verdicts: Sequence[Verdict],
    provenance: Provenance,
) -> None:
    """Write the verdicts of one run to a file, in the order of what was judged, and what they
    have in common beside it.
    """
    outcomes = list(map(Outcome, verdicts))
    write_runs(path, Inputs("", len(judged), ""), [(judged, outcomes, provenance)])


def write_runs(
    path: Path,
    inputs: Inputs,
    runs: Iterable[tuple[Sequence[Judged], Sequence[Outcome], Provenance]],
) -> None:
    """Write the verdicts of several runs to a file, with the tokens that they took, as
    `write_verdicts` those of one, one run after another.
    """
    by_hash = {
        run_hash(provenance): (judged, outcomes, provenance)
        for judged, outcomes, provenance in runs
    }

    def lines() -> Iterator[str]:
        for run, (judged, outcomes, provenance) in by_hash.items():
            pairs = zip(judged, outcomes, strict=True)
            for number, (sample, outcome) in enumerate(pairs):
                yield verdict_line(
                    number,
                    sample,
                    outcome,
                    provenance,
                    run,
                    path.parent,
                )

    provenances = {run: provenance for run, (*_, provenance) in by_hash.items()}
    with write_run_file(path, runs_document(inputs, provenances, {})):
        write_whole(path, (f"{line}\n" for line in lines()))
