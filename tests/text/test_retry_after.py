"""What a server's Retry-After says."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from vieval_plugin.text.untrusted import retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0", 0), (" 7 ", 7), ("2.5", 2.5), ("86400", 86400), ("-3", 0)],
)
def test_a_number_is_seconds_and_never_less_than_none(header, seconds):
    assert retry_after(header) == seconds


UNREAD = ["", " ", "soon", "nan", "inf", "1e999", "Wed, 99 Foo 2015"]


@pytest.mark.parametrize("header", [None, *UNREAD, "31 Dec 99999 00:00"])
def test_what_cannot_be_read_says_nothing(header):
    assert retry_after(header) is None


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-5))])
def test_a_date_is_seconds_from_now(zone):
    later = datetime.now(zone) + timedelta(seconds=100)
    utc = later.astimezone(UTC)
    dates = [format_datetime(later), format_datetime(utc, usegmt=True)]
    for date in (*dates, format_datetime(utc.replace(tzinfo=None))):
        assert retry_after(date) == pytest.approx(100, abs=5)
    assert retry_after(format_datetime(later - timedelta(seconds=200))) == 0
