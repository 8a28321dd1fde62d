"""The template sets up the ordered program."""

import os
from pathlib import Path

import pytest

from tests.support.forked_program import ROOT, TEMPLATE, ForkedProcess

SHOW = """
import os, sys
paths = {number: "/proc/self/fd/" + number for number in os.listdir("/proc/self/fd")}
held = sorted(number for number, path in paths.items() if os.path.exists(path) and ".so" not in os.path.realpath(path))
print(sys.argv[1:], os.getcwd(), os.environ.get("NAME"), held, file=sys.stderr)
print(os.getppid(), os.getsid(0) == os.getpid(), "proxy.process.assemble_app" in sys.modules)
"""
"""The output leaves out the descriptor of the listing itself, and the descriptor of its own file that libffi 3.5 leaves
open."""


def shown(folder: Path, *arguments: str, environment: dict[str, str] | None = None, session: bool = False) -> list[str]:
    """Return the lines of a program's outputs, the first output's lines first."""
    said, told = folder / "said", folder / "told"
    with said.open("wb") as out, told.open("wb") as err:
        pid = TEMPLATE.start(
            arguments, folder, environment or {}, {0: 0, 1: out.fileno(), 2: err.fileno()}, session=session
        )
    assert ForkedProcess(pid).wait(30.0) == 0, told.read_text()
    return [*said.read_text().splitlines(), *told.read_text().splitlines()]


@pytest.mark.parametrize("session", [False, True])
def test_a_program_is_this_process_s_child_with_what_it_was_given_alone(tmp_path: Path, session: bool) -> None:
    own, given = shown(tmp_path, "-c", SHOW, "a", "b", environment={"NAME": "some"}, session=session)
    assert own == f"{os.getpid()} {session} True"
    assert given == f"['a', 'b'] {tmp_path} some ['0', '1', '2']"


def test_a_module_is_run_as_the_program(tmp_path: Path) -> None:
    assert shown(tmp_path, "-m", "proxy", "version") == ["dragoman 0.1.0"]


def test_a_hook_on_the_path_is_run_first(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hook')\n")
    lines = shown(tmp_path, "-m", "proxy", "version", environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert lines == ["hook", "dragoman 0.1.0"]
