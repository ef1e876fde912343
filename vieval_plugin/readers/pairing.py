"""Matching of images and prompts by image names and prompt columns.

Images are never paired in the order of the rows where a column speaks against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.readers.columns import leftover_notes
from vieval_plugin.readers.image_names import (
    are_numbered,
    composed,
    expected_name,
    numbers_of,
    readings,
    stems_of,
)
from vieval_plugin.readers.prompt_rows import KeyColumn, PromptRow, Prompts
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.wording import natural, plural

#: Images of each image model.
ImageModels: TypeAlias = Mapping[str, Sequence[Path]]


@dataclass(frozen=True)
class PairedImage:
    """An image and the prompt that it was made of."""

    prompt: PromptRow
    image_model: str
    #: Number of the image among those of its prompt and image model.
    draw: int
    #: The image; for a prompt without one the file that it lacks.
    file: Path


@dataclass(frozen=True)
class _Matching:
    """Images by the values of a column."""

    #: The column; without a name it is the order of the rows.
    key: KeyColumn
    #: Row from 0 and draw of each image.
    rows: Mapping[Path, tuple[int, int]]
    #: Rows that each image could belong to.
    possible: Mapping[Path, set[int]]
    #: Images that no row is called like, or that are there twice.
    strange: tuple[Path, ...] = ()

    @property
    def fits(self) -> bool:
        """True where each image has one row, and each row a value of its own."""
        if self.strange or not self.key.is_unique:
            return False
        return all(len(rows) == 1 for rows in self.possible.values())

    def contradicts(self, order: _Matching) -> bool:
        """Return whether an image belongs to another row than by the order, as long as the
        column is no class.
        """
        uids = self.key.uids
        if 4 * len({*uids}) < 3 * len(uids):
            return False
        claimed_rows = set[int]().union(*self.possible.values())
        return any(
            row not in self.possible.get(file, {row} - claimed_rows)
            for file, (row, _) in order.rows.items()
        )


def pair_images(
    models: ImageModels, prompts: Prompts
) -> tuple[list[PairedImage], list[str]]:
    """Match prompts with their images; also return lines for the user.

    A column that the user names as the uid decides. Otherwise one that is called like an id and has
    the number or name of each image; otherwise the order of the rows, where the images are numbered
    like them and no column says otherwise; otherwise any other column that has the number or name
    of each image.

    Args:
        models: the images of each image model.
        prompts: their prompts.

    Raises:
        VievalError: nothing fits, or two columns, or a column and the order of the rows, fit and
            disagree.
    """
    ordered = {
        model: sorted(files, key=lambda file: natural(file.name))
        for model, files in models.items()
    }
    matching = _chosen(ordered, prompts)
    rows = [
        replace(prompt, uid=uid)
        for prompt, uid in zip(prompts.rows, matching.key.uids, strict=True)
    ]
    notes = _pairing_notes(matching, prompts)
    pairs = []
    for model, files in ordered.items():
        folder = files[0].parent
        by_row = defaultdict[int, dict[int, Path]](dict)
        for file in files:
            if file in matching.rows:
                row, draw = matching.rows[file]
                by_row[row][draw] = file
        for row, prompt in enumerate(rows):
            expected = folder / expected_name(prompt.uid)
            images = by_row.get(row, {0: expected})
            pairs += [
                PairedImage(
                    prompt,
                    model,
                    draw,
                    images[draw],
                )
                for draw in sorted(images)
            ]
        strange = [file.name for file in files if file in matching.strange]
        if strange:
            ignored = plural(len(strange), "image")
            notes.append(
                f"{folder}: ignored {ignored} with no prompt, or with a prompt that "
                f"already has an image (first: {strange[0]})"
            )
    return pairs, notes


def _pairing_notes(matching: _Matching, prompts: Prompts) -> list[str]:
    key = matching.key.name
    leftover = [name for name in prompts.leftover if name != key]
    notes = [*leftover_notes(prompts.name, leftover)]
    if key and not matching.key.is_own:
        return [f"{prompts.name}: images are matched by column {key!r}", *notes]
    return notes


def _chosen(models: ImageModels, prompts: Prompts) -> _Matching:
    """The column, or the order of the rows, by which images are found; VievalError where none is
    certain.
    """
    order = _order(models, prompts)
    matchings = [_match(models, key) for key in prompts.keys]
    if prompts.uid_is_named and matchings[0].rows:
        return matchings[0]
    ids = [matching for matching in matchings if matching.key.is_id]
    fitting = [matching for matching in matchings if matching.fits]
    text_matchings = [matching for matching in fitting if not matching.key.is_id]
    uid = next((matching for matching in ids if matching.key.is_uid), None)
    fitting_ids = [matching for matching in fitting if matching.key.is_id]
    contradicting = []
    if order:
        contradicting = [matching for matching in ids if matching.contradicts(order)]
    if fitting_ids:
        candidates = fitting_ids
    elif text_matchings and not order:
        candidates = text_matchings
    elif order and contradicting:
        candidates = [contradicting[0], order]
    elif uid and 2 * len(uid.rows) >= sum(map(len, models.values())):
        candidates = [uid]
    elif order and not uid:
        candidates = [order, *text_matchings]
    else:
        raise _no_match_error(models, prompts, matchings)
    first, *others = candidates
    for rival in others:
        if rival.rows != first.rows:
            raise _disagreement_error(first, rival, prompts)
    return first


def _disagreement_error(
    first: _Matching,
    rival: _Matching,
    prompts: Prompts,
) -> VievalError:
    """The error for two matchings that fit and give an image different prompts."""
    names = [matching.key.name for matching in (first, rival)]
    sides = [f"column {name!r}" if name else "the order of the rows" for name in names]
    options = [f"--columns uid={name}" for name in names]
    return VievalError(
        f"{prompts.name}: {' and '.join(sides)} match the images to different prompts; "
        f"pass {' or '.join(options)}"
    )


def _order(models: ImageModels, prompts: Prompts) -> _Matching | None:
    """The images in the order of the rows; None where they are not numbered as these are."""
    numbers = [prompt.number for prompt in prompts.rows]
    rows = {}
    for files in models.values():
        if len(files) != len(numbers) or not are_numbered(files, numbers):
            return None
        for row, file in enumerate(files):
            rows[file] = (row, 0)
    positions = range(1, len(numbers) + 1)
    key = KeyColumn("", tuple(map(str, positions)), is_id=False)
    return _Matching(key, rows, {})


def _match(models: ImageModels, key: KeyColumn) -> _Matching:
    """Images by the values of a column: by name, by a number that is zero-filled or not, each with
    or without a draw.

    The name as it is comes first. An image that several rows could be called like belongs to none
    of them.
    """
    rows_by_key = _Rows.from_uids(key.uids)
    matching = _Matching(
        key,
        rows := {},
        possible := {},
    )
    strange: list[Path] = []
    for files in models.values():
        named_rows = rows_by_key.find_by_name(files)
        numbered = rows_by_key.find_by_number(files)
        # a number inside a name says nothing where others have the whole name
        claims = named_rows if any(named_rows.values()) else numbered
        taken_rows = set[tuple[int, int]]()
        for file in files:
            options = [*named_rows[file], *numbered.get(file, [])]
            if options:
                candidate_rows = (candidates for candidates, _ in options)
                possible[file] = set().union(*candidate_rows)
            row_draws = [
                (row, draw)
                for candidates, draw in claims.get(file, [])[:1]
                for row in candidates
            ]
            if len(row_draws) == 1 and row_draws[0] not in taken_rows:
                rows[file] = row_draws[0]
                taken_rows.add(row_draws[0])
            else:
                strange.append(file)
    return replace(matching, strange=tuple(strange))


#: Rows that each image could belong to, with its draw.
_Candidates: TypeAlias = dict[Path, list[tuple[set[int], int]]]


@dataclass(frozen=True)
class _Rows:
    """Rows by the values of a column."""

    by_uid: Mapping[str, set[int]]
    by_name: Mapping[str, set[int]]
    by_number: Mapping[int, set[int]]

    @classmethod
    def from_uids(cls, uids: Sequence[str]) -> _Rows:
        by_uid = defaultdict[str, set[int]](set)
        by_name = defaultdict[str, set[int]](set)
        by_number = defaultdict[int, set[int]](set)
        for row, uid in enumerate(uids):
            by_uid[uid].add(row)
            for stem in stems_of(uid):
                by_name[composed(stem)].add(row)
            if uid.isdecimal():
                by_number[int(uid)].add(row)
        return cls(by_uid, by_name, by_number)

    def find_by_name(self, files: Sequence[Path]) -> _Candidates:
        named_rows: _Candidates = {}
        for file in files:
            names = list(readings(file))
            options = [(self.by_uid.get(stem), draw) for stem, draw in names]
            options += [
                (self.by_name.get(composed(stem)), draw) for stem, draw in names
            ]
            options += [
                (self.by_number.get(int(stem)), draw)
                for stem, draw in names
                if stem.isdecimal()
            ]
            named_rows[file] = [(rows, draw) for rows, draw in options if rows]
        return named_rows

    def find_by_number(self, files: Sequence[Path]) -> _Candidates:
        numbered: _Candidates = {}
        for file, (number, draw) in _numbers_alone(files).items():
            numbered[file] = []
            if number in self.by_number:
                numbered[file].append((self.by_number[number], draw))
        return numbered


def _numbers_alone(files: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Number and draw of each file whose number no other has: a name goes before longer ones that
    begin with it, such as those of masks, and `1_in.png` and `1_out.png` both go without.
    """
    numbers = numbers_of(files)
    claimants = defaultdict[tuple[int, int], list[Path]](list)
    for file, number_and_draw in numbers.items():
        claimants[number_and_draw].append(file)
    plain = {}
    for number_and_draw, contesting in claimants.items():
        shortest = min(contesting, key=lambda file: len(file.stem))
        if all(file.stem.startswith(shortest.stem) for file in contesting):
            plain[shortest] = number_and_draw
    return plain


