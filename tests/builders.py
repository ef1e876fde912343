"""Builders of test data: each makes one valid thing, with defaults that a test replaces by keyword.

    a_sample(image_model="borealis", prompt="a red cube")
    a_verdict_file("v.jsonl", aurora=[0.8, 0.7, None], borealis=[0.6, Status.REFUSAL, 0.5])

A score of None is a reply that could not be parsed; a `Status` is a failure of that kind.
"""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import split
from typing import Any

import numpy as np

from tests.stored_results import result, write_lines, write_results
from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Choice, Sample, SampleId, Status, Verdict
from vieval_plugin.records import Provenance, Record, unjudged
from vieval_plugin.run.verdict_lines import write_verdicts

ASPECTS = ("SC", "PQ", "O")
LABEL_COLUMNS = tuple(split("benchmark part uid generator draw rater aspect value"))
Score = float | Status | None


def a_provenance(
    judge: str = "viescore",
    model: str = "judge-7b",
    aspects: Sequence[str] = ASPECTS,
    **fields: Any,
) -> Provenance:
    """The provenance of verdicts by VIEScore with a backbone."""
    default = {"settings": ("0shot",), "pack": "viescore/v1", "pack_hash": "abc"}
    described = {**default, **fields}
    return Provenance(judge, aspects=tuple(aspects), backbone=model, **described)


