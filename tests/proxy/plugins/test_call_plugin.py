"""Calls of plugin code, which is not the gateway's."""

import asyncio

from proxy.plugins.call_plugin import Raised, Returned, attempted
from tests.support.looped import looped


def fails() -> None:
    raise ValueError("a prompt")


def test_what_is_raised_is_a_value_that_tells_the_place_and_not_the_text() -> None:
    found = attempted(fails)
    assert isinstance(found, Raised)
    assert str(found).startswith("ValueError at test_call_plugin.py:")
    assert found.error.__traceback__ is None
    assert attempted(lambda: 1) == Returned(1)


@looped("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_what_is_raised_ends_neither_a_task_nor_the_process(kind: type[BaseException]) -> None:
    def ends() -> None:
        raise kind

    assert isinstance(attempted(ends), Raised)
