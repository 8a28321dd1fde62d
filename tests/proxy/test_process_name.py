"""The name of a process in lists of processes."""

from pathlib import Path

import pytest

from proxy import process_name as module
from proxy.process_name import name_process


class NamelessSystem:
    """A C library without Linux's functions."""


def test_a_system_without_names_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LIBC", NamelessSystem())
    name_process("any")


def test_a_process_is_called_by_its_name() -> None:
    comm = Path("/proc/thread-self/comm")
    before = comm.read_text(encoding="utf-8").strip()
    try:
        name_process("dragoman-worker")
        assert comm.read_text(encoding="utf-8").strip() == "dragoman-worker"
    finally:
        name_process(before)
