"""Batches of images as trainers have them, as pictures one by one: height, width, colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from vieval_plugin.errors import VievalError

_BATCH_AXES = 4


def pictures(batch: Any) -> list[Any]:
    """The pictures of a batch.

    Tensors and arrays may be (number, 3, height, width) or (number, height, width, 3), floats from 0 to 1 or uint8; floats
    a little outside are cut off, as trainers do. Anything else, such as a list of pictures of Pillow, is taken as it is.

    Raises:
        VievalError: a tensor or array of another shape.
    """
    if isinstance(batch, (list, tuple)):
        return [picture for one in batch for picture in (pictures(one[None]) if _is_array(one) else [one])]
    if not _is_array(batch):
        return list(batch)
    array = np.asarray(
        batch.detach().float().cpu() if hasattr(batch, "detach") and batch.is_floating_point() else _cpu(batch)
    )
    if array.ndim != _BATCH_AXES or 3 not in (array.shape[1], array.shape[-1]):
        raise VievalError(f"images of shape {tuple(array.shape)} are no batch; pass (number, 3, height, width)")
    if array.shape[-1] != 3:
        array = array.transpose(0, 2, 3, 1)
    return list(array if array.dtype == np.uint8 else array.clip(0, 1))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "ndim")


def _cpu(batch: Any) -> Any:
    return batch.detach().cpu() if hasattr(batch, "detach") else batch
