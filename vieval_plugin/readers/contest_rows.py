"""Contests as JSON objects: candidates and people's votes.

`{"id": ..., "texts": {name: text}, "images": {role: file}, "candidates": [...], "vote": ...,
"annotators": [...], "group": ..., "tags": [...]}`, where `texts` and `images` are the conditions
that all candidates share. A candidate is `{"image_model": ..., "uid": ..., "images": {role:
file}}`, or has `video` in place of the images; files lie below the folder of the rows. Only `id`
and `candidates` must be there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from vieval_plugin.judges.contests import Contest, Votes, fault
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.readers.rated_models import numbered_roles
from vieval_plugin.readers.rows import UNNAMED, Row, numbered, tag_list
from vieval_plugin.readers.tables import are_objects, are_texts
from vieval_plugin.readers.video_frames import SUFFIXES
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import is_encodable
from vieval_plugin.text.yaml_json import JsonObject

#: The file of a part's contests.
CONTESTS = "contests.jsonl"

# in bytes; of a path the folder before it takes some
_LONGEST_NAME = 255
_LONGEST_PATH = 3000


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
            raise row.error(
                "a text contains a lone surrogate, which is not valid Unicode"
            )
        uid = row.uid("id")
        if uid in self.ids:
            raise row.error(f"duplicate id {uid}")
        self.ids.add(uid)
        texts = _value(row, "texts", {})
        if not isinstance(texts, dict) or not are_texts([*texts.values()]):
            raise row.error("`texts` must map names to strings")
        conditions = Sample(
            SampleId(
                self.common.benchmark,
                self.common.part,
                "",
                uid,
            ),
            self._images_of(row),
            texts,
            kind=self.common.kind,
            group=_text(row, "group", uid),
        )
        candidates = [
            self._candidate(
                Row(f"{row.where}, candidate {number}", cells),
                f"{uid}#{number}",
                conditions,
            )
            for number, cells in enumerate(_candidate_objects(row), start=1)
        ]
        contest = Contest(
            conditions.id,
            tuple(candidates),
            _votes(row, self.common.scheme),
            conditions.group,
            _tags(row),
        )
        problem = fault(contest)
        if problem:
            raise row.error(problem)
        return contest

    def _candidate(
        self,
        row: Row,
        unnamed: str,
        conditions: Sample,
    ) -> Sample:
        model = _text(row, "image_model", UNNAMED)
        uid = _text(row, "uid", unnamed)
        read_images = self._frames if _has_value(row, "video") else self._images_of
        sample = replace(
            conditions,
            id=replace(conditions.id, image_model=model, uid=uid),
            images={**conditions.images, **read_images(row)},
        )
        candidate = self.candidates.setdefault(sample.id, sample)
        if (candidate.images, candidate.texts) != (sample.images, sample.texts):
            raise row.error(
                f"uid {uid} of {model} has a different output or "
                "different conditions in an earlier row"
            )
        return candidate

    def _images_of(self, row: Row) -> dict[str, Image]:
        """The images of a row by role, less those of which no file is named."""
        files = _value(row, "images", {})
        if not isinstance(files, dict):
            raise row.error("`images` must map roles to files")
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
        earlier = self.videos.setdefault(frames, video)
        if earlier != video:
            raise VievalError(
                f"{row.where}: the frames of {video} and {earlier} use the same "
                "folder; rename one video"
            )
        return numbered_roles("frame", numbered(frames, count, SUFFIXES))


def _candidate_objects(row: Row) -> list[JsonObject]:
    objects = row.cells.get("candidates")
    if not are_objects(objects):
        raise row.error("`candidates` must be a list of objects")
    return objects


def _value(
    row: Row,
    column: str,
    default: Any = None,
) -> Any:
    """The value of a cell; `default` for null and the empty string, but not for 0."""
    value = row.cells.get(column)
    if value in (None, ""):
        return default
    return value


def _text(
    row: Row,
    column: str,
    default: str,
) -> str:
    if _has_value(row, column):
        return row.text(column)
    return default


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
        raise row.error(
            f"the file name in {column} is too long "
            f"({len(name)} characters; "
            f"limit {_LONGEST_NAME} bytes a name and {_LONGEST_PATH} in total)"
        )
    return name


def _votes(row: Row, scheme: str) -> Votes:
    vote = _value(row, "vote", "")
    annotators = _value(row, "annotators", [])
    if not are_texts(annotators) or not isinstance(vote, str):
        raise row.error("`vote` must be a string and `annotators` a list of strings")
    return Votes(scheme, vote, tuple(annotators))
