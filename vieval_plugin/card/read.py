"""Read cards from their files, and the runs of the verdicts next to them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter, ValidationError

from vieval_plugin.card.card import VERSION, Card, CardEntry
from vieval_plugin.config.section import forbid_unknown
from vieval_plugin.records import Run
from vieval_plugin.results.host_samples import CARD_JSON
from vieval_plugin.results.runs import Results, load_results
from vieval_plugin.run.verdict_lines import run_file
from vieval_plugin.text.errors import UPGRADE, VievalError, system_reason
from vieval_plugin.text.untrusted import isdir, isfile
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import read_json

forbid_unknown(Card)
_CARD = TypeAdapter(Card)
_LARGEST = 1 << 24


def is_card(path: Path) -> bool:
    """Tell by its name whether a path is a card, or a folder with one."""
    if isfile(path):
        return path.suffix == ".json"
    return isfile(path / CARD_JSON)


def read_card(path: Path) -> Card:
    """Read a card of this version from its file or folder.

    Raises:
        VievalError: the card cannot be read, has another version, or is malformed.
    """
    file = path / CARD_JSON if isdir(path) else path
    try:
        with file.open("rb") as stream:
            document = read_json(stream.read(_LARGEST + 1))
    except (OSError, ValueError) as error:
        raise VievalError(
            f"{file}: the card cannot be read ({system_reason(error)}); create one with `vieval card`"
        ) from None
    if not isinstance(document, dict) or "card" not in document:
        raise VievalError(f"{file}: not a model card; create one with `vieval card`")
    version = document["card"]
    if version != VERSION:
        mismatch = (
            f"the card has version {version}, but this VIEval reads version {VERSION}"
        )
        remedy = "run `vieval card` again"
        if isinstance(version, int) and version > VERSION:
            remedy = UPGRADE
        raise VievalError(f"{file}: {mismatch}; {remedy}")
    try:
        card = _CARD.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        problem = f"{place}: {first['msg']}"
        raise VievalError(
            f"{file}: {problem}; restore the card, or run `vieval card` again"
        ) from None
    keys = Counter(
        (entry.benchmark, entry.judge, entry.setting, tuple(entry.files))
        for entry in card.entries
    )
    repeated = next((key for key, times in keys.items() if times > 1), None)
    if repeated:
        raise VievalError(
            f"{file}: lists {repeated[1]} on {repeated[0]} twice; restore the card, "
            "or run `vieval card` again"
        )
    return card


def json_text(card: Card) -> str:
    """Serialise a card to the text of `card.json`."""
    return json.dumps(_CARD.dump_python(card, mode="json"), indent=1, allow_nan=False)


def runs_of(card: Card, path: Path, label: str) -> list[Run]:
    """Read the runs of a card from the files next to it, under a label.

    Args:
        card: as read.
        path: its file or folder.
        label: name of the card in tables.

    Raises:
        VievalError: a file of verdicts is missing, or is not the one that the card was made from.
    """
    folder = path if isdir(path) else path.parent
    return [
        replace(run, label=label)
        for entry in card.entries
        for run in _runs_of(entry, folder)
    ]


def _runs_of(entry: CardEntry, folder: Path) -> tuple[Run, ...]:
    for name in entry.files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            outside = f"refers to a file outside its folder ({name[:80]})"
            raise VievalError(f"{folder}: the card {outside}; run `vieval card` again")
    files = {folder / name: sha256 for name, sha256 in entry.files.items()}
    for file, sha256 in files.items():
        try:
            body = file.read_bytes()
        except OSError:
            raise VievalError(
                f"{file}: not found; a card requires its verdicts in the same folder"
            ) from None
        if hashlib.sha256(body).hexdigest() != sha256:
            problem = "not the verdicts that the card was made from"
            raise VievalError(
                f"{file}: {problem}; restore it, or run `vieval card` again"
            )
    run_files = {run_file(file) for file in files}
    return load_results([file for file in files if file not in run_files]).runs


def _require_same_samples(
    paths: Sequence[Path],
    cards: Sequence[Card],
    entries: Sequence[Mapping[tuple[str, str], CardEntry]],
) -> None:
    """Raise VievalError if a card has other samples than the first, of what both have."""
    for path, card, further in zip(paths[1:], cards[1:], entries[1:], strict=True):
        for key, entry in further.items():
            first = entries[0].get(key, entry)
            if first.sample_digest != entry.sample_digest:
                first_samples = f"{first.samples} {first.unit}, seed {cards[0].seed}"
                samples = f"{entry.samples} {entry.unit}, seed {card.seed}"
                raise VievalError(
                    f"{paths[0]} and {path} cover different samples "
                    f"of {first.benchmark} ({first_samples} and {samples}); "
                    "make both with the same --samples and --seed"
                )


def results_of_cards(paths: Sequence[Path], labels: Sequence[str]) -> Results:
    """Read the verdicts of cards as results, for the benchmarks and judges that all
    cards share.

    Args:
        paths: files or folders of cards.
        labels: names of the cards in tables, one per card; empty for the names of their models.

    Raises:
        VievalError: a card cannot be read or has another version, its verdicts are missing, two
            cards cover different samples, or no benchmark and judge is common to all.
    """
    if labels and len(labels) != len(paths):
        raise VievalError(
            f"got {plural(len(labels), 'label')} for {plural(len(paths), 'card')}; "
            "pass one --label per card, in the same order"
        )
    cards = [read_card(path) for path in paths]
    labelled_cards = zip(labels or [""] * len(cards), cards, strict=True)
    names = [label or card.model for label, card in labelled_cards]
    if len(set(names)) < len(names):
        raise VievalError(
            f"two cards have the same name, {names[0]}; pass one --label per card to "
            "distinguish them"
        )
    entries = [
        {(entry.benchmark, entry.judge): entry for entry in card.entries}
        for card in cards
    ]
    _require_same_samples(paths, cards, entries)
    common = set.intersection(*map(set, entries))
    if not common:
        raise VievalError(
            f"{paths[0]} and {paths[1]} have no benchmark and judge in common; "
            "make the cards with the same benchmarks and judges"
        )
    judges = Counter(benchmark for benchmark, _ in common)
    runs = []
    for card, path, name in zip(cards, paths, names, strict=True):
        for run in runs_of(card, path, name):
            if (run.benchmark, run.judge) not in common:
                continue
            if judges[run.benchmark] > 1:
                run = replace(run, label=f"{run.label} {run.judge}")
            runs.append(run)
    return Results(tuple(runs))
