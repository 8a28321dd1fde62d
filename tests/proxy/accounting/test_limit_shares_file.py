"""The shares of limits survive a restart, and invalid files are ignored."""

from pathlib import Path

import pytest

from proxy.accounting.limit_shares_file import SHARE_STEPS, ShareFile, read_shares, write_shares


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "shares.json"
    shares = {"team search requests minute": (0.25, 8), "key a/b tokens minute": (1.0, 1)}
    write_shares(path, shares)
    write_shares(path, shares)
    assert read_shares(path) == shares
    assert [each.name for each in tmp_path.iterdir()] == ["shares.json"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"\xff\xfe", b"[" * 100_000])
def test_a_file_of_another_kind_is_no_division(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "shares.json"
    path.write_bytes(data)
    assert read_shares(path) == {}


def test_entries_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "shares.json"
    path.write_text(
        '{"a":[0.5,2],"b":[2,2],"c":[0.5,0],"d":[NaN,2],"e":["x",2],"f":[0.5],"g":[0.5,true],"h":null,"i":[-1,2]}',
        encoding="utf-8",
    )
    assert read_shares(path) == {"a": (0.5, 2)}


def test_no_file_is_no_division(tmp_path: Path) -> None:
    assert read_shares(tmp_path / "none") == {}


def test_a_file_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.accounting.limit_shares_file.MAX_FILE_BYTES", 10)
    write_shares(tmp_path / "shares.json", {"a": (0.5, 2)})
    assert read_shares(tmp_path / "shares.json") == {}


def test_it_is_written_when_a_share_or_the_number_of_processes_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "journals" / "shares.1.json"
    shares = {"processes": (0.5, 2)}
    file = ShareFile(path, lambda: shares)
    for changed, written in (
        ({}, True),
        ({"t concurrent": (0.5, 2)}, True),
        ({}, False),
        ({"t concurrent": (0.5 + 0.5 / SHARE_STEPS, 2)}, False),
        ({"t concurrent": (0.5 - 0.5 / SHARE_STEPS, 2)}, True),
        ({"processes": (0.25, 4)}, True),
    ):
        shares.update(changed)
        path.unlink(missing_ok=True)
        assert file.save() >= 0
        assert path.exists() is written
    shares.clear()
    file.save()
    assert read_shares(path) == {}
