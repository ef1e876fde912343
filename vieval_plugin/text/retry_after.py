"""How long a server asks to be left alone."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def asked_wait(header: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, 0 or more; None where it says nothing readable.

    It holds a number (RFC 9110 has whole ones, servers send fractions too) or an HTTP date.

    >>> asked_wait("1.5")
    1.5
    >>> asked_wait("Wed, 21 Oct 2015 07:28:00 GMT")
    0.0
    >>> asked_wait("soon")
    """
    text = (header or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(date: str) -> float:
    """Seconds from now to a date; NaN where it is none."""
    try:
        then = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    if then.tzinfo is None:  # as RFC 5322 writes a time without a zone that is known, which is UTC
        then = then.replace(tzinfo=UTC)
    return (then - datetime.now(UTC)).total_seconds()
