"""The setup of a process before it serves, and its log about its configuration."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.http_client.connection_pool import ConnectionPool
from proxy.http_client.dialer import Dialer
from proxy.process.load_table import Source
from proxy.process.set_up_process import CONNECTION_OBJECTS, REQUEST_OBJECTS, late_services, log_table, objects_held
from tests.proxy.kit.tables import snapshot


@pytest.mark.smoke
def test_what_stands_before_serving_is_never_looked_through_for_cycles() -> None:
    program = (
        "import gc; from proxy.process.set_up_process import COLLECT_AFTER, tune_garbage_collector;"
        "tune_garbage_collector(); print(gc.get_freeze_count() > 10_000, gc.get_threshold() == COLLECT_AFTER)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["True", "True"]


@pytest.mark.smoke
def test_what_is_in_use_is_no_reason_to_look_for_cycles() -> None:
    program = (
        "import asyncio, gc; from proxy.process import set_up_process as own\n"
        "own.FOLLOW_EVERY = 0.001\n"
        "held, seen = [0, 5000], []\n"
        "def look():\n"
        "    seen.append(gc.get_threshold()[0] - own.COLLECT_AFTER[0])\n"
        "    if not held: raise KeyboardInterrupt\n"
        "    return held.pop()\n"
        "try: asyncio.run(own.collect_by_load(look))\n"
        "except KeyboardInterrupt: print(*seen, gc.get_freeze_count() > 10_000)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["0", "5000", "0", "True"]


def test_requests_and_connections_hold_objects() -> None:
    assert objects_held(0, 0) == 0
    assert objects_held(2000, 5000) == 2000 * REQUEST_OBJECTS + 5000 * CONNECTION_OBJECTS


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
    assert named == f"serving the configuration {tmp_path / 'table.yaml'}"
    assert caplog.records[1].levelname == "WARNING"
    assert embedded


@pytest.mark.parametrize(("scheme", "loads"), [("https", True), ("http", False)])
async def test_the_authorities_are_loaded_after_the_start_if_a_deployment_is_called_by_https(
    scheme: str, loads: bool
) -> None:
    dialer = Dialer(ConnectionPool())
    vendor = f"{{profile: vllm, base_url: '{scheme}://v.example', allow_private: true}}"
    table = f"vendors: {{v: {vendor}}}\nmodels: {{v/m: {{}}}}"
    for work in late_services(dialer, snapshot(table)):
        await work()
    assert (dialer.trusted is not None) is loads
