"""Retry timing: how long a request waits, how long an address rests, when a request has had its
tries.

No clock runs here and nothing is sent: times come in as arguments.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field

BACKOFF, LONGEST_BACKOFF = 0.5, 20.0  # seconds before the second try, and before any
# what a server that says "too many requests" is left alone for, even if it says 0
SHORTEST_REST = 1.0
FIRST_REST, LONGEST_REST = 2.0, 30.0  # what it is believed at first, and at most
LONGEST_REST_WHEN_DOWN = (
    8.0  # at most after an error of the server, which may be back at any moment
)
AVOIDED = 5.0
LAST_REQUESTS = 8
MAJORITY = 0.75
DENIED_IN_A_ROW = 20


@dataclass(eq=False)
class Attempts:
    """The tries of a request so far."""

    # States: trying (`tries` grow up to `retries` + 1), and spent, when it is asked whether the
    # server is well. If it is, one more try is made and then the request is given up; if it is
    # away, tries begin anew, as only patience counts then.

    #: Tries after the first.
    retries: int
    #: Number of its tries.
    sends: int = 0
    #: Tries that count: "too many requests" is half a one, and none where most requests get it.
    tries: float = 0.0
    #: Times that the server was found to be well and the request failed all the same.
    vain: int = 0
    #: Times that the server answered something between two absences.
    returns: int = 0
    #: Time at which it was last found to be away.
    last_absence: float | None = None

    @property
    def spent(self) -> bool:
        return self.tries >= self.retries + 1

    def failed(self, limited: bool, with_most: bool) -> None:
        """Note a try that failed: whether by "too many requests", and whether most requests were
        told to wait.
        """
        self.sends += 1
        if not limited:
            self.tries += 1.0
        elif not with_most:
            self.tries += 0.5

    def server_is_well(self) -> bool:
        """Note that a server answers others; whether to give this request up, after one more
        try.
        """
        self.vain += 1
        return self.vain > 1

    def server_is_away(self, now: float, last_answer: float) -> bool:
        """Note that a server does not answer, so that only patience counts; whether to
        give this request up.

        A server that comes and goes would otherwise be asked without end.
        """
        self.returns += (
            self.last_absence is not None and last_answer > self.last_absence
        )
        self.last_absence = now
        self.tries = 0.0
        return self.returns > self.retries

    def backoff(self, jitter: random.Random) -> float:
        """Seconds to wait: they double with each try, give or take half."""
        doublings = min(max(self.tries - 1, 0), 30)
        longest = min(BACKOFF * 2.0**doublings, LONGEST_BACKOFF)
        return float(longest * (0.5 + jitter.random()))

    def retry_after_wait(self, seconds: float, jitter: random.Random) -> float:
        """Seconds to wait where the server named some and yet answers most others.

        It is believed more with each try, and never so much less that it would be hammered.
        """
        shortest = min(SHORTEST_REST, BACKOFF) * (0.5 + jitter.random())
        return max(shortest, min(seconds, self.backoff(jitter)))


@dataclass(eq=False)
class Pace:
    """Even spread of requests over time, at most so many a minute."""

    #: Most requests a minute; None for no limit.
    requests_per_minute: float | None
    #: Time of the next request.
    next_turn: float = 0.0

    def wait(self, now: float) -> float:
        """Take the next turn; the seconds until it comes."""
        if self.requests_per_minute is None:
            return 0.0
        turn = max(now, self.next_turn)
        self.next_turn = turn + 60 / self.requests_per_minute
        return turn - now


@dataclass(eq=False)
class Address:
    """An address of a server."""

    # States: well; suspect after a failed try, when others go first, until it answers; resting,
    # when most of the last requests were told to wait and nothing is sent to it, for longer with
    # each rest in a row.

    #: The address.
    url: str
    #: Requests under way.
    in_flight: int = 0
    #: Time until which nothing is sent to it.
    resting_until: float = 0.0
    #: Time until which others are tried first.
    suspect_until: float = 0.0
    #: Rests since it last answered.
    rests: int = 0
    #: True once it has answered anything.
    has_answered: bool = False
    #: Refusals in a row that say nothing of the request, such as of a key.
    denied: int = 0
    #: The last requests, True where one was told to wait.
    _told_to_wait: OrderedDict[Attempts, bool] = field(default_factory=OrderedDict)

    def doubtful(self, now: float) -> bool:
        """Return whether others go first: it failed just now, or failed last and a request is
        finding out how it is.
        """
        return self.suspect_until > now or (
            self.suspect_until > 0 and self.in_flight > 0
        )

    def note_sent(self, request: Attempts) -> None:
        """Note that a request goes there; of the last few it is remembered whether they were
        told to wait.
        """
        self._told_to_wait.pop(request, None)
        self._told_to_wait[request] = False
        if len(self._told_to_wait) > LAST_REQUESTS:
            self._told_to_wait.popitem(last=False)

    def note_answer(self) -> None:
        """Note an answer."""
        self.suspect_until = 0.0
        self.rests = 0
        self.denied = 0
        self.has_answered = True

    def denies(self) -> bool:
        """Note a refusal that need not be about the request; whether it is about them all."""
        self.denied += 1
        return not self.has_answered or self.denied >= DENIED_IN_A_ROW

    def asks_most_to_wait(self, request: Attempts) -> bool:
        """Note that a request was told to wait; whether most of the last ones were.

        Those under way count as others: of many that go out at once the refused are told first.
        """
        if request in self._told_to_wait:
            self._told_to_wait[request] = True
        return sum(self._told_to_wait.values()) >= MAJORITY * len(self._told_to_wait)

    def start_rest_period(
        self,
        seconds: float,
        now: float,
        jitter: random.Random,
        limited: bool,
    ) -> None:
        """Leave the address alone for as long as it asks; it is believed more with each rest in a
        row.

        `limited` says that it counts requests; what answers with an error instead is asked again
        soon.

        One that asks for no time, or none to speak of, is left alone for longer each time too.
        Replies to what was sent before a rest began do not prolong it.
        """
        if self.resting_until > now:
            return
        wait = min(seconds, FIRST_REST * 2.0 ** min(self.rests, 10))
        if (
            seconds < SHORTEST_REST
        ):  # the first are short: what was let through may still be at work
            doublings = min(max(self.rests - 2, 0), 10)
            wait = SHORTEST_REST * 2.0**doublings * (0.75 + 0.5 * jitter.random())
        longest = LONGEST_REST if limited else LONGEST_REST_WHEN_DOWN
        self.resting_until = now + min(wait, longest)
        self.rests += 1

    def rest_left(self, now: float) -> float:
        return max(self.resting_until - now, 0.0)
