"""R20: whatever a vendor writes into Retry-After, it is called neither before that time nor later than the cap."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from typing import Final

from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind
from providers.unified_request import UnifiedRequest
from providers.vendor_text.read_retry_after import read_rate_limit_wait
from proxy.dispatch.exchange import Exchange
from tests.proxy.kit.dispatch_rig import OK, TARGETS, Behaviour, Rig, Worded, outcome_of
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped
from tests.support.nightly import some

HEADERS: Final = 1_000
LEAST, MOST, UNTOLD = 1.0, 60.0, 5.0
"""Seconds for which a deployment's circuit stays open: at least, at most, and if the vendor gave no time."""

WAITED_FOR: Final = 10.0
"""Seconds that a request waits for its only deployment."""

SPREAD: Final = 1.1
"""The factor by which such a wait may be longer than requested."""

ANSWERED: Final = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
NONSENSE: Final = ("", "-1", "NaN", "inf", "1e9", "0x10", "+5", "1_0", "1,5", "soon", "١٢", "12 seconds", "5;q=1", "⁹")


class Hinted(Worded):
    """A dialect that reads the wait as a real one does."""

    @override
    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return Failure(FailureKind.RATE_LIMITED, "slow down", status, retry_after=read_rate_limit_wait(headers, "", {}))


TARGET: Final = replace(TARGETS["a"], dialect=Hinted())


@dataclass(frozen=True, slots=True)
class Hint:
    """Headers, and the seconds in them. `None` if they contain no readable time."""

    headers: Mapping[str, str]
    seconds: float | None

    @property
    def alone(self) -> float:
        """Return the seconds for which the deployment must not be called."""
        return UNTOLD if self.seconds is None else min(max(self.seconds, LEAST), MOST)


def hint(draw: Random) -> Hint:
    """Return any spelling of any wait."""
    far = draw.choice((2, 12, 70, 10**4, 10**9))
    match draw.randrange(5):
        case 0:
            whole = draw.randrange(far)
            return Hint({"retry-after": str(whole)}, whole)
        case 1:
            text = f"{draw.uniform(0, far):.3f}"
            return Hint({"retry-after": text}, float(text))
        case 2:
            thousandths = draw.randrange(far * 1000)
            # If a vendor sends both, the exact one counts.
            return Hint({"retry-after-ms": str(thousandths), "retry-after": "1"}, thousandths / 1000)
        case 3:
            seconds = draw.randrange(-5, min(far, 10**6))
            until = format_datetime(ANSWERED + timedelta(seconds=seconds), usegmt=True)
            return Hint(
                {"retry-after": until, "date": format_datetime(ANSWERED, usegmt=True)}, max(0.0, float(seconds))
            )
        case _:
            return Hint({"retry-after": draw.choice(NONSENSE)}, None)


def limited(headers: Mapping[str, str]) -> Behaviour:
    """Return a rate limit with these headers."""
    return lambda: Body(b"limited", b"", status=429, headers=headers)


@looped("seed", some(range(HEADERS // 100), 4))
def test_a_vendor_is_asked_again_neither_early_nor_later_than_its_cap(seed: int) -> None:
    draw = Random(seed)
    for _ in range(100):
        given = hint(draw)
        rig = Rig({"a": [limited(given.headers), OK]}, draw=draw.random)
        run(asked(rig, given))


async def asked(rig: Rig, given: Hint) -> None:
    """Send one request that is rate limited, and others around the moment when the wait is over."""
    clock = asyncio.get_running_loop().time
    dispatcher = rig.dispatcher()

    def job() -> Exchange[UnifiedRequest]:
        made = rig.job()
        return replace(made, plan=replace(made.plan, targets=(TARGET,)))

    first = await outcome_of(dispatcher, job())
    if given.alone <= WAITED_FOR:
        assert first == "ok", given
        (_, begun), (_, again) = rig.asked
        assert begun + given.alone <= again <= begun + SPREAD * given.alone, given
        return
    assert (first, clock()) == ("rate_limited", 0.0), given
    await asyncio.sleep(given.alone - 0.001)
    assert await outcome_of(dispatcher, job()) == "rate_limit_exceeded", given
    assert len(rig.asked) == 1
    await asyncio.sleep(0.002)
    assert await outcome_of(dispatcher, job()) == "ok", given


def test_the_generated_headers_are_of_every_kind() -> None:
    draw = Random(0)
    hints = [hint(draw) for _ in range(HEADERS)]
    assert {each.seconds is None for each in hints} == {True, False}
    assert {each.alone for each in hints} >= {LEAST, MOST, UNTOLD}
    assert sum(LEAST < each.alone <= WAITED_FOR for each in hints) > HEADERS / 5
    assert sum(WAITED_FOR < each.alone < MOST for each in hints) > HEADERS / 20
