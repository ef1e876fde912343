"""Contests as JSON objects: candidates and people's votes.

`{"id": ..., "texts": {name: text}, "images": {role: file}, "candidates": [...], "vote": ...,
"annotators": [...], "group": ..., "tags": [...]}`, where `texts` and `images` are the conditions
that all candidates share. A candidate is `{"image_model": ..., "uid": ..., "images": {role:
file}}`, or has `video` in place of the images; files lie below the folder of the rows. Only `id`
and `candidates` must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from vieval_plugin.judges.contests import Contest, Votes, fault
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.readers.rated_models import numbered_roles
from vieval_plugin.readers.rows import UNNAMED, Row, numbered, tag_list
from vieval_plugin.readers.tables import are_texts
from vieval_plugin.readers.video_frames import SUFFIXES
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import is_encodable

#: The file of a part's contests.
CONTESTS = "contests.jsonl"

# in bytes; of a path the folder before it takes some
_LONGEST_NAME, _LONGEST_PATH = 255, 3000


@dataclass(frozen=True)
class ContestRows:
    """Description of what the contests of a part have in common."""

    benchmark: str
    part: str
    #: Kind of the candidates.
    kind: str
    #: Scheme of the votes.
    scheme: str
    #: Number of frames that stand for a video.
    frames: int = 4


def read_contests(
    rows: Iterable[Row],
    folder: Path,
    common: ContestRows,
) -> list[Contest]:
    """The contests of some rows, in their order.

    A candidate that is in several contests, under one image model and uid, is the same object in
    each. One of which no image is named is kept without it: what needs to see it will say so.

    Args:
        rows: in the form that is described above.
        folder: where the files lie that they name; none is opened.
        common: what holds for all of them.

    Raises:
        VievalError: in one line with file and row, for a row that is malformed, repeats an id, or
            is no contest (see `judges.contests.fault`), for one output that is said to be two, and
            for two videos whose frames would lie in one folder.
    """
    reading = _Reading(folder, common)
    return [reading.contest(row) for row in rows]


def frames_folder(
    folder: Path,
    video: str,
    count: int,
) -> Path:
    """Folder of the frames of a video, `count` of them."""
    return folder / f"frames{count}" / Path(video).stem


@dataclass
class _Reading:
    """Cache of the rows read so far, so that they are shared."""

    #: Folder of the files.
    folder: Path
    #: Description of what the contests have in common.
    common: ContestRows
    #: Candidates by their ids.
    candidates: dict[SampleId, Sample] = field(default_factory=dict)
    #: Images by their files' names.
    images: dict[str, Image] = field(default_factory=dict)
    #: Videos by the folder of their frames.
    videos: dict[Path, str] = field(default_factory=dict)
    #: Ids of contests.
    ids: set[str] = field(default_factory=set)

    def contest(self, row: Row) -> Contest:
        if not is_encodable(row.cells):  # it can be written nowhere
            raise VievalError(
                f"{row.where}: a text contains a lone surrogate, which is not valid "
                "Unicode; correct the file"
            )
        uid = row.uid("id")
        if uid in self.ids:
            raise VievalError(f"{row.where}: duplicate id {uid}; correct the file")
        self.ids.add(uid)
        texts = _value(row, "texts", {})
        if not isinstance(texts, dict) or not are_texts([*texts.values()]):
            raise VievalError(
                f"{row.where}: `texts` must map names to strings; correct the file"
            )
        shared = self._images_of(row)
        group = _text(row, "group", uid)
        objects = _candidate_objects(row)
        candidates = []
        for number, cells in enumerate(objects, start=1):
            candidate_row = Row(f"{row.where}, candidate {number}", cells)
            unnamed = f"{uid}#{number}"
            candidate = self._candidate(
                candidate_row,
                unnamed,
                texts,
                shared,
                group,
            )
            candidates.append(candidate)
        identity = SampleId(self.common.benchmark, self.common.part, "", uid)
        votes = _votes(row, self.common.scheme)
        contest = Contest(
            identity,
            tuple(candidates),
            votes,
            group,
            _tags(row),
        )
        if problem := fault(contest):
            raise VievalError(f"{row.where}: {problem}; correct the file")
        return contest

    def _candidate(
        self,
        row: Row,
        unnamed: str,
        texts: Mapping[str, str],
        shared: Mapping[str, Image],
        group: str,
    ) -> Sample:
        model = _text(row, "image_model", UNNAMED)
        uid = _text(row, "uid", unnamed)
        if _has_value(row, "video"):
            images = {**shared, **self._frames(row)}
        else:
            images = {**shared, **self._images_of(row)}
        sample_id = SampleId(self.common.benchmark, self.common.part, model, uid)
        sample = Sample(
            sample_id,
            images,
            texts,
            kind=self.common.kind,
            group=group,
        )
        candidate = self.candidates.setdefault(sample_id, sample)
        if (candidate.images, candidate.texts) != (images, texts):
            raise VievalError(
                f"{row.where}: uid {uid} of {model} has a different output or "
                "different conditions in an earlier row; correct the file"
            )
        return candidate

    def _images_of(self, row: Row) -> dict[str, Image]:
        """The images of a row by role, less those of which no file is named."""
        files = _value(row, "images", {})
        if not isinstance(files, dict):
            raise VievalError(
                f"{row.where}: `images` must map roles to files; correct the file"
            )
        files_row = Row(f"{row.where}, images", files)
        images = {}
        for role in files:
            if _has_value(files_row, role):
                name = _file(files_row, role)
                image = Image(self.folder / name)
                images[role] = self.images.setdefault(name, image)
        return images

    def _frames(self, row: Row) -> dict[str, Image]:
        count = self.common.frames
        video = _file(row, "video")
        frames = frames_folder(self.folder, video, count)
        if (earlier := self.videos.setdefault(frames, video)) != video:
            raise VievalError(
                f"{row.where}: the frames of {video} and {earlier} use the same "
                "folder; rename one video"
            )
        return numbered_roles("frame", numbered(frames, count, SUFFIXES))


def _candidate_objects(row: Row) -> list[dict[str, Any]]:
    objects = row.cells.get("candidates")
    if not isinstance(objects, list) or not all(
        isinstance(cells, dict) for cells in objects
    ):
        raise VievalError(
            f"{row.where}: `candidates` must be a list of objects; correct the file"
        )
    return objects


def _value(
    row: Row,
    column: str,
    default: Any = None,
) -> Any:
    """The value of a cell; `default` for null and the empty string, but not for 0."""
    value = row.cells.get(column)
    return default if value in (None, "") else value


def _text(
    row: Row,
    column: str,
    default: str,
) -> str:
    return row.text(column) if _has_value(row, column) else default


def _tags(row: Row) -> tuple[str, ...]:
    if not _has_value(row, "tags"):
        return ()
    return tag_list(row.cells["tags"], f"{row.where}: tags")


def _has_value(row: Row, column: str) -> bool:
    return _value(row, column) is not None


def _file(row: Row, column: str) -> str:
    """The name of a file that a file system can have."""
    name = row.file(column)
    parts = [len(part.encode()) for part in PurePosixPath(name).parts]
    if max(parts, default=0) > _LONGEST_NAME or sum(parts) + len(parts) > _LONGEST_PATH:
        raise VievalError(
            f"{row.where}: the file name in {column} is too long ({len(name)} "
            "characters); correct the file"
        )
    return name


def _votes(row: Row, scheme: str) -> Votes:
    vote = _value(row, "vote", "")
    annotators = _value(row, "annotators", [])
    if not are_texts(annotators) or not isinstance(vote, str):
        raise VievalError(
            f"{row.where}: `vote` must be a string and `annotators` a list of "
            "strings; correct the file"
        )
    return Votes(scheme, vote, tuple(annotators))
