"""The program of the process that loads the journals into the ledger's database, and what it is told and reports.

It is told one thing, where the ledger is, and then reports its state every second as a line of JSON. When its link
ends, by whatever becomes of its parent, it loads what is left and ends. No signal but SIGKILL ends it before: systemd
sends SIGTERM to every process of a service while those that serve still write their journals.

What it imports is kept small: it has its own interpreter where it is started as a program.
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
"""The scheduler wakes who serves before this process, and leaves it a tenth of a core that is always busy: many more
rows than such a core answers requests."""


AUTOGROUP: Final = Path("/proc/self/autogroup")
"""The niceness of a whole session (sched(7)). Where Linux divides the processor among sessions, which it does unless
processes are in groups for it, that of a process counts within its session alone; and this program has its own."""


def written_order(settings: LedgerSettings, form: str) -> bytes:
    """Return what the process is told: the ledger, whose address may hold a password, and the form of its log."""
    file = None if settings.file is None else str(settings.file)
    place = (settings.kind, settings.keep, settings.zone, str(settings.journals), file, settings.url)
    return orjson.dumps([form, *place], option=orjson.OPT_APPEND_NEWLINE)


def read_order(line: bytes) -> tuple[LedgerSettings, str]:
    """Return what `written_order` was given, as far as loading needs it."""
    form, kind, keep, zone, journals, file, url = orjson.loads(line)
    return LedgerSettings(kind, keep, zone, Path(journals), None if file is None else Path(file), url), form


def read_report(line: bytes) -> LedgerState:
    """Return the state that a report holds."""
    return LedgerState(**orjson.loads(line))


def main(descriptor: int) -> None:
    """Load until the other end of a socket pair is closed, and what is left then."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    name_process("dragoman-ledger")
    with socket.socket(fileno=descriptor) as link:
        link.set_inheritable(False)
        with link.makefile("rb") as told:
            line = told.readline()
        if not line.endswith(b"\n"):
            return
        settings, form = read_order(line)
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
    """Be nice: to the other processes, and with its session to the other sessions."""
    os.nice(NICENESS)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # sessions are not told apart here
            autogroup.write_text(str(NICENESS), encoding="ascii")


def _report(link: socket.socket, state: LedgerState) -> None:
    """Send the state, if anybody is left to read it."""
    try:
        link.sendall(orjson.dumps(state, option=orjson.OPT_APPEND_NEWLINE))
    except ConnectionError:
        return  # the next look at the link sees its end
