"""Every listed mechanism exists in the source, and each can be switched off in a process of its own."""

import subprocess
import sys

import pytest

from tests.bench.ablation.mechanisms import MECHANISMS, Mechanism
from tests.support.gateway import ROOT


def test_a_mechanism_that_is_gone_has_no_row() -> None:
    assert [each.name for each in MECHANISMS if not each.stands] == []
    assert len({each.name for each in MECHANISMS}) == len(MECHANISMS)


def test_what_cannot_be_switched_off_says_why() -> None:
    assert [each.name for each in MECHANISMS if bool(each.patches) == bool(each.reason)] == []


def test_what_the_source_lacks_does_not_stand() -> None:
    assert Mechanism("a", "a", ("proxy/nobody.py",)).stands is False


@pytest.mark.timeout(120)
def test_each_is_switched_off() -> None:
    names = [each.name for each in MECHANISMS if each.patches]
    code = (
        "import os, sys\n"
        "from tests.bench.ablation.mechanisms import BY_NAME\n"
        "from tests.bench.ablation.switches import switch_off\n"
        "import proxy.process.assemble_app\n"
        "for name in sys.argv[1:]:\n"
        "    if not os.fork():\n"
        "        switch_off(BY_NAME[name])\n"
        "        os._exit(0)\n"
        "    if os.wait()[1]:\n"
        "        sys.exit(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *names], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
