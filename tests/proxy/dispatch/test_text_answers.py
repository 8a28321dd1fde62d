"""The classes that process responses declare it by their type, and implement every method for it."""

import pytest

from proxy.dispatch.single_attempt import Dispatcher
from proxy.dispatch.text_answers import GuardingAnswers
from proxy.plugins.guarded_answers import GuardedAnswers


def test_plugins_guard_answers_and_the_dispatcher_does_not() -> None:
    assert issubclass(GuardedAnswers, GuardingAnswers)
    assert not issubclass(Dispatcher, GuardingAnswers)


def test_a_guard_has_every_method() -> None:
    class Partial(GuardingAnswers):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Partial()  # type: ignore[abstract]