def _no_match_error(
    models: ImageModels,
    prompts: Prompts,
    matchings: Sequence[_Matching],
) -> VievalError:
    """The error for images of which no column has most, and that are not numbered as rows are."""
    images = list(chain(*models.values()))
    nearest = max(matchings, key=lambda matching: len(matching.rows), default=None)
    if nearest and nearest.rows:
        strange = abbreviated([file.name for file in nearest.strange])
        unidentified = strange or "each image exactly once"
        reason = f"column {nearest.key.name!r} does not identify {unidentified}"
        advice = f"use --columns uid={nearest.key.name} to ignore such images"
    elif nearest and nearest.key.is_uid:
        uids = nearest.key.uids[:3]
        expected = ", ".join(expected_name(uid) for uid in uids)
        reason = f"no image is named after a uid, such as {expected}"
        advice = "rename the images, or use --columns uid= to match them by row order"
    else:
        reason = (
            "the images are not numbered from 0 or 1 like the prompts, and no column "
            "holds their names"
        )
        advice = (
            "add uids to the prompts (a CSV with the columns uid and prompt) and "
            "rename the images to UID.png"
        )
    folders = _first_three(list(dict.fromkeys(str(file.parent) for file in images)))
    examples = _first_three([file.name for file in images])
    image_count = plural(len(images), "image")
    prompt_count = plural(len(prompts.rows), "prompt")
    return VievalError(
        f"{folders}: "
        f"cannot match {image_count} ({examples}) "
        f"to {prompt_count} of {prompts.name}: "
        f"{reason}; {advice}"
    )


def _first_three(names: Sequence[str]) -> str:
    further = ["..."] if names[3:] else []
    return ", ".join([*names[:3], *further])
