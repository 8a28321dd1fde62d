"""Every alert fires in a real Prometheus if its cause is present, and every panel has data."""

import shutil
import subprocess
import sys

import pytest

from tests.observe.breakages import LASTING, ONE_BY_ONE
from tests.observe.promtool import installed
from tests.observe.shipped import alerts
from tests.support.gateway import ROOT
from tests.support.redis import MISSING


def test_there_is_a_cause_for_every_alert() -> None:
    caused = [alert for breakage in (LASTING, *ONE_BY_ONE) for alert in breakage.alerts]
    assert sorted(caused) == sorted(alerts())


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_what_is_broken_makes_its_alert_fire_and_nothing_is_left_behind() -> None:
    installed("prometheus")
    if shutil.which("redis-server") is None:
        pytest.skip(MISSING)
    command = [sys.executable, "-m", "tests.observe"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
