"""Folders into which a host's generator saves what it makes, as the model itself says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ATTRIBUTES = (
    *("output_dir", "output_image_dir", "response_persistent_folder", "generated_image_dir"),  # lmms-eval's models
    "out_img_dir",  # VLMEvalKit's Bagel
)


def output_folders(model: Any) -> tuple[Path, ...]:
    """Return the folders into which a host's model saves images; none for one that names none, or is only a name."""
    named = (getattr(model, name, None) for name in _ATTRIBUTES)
    return tuple(Path(folder) for folder in named if isinstance(folder, str | Path) and str(folder))
