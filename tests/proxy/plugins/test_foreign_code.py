"""Calls of code that is not the gateway's."""

import pytest

from proxy.plugins.foreign_code import Raised, Returned, attempted


def fails() -> None:
    raise ValueError("a prompt")


def test_what_is_raised_is_a_value_that_tells_the_place_and_not_the_text() -> None:
    found = attempted(fails)
    assert isinstance(found, Raised)
    assert str(found).startswith("ValueError at test_foreign_code.py:")
    assert found.error.__traceback__ is None
    assert attempted(lambda: 1) == Returned(1)


def ends() -> None:
    raise SystemExit(3)


def interrupts() -> None:
    raise KeyboardInterrupt


def test_nobody_but_the_operator_ends_the_process() -> None:
    assert isinstance(attempted(ends), Raised)
    with pytest.raises(KeyboardInterrupt):
        attempted(interrupts)
