"""Records: frozen in tests and for type checkers, plain in a running gateway, and otherwise identical."""

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from providers.completion import Choice, Chunk, Usage
from providers.frozen_record import frozen
from tests.support.gateway import ROOT

PLAIN = """
import pickle
from dataclasses import is_dataclass, replace
from importlib import import_module
from pkgutil import walk_packages

import providers, proxy
from providers import completion, dialect, unified_request
from providers.completion import Chunk, Usage
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import TextPrompt

# No frozen dataclass may inherit from a record, which only shows here.
for package in (providers, proxy):
    for module in walk_packages(package.__path__, package.__name__ + "."):
        import_module(module.name)

usage = Usage(1, 2)
assert usage == Usage(1, 2) != Usage(1, 3) and hash(usage) == hash(Usage(1, 2))
assert replace(usage, prompt_tokens=5) == Usage(5, 2)
assert pickle.loads(pickle.dumps(usage)) == usage
assert TextPrompt(("a",), listed=True) == TextPrompt(("a",))
assert hash(TextPrompt(("a",), listed=True)) == hash(TextPrompt(("a",)))
assert not hasattr(Chunk(), "__dict__")
assert CallPlan.__eq__ is object.__eq__ and CallPlan.__hash__ is object.__hash__
match TextPrompt(("a",)):
    case TextPrompt((text,), listed):
        assert (text, listed) == ("a", False)
for module in (completion, dialect, unified_request):
    for name, made in vars(module).items():
        if isinstance(made, type) and is_dataclass(made) and made.__module__ == module.__name__:
            assert not made.__dataclass_params__.frozen, name
print("plain")
"""


@frozen
class _Pair:
    one: int
    other: list[int] = field(default_factory=list, compare=False)


@frozen(eq=False)
class _Identity:
    one: int


@pytest.mark.smoke
def test_a_record_cannot_be_changed_under_test() -> None:
    for made in (_Pair(1), _Identity(1), Chunk(), Usage(1, 2), Choice(0, "", "stop")):
        with pytest.raises(FrozenInstanceError):
            setattr(made, fields(made)[0].name, 2)


@pytest.mark.smoke
def test_records_compare_and_hash_by_their_fields_or_by_identity() -> None:
    assert _Pair(1, [1]) == _Pair(1, [2]) != _Pair(2)
    assert hash(_Pair(1, [1])) == hash(_Pair(1, [2]))
    assert _Identity(1) != _Identity(1)
    assert len({_Identity(1), _Identity(1)}) == 2


def test_records_can_be_replaced_and_pickled() -> None:
    assert replace(_Pair(1), one=2) == _Pair(2)
    pair = pickle.loads(pickle.dumps(_Pair(1, [3])))  # noqa: S301
    assert (pair.one, pair.other) == (1, [3])


def test_a_running_gateway_has_plain_records_that_otherwise_behave_the_same() -> None:
    ran = subprocess.run([sys.executable, "-c", PLAIN], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("plain", "")
