"""Reading the files of a configuration."""

import os
from pathlib import Path

import pytest

from config.reading.table_files import SourceFiles, UnreadableError, current_hashes, digest, others_may_write


def test_what_was_read_is_remembered_in_order(tmp_path: Path) -> None:
    table, secret = tmp_path / "t.yaml", tmp_path / "secret"
    table.write_text("version: 1\n")
    secret.write_text("s\n")
    files = SourceFiles()
    assert files.read_yaml(table) == "version: 1\n"
    assert files.read_secret(secret) == "s"
    assert files.paths == (table, secret)
    assert current_hashes(files.paths) == files.hashes


def test_what_could_not_be_read_is_remembered_as_it_was(tmp_path: Path) -> None:
    missing, large = tmp_path / "missing", tmp_path / "large"
    large.write_bytes(b"x" * (2**16 + 1))
    files = SourceFiles()
    for path in (missing, large):
        with pytest.raises(UnreadableError):
            files.read_secret(path)
    assert files.paths == (missing, large)
    assert current_hashes(files.paths) == files.hashes
    missing.write_text("here")
    assert current_hashes(files.paths) != files.hashes


@pytest.mark.parametrize(
    ("content", "text"), [("s\n", "s"), ("s\r\n", "s"), ("s", "s"), (" s \n\n", " s "), ("a\nb\n", "a\nb")]
)
def test_a_secret_loses_the_line_breaks_at_its_end_only(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "s").write_bytes(content.encode())
    assert SourceFiles().read_secret(tmp_path / "s") == text


def test_a_pem_file_may_have_comments_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"# caf\xe9\nA\n")
    files = SourceFiles()
    assert files.read_pem(tmp_path / "ca.pem") == "# caf\ufffd\nA\n"
    assert current_hashes(files.paths) == files.hashes


def test_what_cannot_be_read_is_reported_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"name: caf\xe9")
    (tmp_path / "large").write_bytes(b"x" * (2**20 + 1))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reasons = {
        tmp_path / "missing": "No such file or directory",
        tmp_path: "not a regular file",
        fifo: "not a regular file",
        tmp_path / "latin": "not UTF-8: bad byte at offset 9",
        tmp_path / "large": "larger than 1024 KiB",
        tmp_path / "nul\0": "its name holds a NUL character",
    }
    for path, reason in reasons.items():
        with pytest.raises(UnreadableError) as caught:
            SourceFiles().read_yaml(path)
        assert str(caught.value) == reason


def test_a_secret_may_be_64_kib(tmp_path: Path) -> None:
    secret = tmp_path / "s"
    secret.write_text("x" * 2**16)
    assert len(SourceFiles().read_secret(secret)) == 2**16
    secret.write_text("x" * (2**16 + 1))
    with pytest.raises(UnreadableError, match="larger than 64 KiB"):
        SourceFiles().read_secret(secret)


def test_a_table_of_exactly_1_mib_is_read(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"#" * 2**20)
    assert len(SourceFiles().read_yaml(tmp_path / "t")) == 2**20


def test_the_digest_follows_names_and_contents_and_not_the_order() -> None:
    one, two = Path("a"), Path("b")
    assert digest({one: "1", two: "2"}) == digest({two: "2", one: "1"})
    assert digest({one: "1", two: "2"}) != digest({one: "2", two: "1"})


def test_a_file_that_is_gone_changes_the_hashes(tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.write_text("x")
    before = current_hashes([table])
    table.unlink()
    assert current_hashes([table]) != before


def test_a_file_others_may_write_is_noticed(tmp_path: Path) -> None:
    secret = tmp_path / "s"
    secret.write_text("x")
    secret.chmod(0o644)
    assert not others_may_write(secret)
    secret.chmod(0o666)
    assert others_may_write(secret)
    assert not others_may_write(tmp_path / "missing")


# Copies --------------------------------------------------------------------------------------------------------------


def test_copies_give_what_was_read_whatever_became_of_the_files(tmp_path: Path) -> None:
    table, secret = tmp_path / "t.yaml", tmp_path / "secret"
    table.write_text("version: 1\n")
    secret.write_text("s\n")
    files = SourceFiles()
    files.read_yaml(table)
    files.read_secret(secret)
    pattern = str(tmp_path / "*.yaml")
    assert files.matching(pattern) == (table,)
    copies = files.copies()
    table.unlink()
    secret.write_text("other\n")
    again = SourceFiles(copies)
    assert again.read_yaml(table) == "version: 1\n"
    assert again.read_secret(secret) == "s"
    assert again.matching(pattern) == (table,)
    assert (again.hashes, again.patterns) == (files.hashes, files.patterns)
    assert again.copies() == copies


def test_what_was_not_read_has_no_copy(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("version: 1\n")
    files = SourceFiles(SourceFiles().copies())
    assert files.matching(str(tmp_path / "*")) == ()
    with pytest.raises(UnreadableError, match="there is no copy of it"):
        files.read_yaml(tmp_path / "t")


def test_copies_do_not_show_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("sk-canary")
    files = SourceFiles()
    files.read_secret(tmp_path / "s")
    assert "sk-canary" not in repr(files.copies())
