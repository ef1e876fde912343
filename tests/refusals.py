"""The one line with which wrong input is refused."""

import pytest

from vieval_plugin.text.errors import VievalError


def refusal(function, *arguments, **named):
    """What a user reads when a call is refused, which is a line and no more."""
    with pytest.raises((VievalError, SystemExit)) as raised:
        function(*arguments, **named)
    line = str(raised.value)
    assert "\n" not in line
    return line
