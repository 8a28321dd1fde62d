"""What a process sets up before it serves, and what it logs of its table."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.process.load_table import Source
from proxy.process.set_up_process import log_table


def test_what_stands_before_serving_is_never_looked_through_for_cycles() -> None:
    program = (
        "import gc; from proxy.process.set_up_process import COLLECT_AFTER, tune_garbage_collector;"
        "tune_garbage_collector(); print(gc.get_freeze_count() > 10_000, gc.get_threshold() == COLLECT_AFTER)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["True", "True"]


def test_what_a_fork_may_share_is_loaded() -> None:
    program = (
        "import sys; from proxy.process.set_up_process import load_shareable; load_shareable();"
        "print('encodings.idna' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["True"]


def test_the_log_says_which_table_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("dragoman")
    with caplog.at_level(logging.INFO, "dragoman"):
        log_table(log, Source(tmp_path / "table.yaml", {}))
        log_table(log, Source(None, {}))
    named, embedded = caplog.messages
    assert named == f"serving the table {tmp_path / 'table.yaml'}"
    assert caplog.records[1].levelname == "WARNING"
    assert embedded
