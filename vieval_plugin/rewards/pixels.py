"""Pictures of trainers, whose pixels come in several layouts and a little beyond their range.

Values are clipped where a generator's rounding or its decoder's overshoot explains them. Any other range is left as it
is, so that `vieval_plugin.api.conversion.image` refuses it in the words of `Judge.score`.
"""

from __future__ import annotations

import atexit
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.judges.arguments import require_several
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.wording import plural

_AXES = 3
_CHANNELS = 3
_ROUNDING = 0.02  # beyond 0 and 1, which is clipped in silence
_OVERSHOOT = 0.5  # beyond 0 and 1, which a decoder does not exceed
_OVERSHOOT_SHARE = 0.01  # of a picture's values


@dataclass
class ClippedPictures:
    """Count of the pictures of this process whose overshoot was clipped, printed when the process ends."""

    #: Pictures of floats.
    pictures: int = 0
    #: Those that were clipped.
    clipped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, is_clipped: bool) -> None:
        """Count a picture."""
        with self._lock:
            if is_clipped and not self.clipped:
                atexit.register(self._say)
            self.pictures += 1
            self.clipped += is_clipped

    def line(self) -> str:
        """The line for the user."""
        return (
            f"vieval: pixels of {self.clipped:,} of {plural(self.pictures, 'image')} were clipped to 0 to 1: in each, "
            f"less than {_OVERSHOOT_SHARE:.0%} of the values lay further than {_ROUNDING} outside"
        )

    def _say(self) -> None:
        say(self.line(), file=sys.stderr)


CLIPPED = ClippedPictures()


def pictures(batch: Any) -> list[Any]:
    """The pictures of a batch.

    Args:
        batch: a tensor or array (number, 3, height, width) or (number, height, width, 3), of floats from 0 to 1 or uint8,
            or a list of such pictures, of Pillow's pictures, paths or bytes.

    Raises:
        VievalError: a tensor or array has another shape, or holds several pictures where one is meant.
    """
    if not _is_array(batch):
        require_several(batch, "images", "a list of images, or a tensor (number, 3, height, width)")
        return [_picture(item) for item in batch]
    array = _as_array(batch)
    if array.ndim <= _AXES:
        raise VievalError(f"images must have the shape (number, 3, height, width), got {tuple(array.shape)}")
    return [_picture(item) for item in array]


def _picture(value: Any) -> Any:
    """A picture as `Judge` takes it; what is neither a tensor nor an array is returned as it is."""
    if not _is_array(value):
        return value
    array = _as_array(value)
    if array.ndim == _AXES + 1:
        if len(array) != 1:
            raise VievalError(f"each prompt must have one image, got {len(array)}; pass a prompt for each image")
        array = array[0]
    if array.ndim != _AXES or _CHANNELS not in (array.shape[0], array.shape[-1]):
        raise VievalError(f"an image must have the shape (3, height, width), got {tuple(array.shape)}")
    if array.shape[-1] != _CHANNELS:
        array = array.transpose(1, 2, 0)
    return _without_overshoot(array) if array.dtype.kind == "f" else array


def _without_overshoot(array: NDArray[Any]) -> NDArray[Any]:
    """Pixels from 0 to 1; as they are where rounding and overshoot do not explain those beyond."""
    outside = (array < -_ROUNDING) | (array > 1 + _ROUNDING)
    is_within_overshoot = array.min() >= -_OVERSHOOT and array.max() <= 1 + _OVERSHOOT
    if not is_within_overshoot or outside.mean() >= _OVERSHOOT_SHARE:
        return array
    CLIPPED.count(bool(outside.any()))
    return array.clip(0, 1)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "ndim")


def _as_array(value: Any) -> NDArray[Any]:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() else value  # numpy has no bfloat16
    return np.asarray(value)
