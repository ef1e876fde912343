"""Calibration of a judge: a map from its scores to people's ratings, by task type."""

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
    #: Of guessing the median.
    median: FiniteFloat

    @property
    def sentence(self) -> str:
        """The error beside that of guessing the median."""
        return f"{self.calibrated:.2f} (guessing the median: {self.median:.2f})"


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
        """Typical error on unlabelled prompts and on generators without labels, in
        words.
        """
        anyway = "" if self.accepted else " (not accepted, written with --anyway)"
        prompts = self.on_prompts.sentence
        generators = self.on_generators.sentence if self.on_generators else "unknown"
        return (
            f"calibrated with {self.labels} ratings{anyway}: typical error {prompts} on "
            f"new prompts, {generators} on new generators{self.exception}"
        )

    @property
    def exception(self) -> str:
        """Task types without a calibrated score, in words; empty without any."""
        return f"; not for {enumeration(self.refused)}" if self.refused else ""

    @property
    def described(self) -> CalibratedScore:
        """Its entry in the provenance of verdicts."""
        return CalibratedScore(self.name, self.sentence, self.hash)

    def replaced(self, provenance: Provenance) -> str:
        """Line about an earlier calibration that this one replaces; empty without one."""
        previous = provenance.calibration
        if not previous or previous.hash == self.hash:
            return ""
        return f"replacing {self.name} from calibration {previous.hash} in the verdicts"

    def added(self, scores: Mapping[str, float], kind: str) -> Mapping[str, float]:
        """Scores of an image, with the calibrated score if its task type has labels."""
        if self.aspect not in scores or kind not in self.knots:
            return scores
        calibrated = np.interp(scores[self.aspect], *self.knots[kind])
        return {**scores, self.name: float(calibrated)}

    def require(self, provenance: Provenance) -> None:
        """Raise VievalError for verdicts of another judge, setting, backbone or
        wording, or without the score.
        """
        if self.aspect not in provenance.aspects:
            raise VievalError(
                f"the calibration is for {self.aspect}, which these verdicts do not "
                "have; run without the calibration"
            )
        for field_name in ("judge", "setting", "backbone", "pack_hash"):
            own = getattr(self, field_name) or "none"
            other = getattr(provenance, field_name) or "none"
            if own != other:
                word = "wording" if field_name == "pack_hash" else field_name
                reason = (
                    f"the calibration is for the {word} {own}, but the verdicts use "
                    f"{other}"
                )
                raise VievalError(
                    f"{reason}; create one for these verdicts with `vieval calibrate`"
                )

    def require_kinds(self, kinds: Iterable[str]) -> None:
        """Raise VievalError for task types without labels."""
        task_types = {*self.knots, *self.refused}
        if unknown := sorted(set(kinds) - task_types):
            calibrated = enumeration([*self.knots], "or")
            reason = (
                f"the calibration is for task type {calibrated}, but some samples have type "
                f"{unknown[0] or 'none'}"
            )
            raise VievalError(
                f"{reason}; label samples of that type and calibrate again"
            )


def write_calibration(calibration: Calibration, path: Path) -> None:
    """Write a calibration; VievalError where it cannot be written there."""
    write_whole(
        path, [json.dumps(asdict(calibration), indent=1, allow_nan=False), "\n"]
    )


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file; VievalError, in a line with its name, for an invalid
    file.
    """
    require_plain(path)
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST)
        digest = hashlib.sha256(text).hexdigest()[:16]
        document = {**read_json(text), "hash": digest}
        calibration = _CALIBRATION.validate_json(json.dumps(document), strict=True)
        if not calibration.knots or calibration.labels < 1:
            raise ValueError(
                "`knots` must contain a task type, and `labels` must be at least 1"
            )
        for scores, ratings in calibration.knots.values():
            is_score = all(-1 <= score <= 1 for score in scores)
            if not (is_score and all(0 <= rating <= 1 for rating in ratings)):
                raise ValueError(
                    "scores must be between -1 and 1, and ratings between 0 and 1"
                )
            is_paired = 0 < len(scores) == len(ratings)
            is_rising = all(np.diff(scores) > 0) and all(np.diff(ratings) >= 0)
            if not (is_paired and is_rising):
                raise ValueError(
                    "scores and ratings must have the same length and be in increasing order"
                )
    except (OSError, ValueError, TypeError) as error:
        reason = line_of(error, 100)
        raise VievalError(
            f"{path}: not a calibration ({reason}); use a file written by `vieval "
            "calibrate`"
        ) from None
    return calibration


_CALIBRATION = TypeAdapter(Calibration)
