"""The description of the machine: the processor's name, and whether the Python was optimised."""

import platform
import sys

import pytest

from tests.bench.machine import DEBIAN, Interpreter, interpreter, machine, processor
from tests.support.looped import looped

CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC 7R13\nflags\t: fpu\n\nprocessor\t: 1\nmodel name\t: other\n"


def test_a_processor_is_named_or_its_architecture() -> None:
    assert processor(CPUINFO) == "AMD EPYC 7R13"
    assert processor("processor\t: 0\n") == platform.machine()


@looped(
    ("arguments", "build"),
    [
        ("'--enable-optimizations' '--with-lto'", "optimised, with LTO"),
        ("'--enable-optimizations'", "optimised"),
        (f"'--prefix=/usr' '{DEBIAN}'", "optimised (Debian's package)"),
    ],
)
def test_an_optimised_build_is_told_by_its_arguments(arguments: str, build: str) -> None:
    assert Interpreter("3", arguments, "", {}).build == build


@pytest.mark.parametrize("arguments", ["", "'--enable-shared'"])
def test_any_other_build_is_not_optimised(arguments: str) -> None:
    assert Interpreter("3", arguments, "", {}).build.startswith("NOT OPTIMISED")


def test_this_interpreter_and_this_machine_are_read() -> None:
    found = interpreter(sys.executable)
    assert found.version == platform.python_version()
    assert found.libraries.keys() == {"aiohttp", "orjson"}
    assert machine().cores >= 1
    assert machine().date.endswith("UTC")
