"""Processes of their own that judge, seen from their parent.

They are started as commands and not by `multiprocessing`, which would run the main module of whoever starts them again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing.connection import Pipe
from typing import TYPE_CHECKING

from vieval_plugin.errors import VievalError

if TYPE_CHECKING:
    from vieval_plugin.run.shards.worker import ShardRun

_MODULE = "vieval_plugin.run.shards.child_process"
JUDGE, WORK = "judge", "work"
"""What a child does: judge a sample at a time, or the shards of the passes that it asks for."""
_PATIENCE = 20.0  # seconds in which a child that is told to end does so


class Child:
    """A child process, and the connection to it."""

    def __init__(self, task: str, run: ShardRun) -> None:
        if os.name == "nt":
            raise VievalError("workers in processes of their own need Linux or macOS; leave out --processes")
        self.connection, theirs = Pipe()
        handle = theirs.fileno()
        command = [sys.executable, "-m", _MODULE, task, str(handle)]
        # a Ctrl-C of the terminal is for the parent, which ends its children in order
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(command, pass_fds=[handle], start_new_session=True, env=environment)
        theirs.close()
        self.connection.send(run)

    def end(self) -> int:
        """Have the process end, and wait until it has; its exit code."""
        self.connection.close()
        if self.process.poll() is None:
            try:
                self.process.wait(0.5)
            except subprocess.TimeoutExpired:
                self.process.terminate()
        try:
            return self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
