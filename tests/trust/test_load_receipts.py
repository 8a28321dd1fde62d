"""The clients of the receipts' load compare the right times. No test checks a duration."""

from collections import Counter
from pathlib import Path

from tests.trust.load_receipts import CLIENTS, Compared, compared

PARTS = Counter(["queue", "attempt1", "backoff", "connect", "cache", "stream"])


async def test_clients_see_every_request_and_every_stream_twice(tmp_path: Path) -> None:
    seen = await compared(tmp_path, 30 * CLIENTS)
    assert (len(seen.beyond), seen.bad) == (40 * CLIENTS, 0)
    assert seen.parts["stream"] == 10 * CLIENTS
    # The gateway's time lies within the client's. Parts are rounded to a hundredth of a millisecond.
    assert min(seen.beyond) > -0.1


def test_what_makes_the_figure_bad() -> None:
    good = [0.5] * 99
    assert Compared([*good, 9.0], PARTS, 0).result.good is False
    assert Compared([*good, 1.9], PARTS, 0).result.good
    assert not Compared([*good, 1.9, -0.2], PARTS, 0).result.good
    assert not Compared(good, PARTS, 1).result.good
    assert "never: queue" in Compared(good, Counter(PARTS.keys() - {"queue"}), 0).result.value
