"""The bench of limits and the ledger by turns: the parts that are on in each turn, and the lines of figures."""

from types import SimpleNamespace

import pytest

from tests.bench.limits_by_turns import BOTH, LEDGER, LIMITS, NEITHER, USES, Switches, lines


def test_each_turn_has_what_its_name_says() -> None:
    limiter, free, ledger = SimpleNamespace(), SimpleNamespace(), SimpleNamespace(name="ledger")
    gateway = SimpleNamespace(generation=SimpleNamespace(_limits=limiter))
    observer = SimpleNamespace(_observers=(ledger, SimpleNamespace(name="log")))
    seen = {}
    for name, use in Switches(gateway, limiter, free, observer).uses().items():  # type: ignore[arg-type]  # stand-ins
        use()
        seen[name] = (gateway.generation._limits is limiter, ledger in observer._observers)
    assert seen == USES == {NEITHER: (False, False), LEDGER: (False, True), LIMITS: (True, False), BOTH: (True, True)}


@pytest.mark.parametrize(("both", "verdict"), [(113.0, "holds"), (114.0, "MISSED")])
def test_limits_are_compared_with_a_request_that_has_all_else(both: float, verdict: str) -> None:
    found = {NEITHER: [100.0], LEDGER: [110.0], LIMITS: [104.0], BOTH: [both]}
    said = lines(found)
    assert said[0] == "a request with neither: 100.0 µs of CPU"
    assert said[1] == "with the ledger: +10.0 µs, +10.0%"
    assert said[2] == "with all limits: +4.0 µs, +4.0%"
    assert said[3].endswith(f"(at most 3%: {verdict})")
