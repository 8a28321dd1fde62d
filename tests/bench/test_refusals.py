"""The cost of a refusal: the refused request, and the count."""

from tests.bench.refusals import TURN, TURNS, cpu_of, refusing


def test_every_request_is_refused_and_counted() -> None:
    asked: list[None] = []
    refuse = refusing()

    def counted() -> None:
        refuse()
        asked.append(None)

    assert cpu_of(counted) > 0
    assert len(asked) == TURNS * TURN
