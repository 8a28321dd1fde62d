"""The certificate files that a config file names: they are found, read once, and refused at their position."""

import datetime
from pathlib import Path

import pytest

from config.load_config import Loaded, LoadResult, examine_file, fingerprint, load_file
from config.reading.read_certificates import Pair, UnusableError, bundle, end_of
from tests.support.authority import DAY, LOCAL, Authority
from tests.support.looped import looped

ONE, TWO = Authority().pem().decode(), Authority().pem().decode()

TABLE = """\
version: 1
defaults: {ca_file: company.pem}
vendors:
  v: {ca_file: more/vendor.pem}
  w: {credentials: {oidc: {token_url: "https://id.example", client_id: c, client_secret: "${S}", ca_file: company.pem}}}
models:
  v/m: {ca_file: "", deployments: {eu: {ca_file: "${WHERE}/own.pem"}}}
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.yaml"
    path.write_text(TABLE)
    (tmp_path / "more").mkdir()
    for name in ("company.pem", "own.pem"):
        (tmp_path / name).write_text(ONE)
    (tmp_path / "more" / "vendor.pem").write_text(f"# Größe\n{TWO}\nand {ONE}", encoding="latin-1")
    return path


def load(path: Path) -> Loaded:
    return load_file(path, environment(path))


def examined(path: Path) -> LoadResult:
    return examine_file(path, environment(path))


def environment(path: Path) -> dict[str, str]:
    return {"WHERE": str(path.parent), "S": "secret"}


def test_each_file_is_read_from_beside_the_table_and_known_by_where_it_is_named(table: Path) -> None:
    found = load(table).authorities
    assert {".".join(map(str, path)) for path in found} == {
        "defaults.ca_file",
        "vendors.v.ca_file",
        "vendors.w.credentials.oidc.ca_file",
        "models.v/m.deployments.eu.ca_file",
    }
    assert found[("defaults", "ca_file")] == bundle(ONE)
    assert found[("vendors", "v", "ca_file")].pem.count("BEGIN CERTIFICATE") == 2
    assert "BEGIN" not in repr(found)


def test_a_file_in_an_included_table_starts_there(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "ca.pem").write_text(ONE)
    (tmp_path / "team" / "t.yaml").write_text("vendors: {v: {ca_file: ca.pem}}\n")
    (tmp_path / "t.yaml").write_text("version: 1\ninclude: [team/t.yaml]\nmodels: {v/m: {}}\n")
    assert load(tmp_path / "t.yaml").authorities == {("vendors", "v", "ca_file"): bundle(ONE)}


def test_what_is_around_a_certificate_does_not_count_but_the_certificates_do() -> None:
    assert bundle(f"# a comment\n{ONE}") == bundle(ONE)
    assert bundle(ONE).digest != bundle(TWO).digest != bundle(TWO + ONE).digest


def test_a_changed_file_is_a_change_of_the_table(table: Path) -> None:
    before = load(table)
    assert fingerprint(before.sources) == before.sources.hashes
    assert table.parent / "company.pem" in before.files
    (table.parent / "company.pem").write_text(TWO)
    assert fingerprint(before.sources) != before.sources.hashes
    assert load(table).digest != before.digest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read the file: No such file or directory"),
        ("x" * (2**20 + 1), "cannot read the file: larger than 1024 KiB"),
        ("", "the file holds no certificate; it must be PEM, with -----BEGIN CERTIFICATE-----"),
        ("-----BEGIN PRIVATE KEY-----\nsk-canary\n-----END PRIVATE KEY-----\n", "the file holds no certificate; it"),
        (ONE.replace("MII", "AAA", 1), "the file holds a certificate that cannot be read"),
        (ONE + TWO.replace("MII", "!!!", 1), "the file holds a certificate that cannot be read"),
    ],
)
def test_a_file_without_certificates_is_refused_where_it_is_named(table: Path, content: str | None, said: str) -> None:
    own = table.parent / "own.pem"
    own.unlink()
    if content is not None:
        own.write_text(content)
    found = examined(table)
    (problem,) = found.problems
    assert str(problem).startswith(f"{table}:7:50 models.v/m.deployments.eu.ca_file: {said}")
    assert "canary" not in str(problem)
    # A corrected file changes the fingerprint.
    own.write_text(ONE)
    assert fingerprint(found.sources) != found.sources.hashes
    assert examined(table).problems == ()


@looped("year", [2027, 2049, 2050, 2999])
def test_the_end_of_a_certificate_is_read_from_it(year: int) -> None:
    # From 2050 on, the date is encoded in another form (RFC 5280, 4.1.2.5).
    end = datetime.datetime(year, 12, 31, 23, 59, 58, tzinfo=datetime.UTC)
    first, other = (Authority().pair(*LOCAL, until=until)[0].decode() for until in (end, end - DAY))
    assert end_of(f"a comment\n{first}{other}") == end.timestamp()


def test_the_listener_s_files_start_at_their_table_too_and_the_key_is_not_kept(tmp_path: Path) -> None:
    cert, key = Authority().pair(*LOCAL)
    (tmp_path / "tls").mkdir()
    (tmp_path / "tls" / "cert.pem").write_bytes(cert)
    (tmp_path / "tls" / "key.pem").write_bytes(key)
    path = tmp_path / "t.yaml"
    path.write_text("version: 1\nserver: {tls: {cert: tls/cert.pem, key: tls/key.pem}}\n")
    loaded = load(path)
    found = loaded.pair
    assert found == Pair(tmp_path / "tls" / "cert.pem", tmp_path / "tls" / "key.pem", end_of(cert.decode()))
    assert loaded.files == (path, found.cert, found.key)
    assert key.splitlines()[1].decode() not in repr(loaded)
    (tmp_path / "tls" / "key.pem").write_bytes(Authority().pair(*LOCAL)[1])
    assert fingerprint(loaded.sources) != loaded.sources.hashes


def test_what_no_certificate_can_be_read_from_is_refused() -> None:
    with pytest.raises(UnusableError, match="no certificate"):
        bundle("text")
