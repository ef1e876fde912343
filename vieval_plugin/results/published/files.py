"""Files of published logs: their repository, commit, place and digest."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import JsonObject, read_yaml

#: The folder of the data folder, and what `vieval prepare` calls it.
NAME = "published_verdicts"

_HOME = Path(__file__).parent


@dataclass(frozen=True)
class PublishedFile:
    """A file of a repository at a commit."""

    #: Repository, as `owner/name`.
    repository: str
    commit: str
    #: Path in the repository.
    path: str
    #: Path below the folder of published verdicts.
    place: str
    #: Its bytes.
    size: int
    #: Digest of its content.
    sha256: str

    def difference(self, body: bytes) -> str:
        """Reason why content differs from this file; empty if it is this file."""
        if len(body) == self.size and hashlib.sha256(body).hexdigest() == self.sha256:
            return ""
        return (
            f"not the file from {self.repository} at commit {self.commit[:7]}: got "
            f"{len(body)} bytes, expected {self.size} with SHA-256 "
            f"{self.sha256[:12]}..."
        )

    def is_there(self, root: Path) -> bool:
        """Return whether the file exists, without checking its content."""
        return isfile(root / self.place)


@cache
def sources() -> dict[str, JsonObject]:
    """Return the description of each repository of published logs, by benchmark."""
    return dict(read_yaml((_HOME / "judges.yaml").read_text(encoding="utf-8")))


@cache
def descriptions() -> dict[str, JsonObject]:
    """Return the description of each benchmark's published judges, by benchmark,
    without logs that serve only replays.
    """
    return {
        benchmark: described
        for benchmark, described in sources().items()
        if "judges" in described
    }


@cache
def published_files() -> tuple[PublishedFile, ...]:
    """Return all files of published judges."""
    repositories = {
        described["repository"]: described for described in sources().values()
    }
    files = []
    with (_HOME / "files.csv").open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            described = repositories[row["repository"]]
            files.append(
                PublishedFile(
                    row["repository"],
                    row["commit"],
                    row["path"],
                    described["place"] + row["path"].removeprefix(described["below"]),
                    int(row["bytes"]),
                    row["sha256"],
                )
            )
    return tuple(files)


@cache
def files_below(folder: str) -> tuple[PublishedFile, ...]:
    """Return the files of a folder, given relative to the folder of published verdicts."""
    return tuple(
        file for file in published_files() if file.place.startswith(f"{folder}/")
    )
