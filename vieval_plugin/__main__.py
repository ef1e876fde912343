"""`vieval` and `python -m vieval_plugin`: the command, which Ctrl-C ends quietly from its first
moment to its last.
"""

import signal
import sys


def main() -> int:
    """Run the command line; returns its exit code.

    While its modules are imported, and after its end, there is nothing to end in order, and Ctrl-C
    ends the process as the system does.
    """
    ours = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # which it is not where Ctrl-C is ignored
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from vieval_plugin.cli import main as command

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = command()
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(main())
