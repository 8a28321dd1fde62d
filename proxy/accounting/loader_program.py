"""The program of the process that loads the journals into the ledger's database, with its order and its reports.

It receives one order, the settings of the ledger, and then reports its state every second as a line of JSON. When its
parent closes the link, for any reason, it loads the remaining rows and ends. No signal except SIGKILL ends it earlier,
because systemd sends SIGTERM to every process of a service while the serving processes still write their journals.

It imports little, because it is a program with its own interpreter.
"""

import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from proxy.ledger.ledger_settings import LedgerSettings, LedgerState
from proxy.ledger.loading import LedgerLoading
from proxy.process_name import name_process
from proxy.telemetry.process_log import set_up

REPORT_EVERY: Final = 1.0
"""Seconds between two reports."""

NICENESS: Final = 10
"""The niceness of the process. The scheduler wakes serving processes before it, and leaves it a tenth of a busy core.
In that time it loads many more rows than such a core serves requests."""


AUTOGROUP: Final = Path("/proc/self/autogroup")
"""The niceness of a whole session (sched(7)). If Linux divides the processor among sessions, as it does by default
without process groups for it, the niceness of a process counts only within its session. This program has its own
session."""


def encode_order(settings: LedgerSettings, form: str) -> bytes:
    """Return the order of the process: the ledger, whose address may contain a password, and the form of its log."""
    file = None if settings.file is None else str(settings.file)
    place = (settings.kind, settings.keep, settings.zone, str(settings.journals), file, settings.url)
    return orjson.dumps([form, *place], option=orjson.OPT_APPEND_NEWLINE)


def decode_order(line: bytes) -> tuple[LedgerSettings, str]:
    """Return the parameters of `encode_order` that loading needs."""
    form, kind, keep, zone, journals, file, url = orjson.loads(line)
    return LedgerSettings(kind, keep, zone, Path(journals), None if file is None else Path(file), url), form


def decode_report(line: bytes) -> LedgerState:
    """Return the state in a report."""
    return LedgerState(**orjson.loads(line))


def main(descriptor: int) -> None:
    """Load rows until the other end of the socket pair is closed, and then load all remaining rows."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    name_process("dragoman-ledger")
    with socket.socket(fileno=descriptor) as link:
        link.set_inheritable(False)
        with link.makefile("rb") as told:
            line = told.readline()
        if not line.endswith(b"\n"):
            return
        settings, form = decode_order(line)
        set_up(form)
        let_others_go_first()
        loads = LedgerLoading(settings)
        loads.start()
        while not select.select((link,), (), (), REPORT_EVERY)[0]:
            loads.look()
            _report(link, loads.state)
        loads.stop()
        loads.look()
        _report(link, loads.state)


def let_others_go_first(autogroup: Path = AUTOGROUP) -> None:
    """Lower the priority of the process, and of its session among the sessions."""
    os.nice(NICENESS)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # Linux does not divide the processor among sessions here.
            autogroup.write_text(str(NICENESS), encoding="ascii")


def _report(link: socket.socket, state: LedgerState) -> None:
    """Send the state if the other end is open."""
    try:
        link.sendall(orjson.dumps(state, option=orjson.OPT_APPEND_NEWLINE))
    except ConnectionError:
        return  # The next check of the link notices its end.