def a_sample(
    uid: str = "p0",
    image_model: str = "aurora",
    *,
    kind: str = "tig",
    benchmark: str = "own",
    draw: int = 0,
    prompt: str | None = None,
    images: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Sample:
    """A sample of an image model; `fields` are those of `Sample`, as `ratings` and `tags`."""
    texts = fields.pop("texts", {} if prompt is None else {"prompt": prompt})
    identity = SampleId(benchmark, kind, image_model, uid, draw)
    return Sample(identity, images or {}, texts, **fields)


def a_verdict(
    score: Score | Mapping[str, float] | Verdict = 0.5,
    aspects: Sequence[str] = ASPECTS,
    **fields: Any,
) -> Verdict:
    """A verdict with one score for all aspects, with scores by aspect, or a failure."""
    if isinstance(score, Verdict):
        return score
    if score is None:
        score = Status.PARSE_FAILURE
    if isinstance(score, Status):
        return unjudged(score, "as the test asks")
    if not isinstance(score, Mapping):
        score = dict.fromkeys(aspects, float(score))
    return Verdict(dict(score), Status.OK, **fields)


def a_contest(
    uid: str = "p0",
    first: str = "aurora",
    second: str = "borealis",
    *,
    kind: str = "tig",
    benchmark: str = "own",
    votes: Votes | None = None,
    **fields: Any,
) -> Contest:
    """A contest of two image models under one prompt; `fields` are those of both samples."""
    own = {"kind": kind, "benchmark": benchmark, **fields}
    candidates = tuple(a_sample(uid, model, **own) for model in (first, second))
    identity = SampleId(benchmark, kind, "", f"{uid}-{first}-{second}")
    return Contest(identity, candidates, votes or Votes("four_way"), group=uid)


def a_vote(vote: str | Status = "first") -> Verdict:
    """A verdict on a contest: the same vote in both orders, or a failure."""
    if isinstance(vote, Status):
        return unjudged(vote, "as the test asks")
    choice = Choice(votes={"forward": vote, "reverse": vote})
    return Verdict({}, Status.OK, choice=choice)


def a_record(
    sample: Sample | None = None,
    verdict: Verdict | None = None,
    source: Provenance | None = None,
    **fields: Any,
) -> Record:
    """A record of a verdict on a sample, of the sample's own kind, tags, group and ratings."""
    sample = sample or a_sample()
    own = {name: getattr(sample, name) for name in ("kind", "tags", "group", "ratings")}
    judged = (sample.id, verdict or a_verdict(), source or a_provenance())
    return Record(*judged, **{**own, **fields})


def some_scores(
    count: int = 60, mean: float = 0.6, *, noise: float = 0.08, seed: int = 0
) -> list[float]:
    """Scores of one image model from 0 to 1: prompts differ alike for all models, noise by seed."""
    difficulty = 0.15 * np.sin(np.arange(count))
    errors = np.random.default_rng([7, seed]).normal(0, noise, count)
    return np.clip(mean + difficulty + errors, 0, 1).round(6).tolist()


def a_verdict_file(
    path: Path | str = "v.jsonl",
    generators: Mapping[str, Sequence[Score | Mapping[str, float]]] | None = None,
    *,
    source: Provenance | None = None,
    fields: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    **scores: Sequence[Score | Mapping[str, float]],
) -> Path:
    """The output of `vieval score`; `fields` are of all prompts, or a list with those of each."""
    source = source or a_provenance()
    samples, verdicts = [], []
    for model, values in {**(generators or {}), **scores}.items():
        for number, value in enumerate(values):
            own = fields[number] if isinstance(fields, Sequence) else fields or {}
            described = {"prompt": f"prompt {number}, take {number}", **own}
            samples.append(a_sample(f"p{number:03}", model, **described))
            verdicts.append(a_verdict(value, source.aspects))
    write_verdicts(Path(path), samples, verdicts, source)
    return Path(path)


def a_contest_file(
    path: Path | str = "v.jsonl",
    votes: Sequence[str | Status] = ("first",) * 30,
    *,
    source: Provenance | None = None,
    **fields: Any,
) -> Path:
    """What `vieval score` writes of contests of two image models, one vote a prompt."""
    default = a_provenance("pairwise", aspects=(), settings=(), pack="pairwise/v1")
    contests = [a_contest(f"p{number:03}", **fields) for number in range(len(votes))]
    verdicts = [a_vote(vote) for vote in votes]
    write_verdicts(Path(path), contests, verdicts, source or default)
    return Path(path)


def a_results_folder(
    folder: Path | str,
    judged: Iterable[tuple[Sample | Contest, Verdict]],
    source: Provenance | None = None,
    name: str = "1_samples_task.jsonl",
) -> Path:
    """The samples file that lmms-eval leaves, in a folder of its own."""
    provenance = source or a_provenance()
    rows = [result(item, verdict, provenance) for item, verdict in judged]
    return write_results(Path(folder), rows, name)


def right(number: int, people: float) -> float:
    """A score near what people say."""
    return 0.9 * people + number % 3 / 40


def poor(number: int, people: float) -> float:
    """A score that has little to do with what people say."""
    return 0.2 * people + number * 37 % 80 / 100


def a_rated_folder(
    folder: Path | str,
    score: Callable[[int, float], float | None] = right,
    *,
    source: Provenance | None = None,
    benchmark: str = "vieval_demo",
    name: str = "1_samples_task.jsonl",
) -> Path:
    """A judge's results on 40 instructions, two outputs each; a `score` of None is a refusal."""
    rng = np.random.default_rng(3)
    provenance = source or a_provenance(model=Path(folder).name, aspects=("SC",))
    rows = []
    for number in range(80):
        raters = tuple(map(float, rng.choice([0.0, 0.5, 1.0], 3)))
        names = (f"u{number // 2}", f"editor {number % 2}")
        own = {"benchmark": benchmark, "ratings": dict.fromkeys(("SC", "O"), raters)}
        sample = a_sample(*names, kind="tie", **own)
        value = score(number, float(np.mean(raters)))
        value = Status.REFUSAL if value is None else value
        rows.append((sample, a_verdict(value, provenance.aspects)))
    return a_results_folder(folder, rows, provenance, name)


def a_label_file(
    path: Path | str = "labels.csv", labels: Iterable[Mapping[str, Any]] = ()
) -> Path:
    """Labels of people, by default on SC of aurora's image of prompt 0."""
    default = {"benchmark": "own", "part": "tig", "uid": "p000"}
    default |= {"generator": "aurora", "rater": "ann", "aspect": "SC"}
    return a_table(path, [{**default, **label} for label in labels], LABEL_COLUMNS)


def a_sample_row(
    uid: str, output: str, prompt: str = "x", kind: str = "tig", **fields: Any
) -> dict[str, Any]:
    """A row of a samples file: an image with its prompt."""
    images, texts = {"output": output}, {"prompt": prompt}
    return {"uid": uid, "kind": kind, "images": images, "texts": texts, **fields}


def a_table(
    path: Path | str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()
) -> Path:
    """A table in the format that the name ends in: .csv, .tsv, .jsonl, .json or .parquet."""
    path, listed = Path(path), [dict(row) for row in rows]
    names = list(columns) or list(dict.fromkeys(name for row in listed for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".jsonl":
            write_lines(path, listed)
        case ".json":
            path.write_text(json.dumps(listed), encoding="utf-8")
        case ".parquet":
            from pyarrow import Table, parquet

            parquet.write_table(Table.from_pylist(listed), path)
        case _:
            sign = "\t" if path.suffix == ".tsv" else ","
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, names, delimiter=sign, restval="")
                writer.writeheader()
                writer.writerows(listed)
    return path


def a_server(**settings: Any) -> Any:
    """A fake OpenAI-compatible server with `tests.fake_server.Settings`, for `with`."""
    from tests.fake_server import FakeServer  # which needs aiohttp

    return FakeServer(**settings)


def an_image_file(
    path: Path | str = "image.png",
    colour: str = "red",
    size: tuple[int, int] = (32, 24),
) -> Path:
    """A picture of one colour in the format that the name ends in."""
    from tests.pictures import plain

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    form = {".jpg": "JPEG", ".webp": "WEBP"}.get(path.suffix, "PNG")
    path.write_bytes(plain(colour, size, form))
    return path


def a_tar(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    """A tar of members in this order, compressed if its name ends in gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path
