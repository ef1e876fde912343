"""Training records of models: the samples that they were trained on, and the verdicts
on such samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vieval_plugin.readers.tables import are_texts
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
        if not are_texts(uids):
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
    folders = []
    for name in ("backbones", "scorers"):
        part = source.options.get(name)
        for model in part.values() if isinstance(part, Mapping) else ():
            if isinstance(model, Mapping) and model.get("model"):
                folders.append(path_of(str(model["model"])))
    files = source.options.get("judge_files")
    if isinstance(files, list):
        folders += [path_of(str(file)).parent for file in files]
    records = (folder / TRAINING_RECORD for folder in folders)
    return list(filter(isfile, records))


def was_trained_on(record: Record, uids: frozenset[str]) -> bool:
    """Return whether a record's sample or its group is among the uids; for a contest,
    also any candidate's.
    """
    candidates = map(str, record.candidates)
    return not uids.isdisjoint([str(record.id), record.group, *candidates])
