"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import platformdirs

from vieval_plugin.text.errors import VievalError, unwritable
from vieval_plugin.text.untrusted import exists, has_scheme, isdir, isfile
from vieval_plugin.text.wording import enumeration

#: Name of the list of files that `write_folder` leaves.
LIST = "files.json"

_TRIAL = 1 << 20
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(md|csv|json|html)")
_LONGEST = (
    200  # bytes of a file's name that its unfinished one repeats; file systems take 255
)


def cache_folder() -> Path:
    """Return the folder of VIEval in the user's cache."""
    return Path(platformdirs.user_cache_dir("vieval"))


def write_whole(
    path: Path,
    content: bytes | Iterable[str | bytes],
    option: str = "--out",
    synced: bool = False,
) -> None:
    """Write a file and the folders above it; the old file stays until all of the new
    one is written.

    Args:
        path: where; a file that is there is replaced. Its mode is what the user's umask leaves.
        content: its bytes, or pieces of them or of its text, which is encoded in UTF-8.
        option: what the message of an error tells the user to choose another of.
        synced: whether it is on the disk before it has its name, so that no loss of power leaves it
            empty.

    Raises:
        VievalError: the file cannot be written there.
    """
    pieces = (content,) if isinstance(content, bytes) else content
    with _written(path, pieces, option, synced) as unfinished:
        os.replace(unfinished, path)


def create_whole(path: Path, content: bytes) -> bool:
    """Write a file unless it exists; returns whether it was written.

    Raises:
        VievalError: the file cannot be written there.
    """
    with _written(path, (content,), "--out", synced=True) as unfinished:
        try:
            os.link(unfinished, path)
        except FileExistsError:
            return False
    return True


@contextlib.contextmanager
def _written(
    path: Path, pieces: Iterable[str | bytes], option: str, synced: bool
) -> Iterator[Path]:
    """The unfinished file that is to become a file, with all of its content."""
    with _errors_for_user(path, option):
        unfinished = unfinished_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("xb") as file:
                for piece in pieces:
                    if isinstance(piece, str):  # half a character cannot be kept
                        piece = piece.encode(errors="replace")
                    file.write(piece)
                if synced:
                    file.flush()
                    os.fsync(file)
            yield unfinished
        finally:
            unfinished.unlink(missing_ok=True)


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files to a folder, and remove what an earlier call wrote there and this one does not.

    What is removed is known from the list that each call leaves there, `files.json`: nothing else
    in the folder is touched.

    Args:
        folder: made where it is not there.
        files: what files hold by their names, none with a folder in it.

    Raises:
        VievalError: a file cannot be written there.
    """
    earlier = _names_in_list(folder / LIST)
    for name, content in files.items():
        write_whole(folder / name, [content])
    write_whole(folder / LIST, [json.dumps(sorted(files), indent=1)])
    for name in earlier - set(files) - {LIST}:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _names_in_list(path: Path) -> set[str]:
    """The names in a list that `write_folder` left: of plain files in its folder, whatever
    somebody wrote into it.
    """
    try:
        names = json.loads(path.read_bytes()[:_TRIAL])
    except (OSError, ValueError, RecursionError):
        return set()
    members = names if isinstance(names, list) else []
    texts = [name for name in members if isinstance(name, str)]
    plain_names = filter(_PLAIN.fullmatch, texts)
    return {name for name in plain_names if (path.parent / name).is_file()}


def require_writable(
    path: Path, option: str = "--out", reads: Iterable[Path] = ()
) -> None:
    """Check that a file can be written before its content is paid for, and leave nothing behind.

    Args:
        path: the file; a mebibyte is written beside it and removed.
        option: as for `write_whole`.
        reads: files that it is made from, none of which it may be.

    Raises:
        VievalError: the file cannot be written there, or is one of those.
    """
    sources = filter(os.path.exists, reads if os.path.exists(path) else ())
    if any(os.path.samefile(path, source) for source in sources):
        raise VievalError(
            f"{path} is an input file and would be overwritten; choose another {option}"
        )
    created = [folder for folder in path.parents if not os.path.lexists(folder)]
    with _errors_for_user(path, option):
        trial = unfinished_file(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with trial.open("xb") as file:
                file.write(bytes(_TRIAL))
                os.fsync(file)
        finally:
            with contextlib.suppress(OSError):
                trial.unlink(missing_ok=True)
                for folder in created:
                    folder.rmdir()


def require_suffix(
    path: Path,
    suffixes: Sequence[str],
    option: str = "--out",
) -> None:
    """Raise VievalError for a file whose name says another format than those that are
    written; a name may say none.
    """
    if path.suffix.lower() not in ("", *suffixes):
        endings = enumeration(suffixes, "or")
        raise VievalError(f"{option} must end in {endings}, got {path}")


def require_outputs(
    paths: Mapping[str, Path | None],
    suffixes: Mapping[str, str],
    reads: Iterable[Path],
    kept: Collection[str],
) -> None:
    """Check that files can be written before their content is paid for, and remove earlier ones.

    Args:
        paths: of the files by their options; None for one that is not written.
        suffixes: of their names by their options.
        reads: files that they are made from, none of which they may be.
        kept: options of those that stay until they are replaced.

    Raises:
        VievalError: a file cannot be written, is one of those, or is called as another format.
    """
    for name, suffix in suffixes.items():
        if path := paths[name]:
            require_suffix(path, (suffix,), f"--{name}")  # so it is no image either
            require_writable(path, f"--{name}", reads)
            if name not in kept:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _errors_for_user(path: Path, option: str) -> Iterator[None]:
    """Turn errors of the system into a line for the user. Only a plain file may be replaced."""
    if has_scheme(path):
        raise VievalError(
            f"{option} must be a path on this machine, got an address ({path}); write to a local "
            "path and copy the file"
        )
    try:
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "Is a directory")
            if not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "Not a plain file")
        yield
    except OSError as error:
        raise unwritable(path, error, f"choose another {option}") from None


def require_plain(path: Path) -> None:
    """Raise VievalError for a pipe or a device, which may never end, and gives what it
    has only once.
    """
    if exists(path) and not isfile(path) and not isdir(path):
        raise VievalError(
            f"{path} must be a regular file; save its content to a file and pass that"
        )


def remove_unfinished(paths: Iterable[Path]) -> None:
    """Remove what `write_whole` left of these files when a process was killed, and nothing else
    that ends in .part.
    """
    stems = {(path.parent, _stem(path)) for path in paths}
    for folder in {folder for folder, _ in stems}:
        for part in folder.glob("*.part"):
            if (folder, part.name.rsplit(".", 2)[0]) in stems:
                part.unlink(missing_ok=True)


def unfinished_file(path: Path) -> Path:
    """A new temporary name beside a file."""
    return path.with_name(f"{_stem(path)}.{secrets.token_hex(4)}.part")


def _stem(path: Path) -> str:
    return path.name.encode(errors="surrogateescape")[:_LONGEST].decode(errors="ignore")
