"""A judge's calibration in a file: what people would say for each score, by task type."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from pydantic import FiniteFloat, TypeAdapter

from vieval_plugin.media.files import require_plain, write_whole
from vieval_plugin.records import CalibratedScore, Provenance
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.wording import enumeration
from vieval_plugin.text.yaml_json import read_json

_LARGEST = 1 << 20


@dataclass(frozen=True)
class TypicalErrors:
    """Mean absolute errors on held-out labels, in [0, 1]."""

    #: Of calibrated scores.
    calibrated: FiniteFloat
    #: Of raw scores.
    raw: FiniteFloat
    #: Of always saying the median.
    median: FiniteFloat


@dataclass(frozen=True)
class Calibration:
    """An increasing function of a judge's scores for each task type, and how well it did on
    held-out labels.
    """

    judge: str
    #: Its settings in words.
    setting: str
    #: The model that it asks, or its weights.
    backbone: str
    #: Hash of its prompt pack.
    pack_hash: str
    #: The score that is calibrated.
    aspect: str
    #: Knots of each task type: scores of the judge in rising order, and people's ratings.
    knots: Mapping[str, tuple[tuple[FiniteFloat, ...], tuple[FiniteFloat, ...]]]
    #: Number of people's ratings.
    labels: int
    #: Errors on prompts that were left out.
    on_prompts: TypicalErrors
    #: Errors on generators that were left out with the prompts; None where all labels of some task
    #: type are of one.
    on_generators: TypicalErrors | None
    #: It is surely better than raw scores and than a constant.
    accepted: bool
    #: Task types with labels that do not show so of their own function, and without a calibrated
    #: score.
    refused: tuple[str, ...] = ()
    #: Hash of the file.
    hash: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """Name of the calibrated score."""
        return f"{self.aspect}_calibrated"

    @property
    def sentence(self) -> str:
        """How good it is on prompts that nobody labelled, and on images of generators that
        nobody labelled.
        """
        anyway = "" if self.accepted else " (not accepted, written with --anyway)"
        prompts, generators = (
            errors
            and f"{errors.calibrated:.2f} (always saying the median: {errors.median:.2f})"
            for errors in (self.on_prompts, self.on_generators)
        )
        return (
            f"calibrated{anyway} with {self.labels} ratings: typical error {prompts}, and on "
            f"images of a generator without labels {generators or 'not known'}{self.exception}"
        )

    @property
    def exception(self) -> str:
        """Words on task types without a calibrated score; empty where there are none."""
        return f"; not for {enumeration(self.refused)}" if self.refused else ""

    @property
    def described(self) -> CalibratedScore:
        """Its entry in the provenance of verdicts."""
        return CalibratedScore(self.name, self.sentence, self.hash)

    def replaced(self, provenance: Provenance) -> str:
        """Line on the score of another calibration in verdicts, which this one's takes the place
        of; empty without one.
        """
        previous = provenance.calibration
        return (
            f"{self.name} of calibration {previous.hash}, which the verdicts had, is replaced"
            if previous and previous.hash != self.hash
            else ""
        )

    def added(self, scores: Mapping[str, float], kind: str) -> Mapping[str, float]:
        """Scores of an image of a task type, with what people would say where there are the raw
        score and labels.
        """
        if self.aspect not in scores or kind not in self.knots:
            return scores
        return {
            **scores,
            self.name: float(np.interp(scores[self.aspect], *self.knots[kind])),
        }

    def require(self, provenance: Provenance) -> None:
        """VievalError for verdicts of another judge, setting, backbone or wording, or without
        the score.
        """
        if self.aspect not in provenance.aspects:
            raise VievalError(
                f"the calibration is for {self.aspect}, which these verdicts do not have; leave it "
                "out"
            )
        for field_name, word in (
            ("judge",) * 2,
            ("setting",) * 2,
            ("backbone",) * 2,
            ("pack_hash", "wording"),
        ):
            own = getattr(self, field_name) or "none"
            other = getattr(provenance, field_name) or "none"
            if own != other:
                reason = f"the calibration is for the {word} {own}, and the verdicts are of {other}"
                raise VievalError(
                    f"{reason}; make one for them with `vieval calibrate`"
                )

    def require_kinds(self, kinds: Iterable[str]) -> None:
        """VievalError for task types without labels."""
        if unknown := sorted(set(kinds) - self.knots.keys() - {*self.refused}):
            reason = (
                f"the calibration is for task type {enumeration([*self.knots], 'or')}, and "
                f"there are samples of {unknown[0] or 'none'}"
            )
            raise VievalError(f"{reason}; label some of these too, and calibrate again")


def write_calibration(calibration: Calibration, path: Path) -> None:
    """Write a calibration; VievalError where it cannot be written there."""
    write_whole(
        path, [json.dumps(asdict(calibration), indent=1, allow_nan=False), "\n"]
    )


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file; VievalError, in a line with its name, for a file that is none."""
    require_plain(path)
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST)
        document = {**read_json(text), "hash": hashlib.sha256(text).hexdigest()[:16]}
        calibration = _CALIBRATION.validate_json(json.dumps(document), strict=True)
        if not calibration.knots or calibration.labels < 1:
            raise ValueError(
                "`knots` must hold a task type, and `labels` must be at least 1"
            )
        for scores, ratings in calibration.knots.values():
            if not (
                all(-1 <= score <= 1 for score in scores)
                and all(0 <= rating <= 1 for rating in ratings)
            ):
                raise ValueError("a score or a rating that no judge or person gives")
            if not (
                0 < len(scores) == len(ratings)
                and all(np.diff(scores) > 0)
                and all(np.diff(ratings) >= 0)
            ):
                raise ValueError("it does not rise with the score")
    except (OSError, ValueError, TypeError) as error:
        reason = line_of(error, 100)
        raise VievalError(
            f"{path}: no calibration ({reason}); name a file that vieval calibrate wrote"
        ) from None
    return calibration


_CALIBRATION = TypeAdapter(Calibration)
