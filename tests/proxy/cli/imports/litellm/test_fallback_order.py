"""The order of nested fallbacks. `test_routes` tests it in routes."""

from proxy.cli.imports.endpoints import MAX_TARGETS
from proxy.cli.imports.litellm.fallback_order import fallback_order
from tests.support.looped import looped


@looped(
    ("chains", "order"),
    [
        ({}, ""),
        ({"a": "bcd"}, "bcd"),
        ({"a": "bc", "b": "d"}, "bdc"),
        ({"a": "a"}, ""),
        ({"a": "b", "b": "ac", "c": "ab"}, "bc"),
        ({"a": "b", "b": "c", "c": "d", "d": "e", "e": "f", "f": "g"}, "bcdef"),
        ({"a": "bcdefgh", "g": "i"}, "bcdefgh"),
    ],
)
def test_order(chains: dict[str, str], order: str) -> None:
    assert "".join(fallback_order("a", lambda name: chains.get(name, ""))) == order


def test_a_web_of_fallbacks_stays_small() -> None:
    names = [str(number) for number in range(200)]
    assert len(fallback_order("0", lambda name: names)) == MAX_TARGETS
