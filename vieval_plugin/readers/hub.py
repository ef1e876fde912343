"""Load Hugging Face Hub data sets through `datasets`, without running their code."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

from vieval_plugin.readers.arrow_tables import arrow_table
from vieval_plugin.readers.tables import InputTable
from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.suggestions import abbreviated

_NAME = re.compile(
    r"(?P<dataset>\w[\w.-]*/[\w.-]+?)(:(?P<config>[\w.-]+))??(:(?P<split>[\w.-]+))?"
)
_PATIENCE = 10.0  # seconds in which the hub must say anything


def is_hub_name(text: str) -> bool:
    """Return whether a text has the form `ORG/NAME`, `ORG/NAME:SPLIT` or
    `ORG/NAME:CONFIG:SPLIT`.
    """
    return _NAME.fullmatch(text) is not None


def hub_table(location: str) -> InputTable:
    """Rows of a Hub data set, downloaded if not cached.

    Args:
        location: `ORG/NAME`, with a split where it has several and a config where it has several.

    Raises:
        VievalError: `datasets` or pyarrow is not installed, the hub cannot be reached, or it has no
            such data set or split.
    """
    match = _NAME.fullmatch(location)
    if not match:
        raise VievalError(
            "a data set on the Hugging Face Hub must be ORG/NAME or "
            f"ORG/NAME:SPLIT, got {location!r}"
        )
    name = match["dataset"]
    silent = unreachable()
    if silent:
        raise VievalError(
            f"{location}: no such file or folder, and the Hugging Face Hub cannot "
            f"be reached: {silent}"
        )
    try:
        splits = load_from_hub(name, match["config"] or "")
    except (ImportError, VievalError):
        raise
    except Exception as error:  # of many types, its own and those of what it builds on
        raise VievalError(
            f"{location}: no such file or folder, and loading it from the Hugging Face Hub "
            f"failed ({one_line(error)})"
        ) from None
    split = match["split"] or ""
    if split not in splits and (split or len(splits) != 1):
        names = [f"{name}:{split}" for split in splits]
        raise VievalError(f"{location}: choose one of its splits: {abbreviated(names)}")
    dataset = splits[split or next(iter(splits))]
    table = arrow_table([Path(file["filename"]) for file in dataset.cache_files])
    # the folders in which the libraries of the hub keep what they fetched, images included
    from datasets import config
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = (config.HF_DATASETS_CACHE, config.DOWNLOADED_DATASETS_PATH, HF_HUB_CACHE)
    return replace(
        table,
        name=location,
        roots=tuple(map(Path, folders)),
    )


def load_from_hub(
    dataset: str,
    config: str,
    split: str | None = None,
) -> Any:
    """A split of a data set by `datasets.load_dataset`, or all by name; it raises whatever that
    does.
    """
    try:
        import datasets
    except ImportError:
        raise VievalError(
            "downloading from the Hugging Face Hub requires datasets; "
            f"{install_advice('hub')}"
        ) from None
    return datasets.load_dataset(
        dataset,
        config or None,
        split=split,
        keep_in_memory=False,
    )


def unreachable() -> str:
    """Reason that the hub cannot be reached; empty if it responds. Its own client would
    retry for minutes.

    Offline mode relies on the cache.
    """
    if any(os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")):
        return ""
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        urllib.request.urlopen(
            urllib.request.Request(endpoint, method="HEAD"), timeout=_PATIENCE
        ).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return f"{endpoint} does not respond ({one_line(error)})"
    return ""


def one_line(error: BaseException) -> str:
    """Format an exception as one line."""
    text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]
