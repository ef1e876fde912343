"""The programs under attack, each a process of its own, as a user starts them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import split

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|Task exception was never retrieved|was never awaited"
)
# bytes of address space: whatever fills that would have filled the machine
_MEMORY = 12 << 30


@dataclass
class Limits:
    """The limits of every client: seconds without a byte, tries, and seconds without an answer."""

    timeout: float = 2.0
    retries: int = 3
    patience: float = 60.0

    @property
    def longest_question(self) -> float:
        """Seconds that all tries of one question may take, with doubling waits between them."""
        waits = (min(0.5 * 2.0**tried, 20.0) for tried in range(self.retries))
        return 1.5 * sum(waits) + (self.retries + 1) * 2 * self.timeout


LIMITS = Limits()


@dataclass
class Ended:
    """How a process ended: its exit code (negative: a signal), what it printed, and its time."""

    code: int
    out: str
    err: str
    seconds: float
    timed_out: bool = False

    @property
    def said(self) -> str:
        return self.out + self.err

    @property
    def tracebacks(self) -> int:
        return len(_TRACEBACK.findall(self.said))

    @property
    def last_line(self) -> str:
        return (self.err.strip() or self.out.strip() or "-").splitlines()[-1][:200]


@dataclass
class Client:
    """A process under way."""

    process: subprocess.Popen[str]
    prints: tuple[Path, Path]
    key: str
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def running(self) -> bool:
        """Whether it runs still; when it ended is known as well as this is asked often."""
        if self.process.poll() is None:
            return True
        self.ended = self.ended or time.monotonic()
        return False

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process and to whatever it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait(self, seconds: float) -> Ended:
        """How it ended; it is killed after so many seconds since it began."""
        timed_out = False
        try:
            self.process.wait(max(0.1, seconds - (time.monotonic() - self.began)))
        except subprocess.TimeoutExpired:
            timed_out = True
            self.kill()
            self.process.wait()
        took = (self.ended or time.monotonic()) - self.began
        out, err = (path.read_text(errors="replace") for path in self.prints)
        return Ended(self.process.returncode, out, err, took, timed_out)


def all_ended(clients: Sequence[Client], seconds: float) -> list[Ended]:
    """How several clients ended, in order; those that have not are killed after so many seconds."""
    until, under_way = time.monotonic() + seconds, list(clients)
    while under_way and time.monotonic() < until:
        time.sleep(0.05)
        under_way = [client for client in under_way if client.running()]
    return [client.wait(0.0) for client in clients]


class Workshop:
    """Starts clients in a folder of their own, each with its own key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: list[str] = []
        self._lock = threading.Lock()

    def start(self, command, options, wrapped="", own_mounts=False):
        """Start a command; `wrapped` is shell code before it, which may mount with `own_mounts`."""
        with self._lock:
            number = len(self.keys)
            self.keys.append(f"sk-attack-{number:04d}-{os.urandom(8).hex()}")
        prints = self.folder / f"{number:04d}.out", self.folder / f"{number:04d}.err"
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"OPENAI_API_KEY": self.keys[-1], "VIEVAL_CONFIG": str(options)}
        cache = str(self.folder / "cache")
        environment |= {"XDG_CACHE_HOME": cache, "CUDA_VISIBLE_DEVICES": ""}
        environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        environment["TOKENIZERS_PARALLELISM"] = "false"
        # by a shell, as code between fork and exec is not safe where threads run
        line = f'ulimit -v {_MEMORY >> 10} && {wrapped or "true"} && exec "$@"'
        mounting = ("unshare", "-rm") if own_mounts else ()
        whole = [*mounting, "sh", "-c", line, "sh", *map(str, command)]
        with prints[0].open("w") as out, prints[1].open("w") as err:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            about = {"cwd": self.folder, "start_new_session": True, "text": True}
            process = subprocess.Popen(whole, env=environment, **pipes, **about)
        return Client(process, prints, self.keys[number])

    def leaked(self) -> list[str]:
        """Files below the folder in which a key stands."""
        keys = b"|".join(re.escape(key.encode()) for key in self.keys)
        wanted = re.compile(keys or b"(?!)")
        paths = (path for path in self.folder.rglob("*") if not path.is_symlink())
        files = (path for path in paths if path.is_file())
        leaking = (path for path in files if wanted.search(path.read_bytes()))
        return [str(path.relative_to(self.folder)) for path in leaking]


def score(samples, out, judge="viescore"):
    command = [sys.executable, *split("-m vieval_plugin score"), samples]
    return [*command, "--judge", judge, "--out", out]


def lmms_eval(tasks, limit, out):
    line = f"-m lmms_eval --model vieval_openai --tasks {tasks} --limit {limit}"
    return [sys.executable, *split(line), "--output_path", out, "--log_samples"]


def options(path, base_url, store, concurrent=64, **backbone):
    """Write an options file (JSON is YAML) in which everything is quick, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    judge = {"model": "attack", "base_url": base_url, "num_concurrent": concurrent}
    judge |= {**vars(LIMITS), "sight_check": False, **backbone}
    document = {"store": {"path": str(store)}, "backbones": {"judge": judge}}
    path.write_text(json.dumps({**document, "statistics": {"draws": 10}}))
    return path
