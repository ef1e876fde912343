"""Pairs of images and the prompts that they were made of, by what the images' names and the prompts' columns show alike.

Images are never paired in the order of the rows where a column speaks against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NoReturn

from vieval_plugin.readers.image_names import are_numbered, composed, expected_name, numbers_of, readings, stems_of
from vieval_plugin.readers.prompt_rows import KeyColumn, PromptRow, Prompts
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.wording import enumeration, natural, plural

_EXAMPLES = 3


@dataclass(frozen=True)
class PairedImage:
    """An image and the prompt that it was made of."""

    #: The prompt.
    prompt: PromptRow
    #: Image model.
    image_model: str
    #: Number of the image among those of its prompt and image model.
    draw: int
    #: The image; for a prompt without one the file that it lacks.
    file: Path


@dataclass(frozen=True)
class _Matching:
    """Images by what a column says of them."""

    #: Row from 0 and draw of each image.
    rows: Mapping[Path, tuple[int, int]]
    #: Images that no row is called like, or that are there twice.
    strange: tuple[Path, ...]
    #: Rows that each image could belong to.
    possible: Mapping[Path, frozenset[int]]
    #: True where a name can be read in two ways.
    is_ambiguous: bool

    @property
    def is_whole(self) -> bool:
        """True where each image has one row."""
        return not self.strange and not self.is_ambiguous


def pair_images(models: Mapping[str, Sequence[Path]], prompts: Prompts) -> tuple[list[PairedImage], list[str]]:
    """Each prompt with each of its images, and lines for the user on how they were found.

    A column that the user names as the uid decides. Otherwise one that is called like an id and has the number or name of
    each image; otherwise the order of the rows, where the images are numbered like them and no column says otherwise;
    otherwise any other column that has the number or name of each image.

    Args:
        models: the images of each image model.
        prompts: their prompts.

    Raises:
        VievalError: nothing fits, or two columns, or a column and the order of the rows, fit and disagree.
    """
    ordered = {model: sorted(files, key=lambda file: natural(file.name)) for model, files in models.items()}
    pairing = _Pairing(ordered, prompts)
    key = pairing.key()
    if key is None:
        rows = [replace(prompt, uid=str(number)) for number, prompt in enumerate(prompts.rows, start=1)]
        pairs = [
            PairedImage(prompt, model, 0, file)
            for model, files in ordered.items()
            for prompt, file in zip(rows, files, strict=True)
        ]
        return pairs, []
    rows = [replace(prompt, uid=uid) for prompt, uid in zip(prompts.rows, key.uids, strict=True)]
    notes = [] if key.is_own else [f"{prompts.name}: the images are matched by the column {key.name!r}"]
    pairs = []
    for model, files in ordered.items():
        matching = pairing.matching(key, model)
        notes += _strange_notes(files[0].parent, matching.strange)
        pairs += _pairs(rows, matching, model, files[0].parent)
    return pairs, notes


def _pairs(rows: Sequence[PromptRow], matching: _Matching, model: str, folder: Path) -> Iterator[PairedImage]:
    files: dict[int, dict[int, Path]] = defaultdict(dict)
    for file, (row, draw) in matching.rows.items():
        files[row][draw] = file
    for number, prompt in enumerate(rows):
        images = files.get(number, {0: folder / expected_name(prompt.uid)})
        yield from (PairedImage(prompt, model, draw, images[draw]) for draw in sorted(images))


def _strange_notes(folder: Path, strange: Sequence[Path]) -> list[str]:
    if not strange:
        return []
    return [f"{folder}: images that belong to no prompt and are left out: {len(strange)}, the first {strange[0].name}"]


class _Pairing:
    """Search for the column by which images and prompts belong together."""

    def __init__(self, models: Mapping[str, Sequence[Path]], prompts: Prompts) -> None:
        self._models, self._prompts = models, prompts
        self._matchings: dict[tuple[str, str], _Matching] = {}

    def matching(self, key: KeyColumn, model: str) -> _Matching:
        """The images of an image model by a column."""
        if (key.name, model) not in self._matchings:
            self._matchings[key.name, model] = _match(self._models[model], key)
        return self._matchings[key.name, model]

    def key(self) -> KeyColumn | None:
        """The column by which images are found; None where they are in the order of the rows."""
        keys = self._prompts.keys
        if self._prompts.uid_is_named:
            return self._require_some(keys[0])
        ids, others = [key for key in keys if key.is_id], [key for key in keys if not key.is_id]
        if fitting := list(filter(self._fits, ids)):
            return self._agreeing(fitting)
        order = self._order()
        own = next((key for key in ids if key.is_uid), None)
        if own and self._shift(own):
            self._refuse_shift(own)
        if own and self._matched_share(own) >= 0.5:
            return own
        if order and not own:
            for key in ids:
                if self._contradicts(key, order):
                    self._refuse_order(key)
            for key in filter(self._fits, others):
                if self._rows(key) != order:
                    self._refuse_order(key)
            return None
        if fitting := [] if order else list(filter(self._fits, others)):
            return self._agreeing(fitting)
        if own:
            return self._require_some(own, most=True)
        self._refuse()

    def _rows(self, key: KeyColumn) -> dict[Path, tuple[int, int]]:
        return {file: place for model in self._models for file, place in self.matching(key, model).rows.items()}

    def _order(self) -> dict[Path, tuple[int, int]] | None:
        """The row of each image in the order of both; None where images are not numbered as rows are."""
        numbers = [prompt.number for prompt in self._prompts.rows]
        for files in self._models.values():
            if len(files) != len(numbers) or not are_numbered(files, numbers):
                return None
        return {file: (row, 0) for files in self._models.values() for row, file in enumerate(files)}

    def _fits(self, key: KeyColumn) -> bool:
        return key.is_unique and all(self.matching(key, model).is_whole for model in self._models)

    def _agreeing(self, keys: Sequence[KeyColumn]) -> KeyColumn:
        first, *others = keys
        if rival := next((key for key in others if self._rows(key) != self._rows(first)), None):
            raise VievalError(
                f"{self._where}: the columns {first.name!r} and {rival.name!r} of {self._prompts.name} both name the images, "
                f"but pair them with other prompts; pass --columns uid={first.name} or --columns uid={rival.name}"
            )
        return first

    def _matched_share(self, key: KeyColumn) -> float:
        total = sum(map(len, self._models.values()))
        return len(self._rows(key)) / total

    def _contradicts(self, key: KeyColumn, order: Mapping[Path, tuple[int, int]]) -> bool:
        """Return whether a column finds an image in another row than the order does, or a row in another image."""
        if 4 * len(set(key.uids)) < 3 * len(key.uids):
            return False  # a class, not an id
        possible = {file: rows for model in self._models for file, rows in self.matching(key, model).possible.items()}
        called = frozenset().union(*possible.values())
        return any(row not in possible.get(file, called.__class__()) and (file in possible or row in called) for file, (row, _) in order.items())

    def _shift(self, key: KeyColumn) -> bool:
        """Return whether images count from 1 and a column from 0, or the reverse."""
        counts = [*range(len(key.uids))], [*range(1, len(key.uids) + 1)]
        column = sorted(int(uid) for uid in key.uids if uid.isdecimal())
        for files in self._models.values():
            images = sorted(number for number, _ in numbers_of(files).values())
            if len(files) > 1 and (images, column) in (counts, counts[::-1]):
                return True
        return False

    def _require_some(self, key: KeyColumn, most: bool = False) -> KeyColumn:
        """The column; VievalError for an image model none of whose images, or not half, it names."""
        for model, files in self._models.items():
            matching = self.matching(key, model)
            if matching.rows and not most:
                continue
            expected = ", ".join(expected_name(uid) for uid in key.uids[:_EXAMPLES])
            named = f"only {len(matching.rows)} of {len(files)} images are" if matching.rows else "no image there is"
            strange = ", ".join(file.name for file in matching.strange[:_EXAMPLES])
            advice = (
                f"; --columns uid={key.name} insists, and --columns uid= takes the order of the rows" if most else ""
            )
            raise VievalError(
                f"{files[0].parent}: {named} called by a uid of {self._prompts.name}: the images are {strange}, and expected "
                f"are {expected}{advice}"
            )
        return key

    def _refuse_shift(self, key: KeyColumn) -> NoReturn:
        raise VievalError(
            f"{self._where}: the images and the column {key.name!r} of {self._prompts.name} do not count from the same "
            f"number; rename the images, or pass --columns uid= to pair them in the order of the rows"
        )

    def _refuse_order(self, key: KeyColumn) -> NoReturn:
        if self._shift(key):
            self._refuse_shift(key)
        raise VievalError(
            f"{self._where}: the column {key.name!r} of {self._prompts.name} numbers the prompts in another order than the "
            f"rows; pass --columns uid={key.name} to match the images by it, or --columns uid= to take the order of the rows"
        )

    def _refuse(self) -> NoReturn:
        images, prompts = list(chain.from_iterable(self._models.values())), self._prompts.rows
        partial = max(self._prompts.keys, key=lambda key: len(self._rows(key)), default=None)
        if partial and self._rows(partial):
            strange = [file.name for model in self._models for file in self.matching(partial, model).strange]
            names = abbreviated(strange) or "some images twice"
            advice = f"the column {partial.name!r} does not name {names}; --columns uid={partial.name} leaves these out"
        else:
            advice = "give the prompts uids (a CSV with the columns uid and prompt) and call the images UID.png"
            if len(images) == len(prompts):
                advice = f"call the images 1.png, 2.png and so on in the order of the prompts, or {advice}"
        raise VievalError(
            f"{self._where}: cannot match {plural(len(images), 'image')} ({images[0].name}, ...) to "
            f"{plural(len(prompts), 'prompt')} of {self._prompts.name}; {advice}"
        )

    @property
    def _where(self) -> str:
        return enumeration([str(files[0].parent) for files in self._models.values()][:_EXAMPLES])


def _match(files: Sequence[Path], key: KeyColumn) -> _Matching:
    """Images by the values of a column: by name, by a number that is zero-filled or not, each with or without a draw."""
    by_name, by_number = defaultdict[str, set[int]](set), defaultdict[int, set[int]](set)
    for row, uid in enumerate(key.uids):
        for stem in stems_of(uid):
            by_name[composed(stem)].add(row)
        if uid.isdecimal():
            by_number[int(uid)].add(row)
    numbers = numbers_of(files)
    rows: dict[Path, tuple[int, int]] = {}
    possible: dict[Path, frozenset[int]] = {}
    strange: list[Path] = []
    taken: set[tuple[int, int]] = set()
    is_ambiguous = False
    for file in files:
        names = [(composed(stem), draw) for stem, draw in readings(file)]
        options = [(by_name.get(stem), draw) for stem, draw in names]
        options += [(by_number.get(int(stem)), draw) for stem, draw in names if stem.isdecimal()]
        number, draw = numbers.get(file, (-1, 0))
        options.append((by_number.get(number), draw))
        found = [(candidates, draw) for candidates, draw in options if candidates]
        if not found:
            strange.append(file)
            continue
        possible[file] = frozenset().union(*(candidates for candidates, _ in found))
        is_ambiguous = is_ambiguous or len(possible[file]) > 1
        place = min(found[0][0]), found[0][1]
        if place in taken:
            strange.append(file)
            continue
        taken.add(place)
        rows[file] = place
    return _Matching(rows, tuple(strange), possible, is_ambiguous)
