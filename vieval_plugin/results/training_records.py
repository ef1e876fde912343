"""Training records of models: the samples that they were trained on, and the verdicts
on such samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vieval_plugin.records import Provenance, Record
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import isdir, isfile, path_of
from vieval_plugin.text.yaml_json import read_json

#: Name of the training record in a model's folder.
TRAINING_RECORD = "training_record.json"


def trained_on(record: Path) -> frozenset[str]:
    """Return the uids that a model was trained on.

    Args:
        record: a folder written by `vieval train`, or the training record in it.

    Raises:
        VievalError: the training record is missing or malformed.
    """
    file = record / TRAINING_RECORD if isdir(record) else record
    try:
        uids = read_json(file.read_bytes())["uids"]
        if not isinstance(uids, list) or not all(isinstance(uid, str) for uid in uids):
            raise ValueError("`uids` must be a list of strings")
    except OSError as error:
        raise VievalError(
            f"{file}: the training record cannot be read ({error.strerror}); create "
            "one with `vieval train`"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise VievalError(
            f"{file}: not a model's training record ({line_of(error, 100)})"
        ) from None
    return frozenset(uids)


def local_training_records(source: Provenance) -> list[Path]:
    """Find the training records in the folders of models in a run's options, if these
    are on this machine.
    """
    parts = [source.options.get(part) for part in ("backbones", "scorers")]
    models = [
        model
        for part in parts
        if isinstance(part, Mapping)
        for model in part.values()
        if isinstance(model, Mapping)
    ]
    records = [
        path_of(str(model["model"])) / TRAINING_RECORD
        for model in models
        if model.get("model")
    ]
    files = source.options.get("judge_files")
    records += (
        [path_of(str(file)).parent / TRAINING_RECORD for file in files]
        if isinstance(files, list)
        else []
    )
    return [record for record in records if isfile(record)]


def was_trained_on(record: Record, uids: frozenset[str]) -> bool:
    """Return whether a record's sample or its group is among the uids; for a contest,
    also any candidate's.
    """
    candidates = map(str, record.candidates)
    names = [str(record.id), record.group, *candidates]
    return not uids.isdisjoint(names)
