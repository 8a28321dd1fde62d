"""The classification of addresses."""

from hypothesis import given
from hypothesis import strategies as st

from config.addresses import Reach, address_fault, ledger_fault, listens_on_loopback, reach, redis_fault, url_fault
from tests.support.looped import looped


@looped(
    ("host", "where"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.9.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("localhost", "loopback"),
        ("LOCALHOST.", "loopback"),
        ("api.localhost", "loopback"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("fd12::1", "private"),
        ("8.8.8.8", "public"),
        ("2606:4700::1111", "public"),
        ("169.254.169.254", "forbidden"),
        ("::ffff:169.254.169.254", "forbidden"),
        ("168.63.129.16", "forbidden"),
        ("192.0.0.192", "forbidden"),
        ("100.100.100.200", "forbidden"),
        ("fd20:ce::254", "forbidden"),
        ("fd00:ec2::23", "forbidden"),
        ("0.1.2.3", "forbidden"),
        ("255.255.255.255", "forbidden"),
        ("192.0.0.8", "private"),
        ("192.88.99.1", "private"),
        ("240.0.0.1", "private"),
        ("fec0::1", "private"),
        ("3fff::1", "private"),
        ("4000::1", "private"),
        ("64:ff9b::8.8.8.8", "public"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b::127.0.0.1", "forbidden"),
        ("64:ff9b::169.254.169.254", "forbidden"),
        ("64:ff9b:1::8.8.8.8", "public"),
        ("64:ff9b:1:808:8:800::", "public"),
        ("64:ff9b:1:8:8:808::", "public"),
        ("64:ff9b:1:abcd:8:808:800:0", "public"),
        ("64:ff9b:1:a9fe:a9:fe00::", "forbidden"),
        ("64:ff9b:1:a9:fe:a9fe::", "forbidden"),
        ("64:ff9b:1:abcd:a9:fea9:fe00:0", "forbidden"),
        ("64:ff9b:1:abcd::169.254.169.254", "forbidden"),
        ("64:ff9b:1::192.168.1.1", "private"),
        ("2002:808:808::1", "private"),
        ("2002:a00:1::1", "private"),
        ("2002:a9fe:a9fe::1", "forbidden"),
        ("::8.8.8.8", "private"),
        ("::127.0.0.1", "forbidden"),
        ("::169.254.169.254", "forbidden"),
        ("::ffff:0:127.0.0.1", "forbidden"),
        ("::ffff:168.63.129.16", "forbidden"),
        ("2001:0:808:808::f7f7:f7f7", "private"),
        ("2001:0:a9fe:a9fe::f7f7:f7f7", "forbidden"),
        ("2001:0:808:808::5601:5601", "forbidden"),
        ("2606:4700::5efe:169.254.169.254", "forbidden"),
        ("2606:4700::200:5efe:10.0.0.1", "private"),
        ("2606:4700::200:5efe:8.8.8.8", "public"),
        ("fe80::1", "forbidden"),
        ("fd00:ec2::254", "forbidden"),
        ("0.0.0.0", "forbidden"),
        ("::", "forbidden"),
        ("224.0.0.1", "forbidden"),
        ("127.1", "forbidden"),
        ("2130706433", "forbidden"),
        ("0x7f000001", "forbidden"),
        ("0177.0.0.1", "forbidden"),
        ("a..b", "forbidden"),
        ("", "forbidden"),
        ("a b", "forbidden"),
        ("x" * 300, "forbidden"),
        ("api.openai.com", "unknown"),
        ("vllm", "unknown"),
        ("my_service-1", "unknown"),
    ],
)
def test_a_host_lies_where_its_text_says(host: str, where: Reach) -> None:
    assert reach(host) == where


def test_only_loopback_listens_on_loopback() -> None:
    hosts = ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "10.0.0.1", "gateway", "::127.0.0.1", "2002:7f00:1::"]
    assert [listens_on_loopback(host) for host in hosts] == [True] * 3 + [False] * 6


@looped(
    "url",
    ["https://api.example.com/v1", "http://127.0.0.1:8081/v1", "HTTPS://h", "http://[::1]:80/", "https://a/b%20c"],
)
def test_a_plain_address_is_one(url: str) -> None:
    assert url_fault(url) is None


@looped(
    ("url", "fault"),
    [
        ("", "absolute"),
        ("api.example.com", "absolute"),
        ("ftp://a", "absolute"),
        ("file:///etc/passwd", "absolute"),
        ("https:///v1", "absolute"),
        ("https://a b", "spaces"),
        ("https://a\n.example", "spaces"),
        ("https://ä.example", "spaces"),
        ("https://a:b", "well-formed"),
        ("https://[::1", "well-formed"),
        ("https://a:99999", "well-formed"),
        ("https://a:", "port"),
        ("https://a:0", "port"),
        ("https://user@a", "user name"),
        ("https://user:secret@a", "user name"),
        ("https://a?b", "query"),
        ("https://a?", "query"),
        ("https://a#b", "fragment"),
        ("https://{resource}.example.com", "placeholders"),
        ("https://a/../b", "steps"),
        ("https://a\\b", "backslashes"),
        ("http://169.254.169.254/latest", "no host"),
        ("http://0.0.0.0:8000", "no host"),
        ("http://2130706433/", "no host"),
        ("http://[::ffff:169.254.169.254]/", "no host"),
    ],
)
def test_anything_else_is_refused_without_repeating_it(url: str, fault: str) -> None:
    told = url_fault(url)
    assert told is not None
    assert fault in told
    assert "secret" not in told


@looped(
    ("url", "without", "with_leave"),
    [
        ("https://api.example.com", None, None),
        ("https://8.8.8.8", None, None),
        ("http://8.8.8.8", "https required", "https required"),
        ("http://vllm:8000", "https required", None),
        ("http://127.0.0.1:1", "is a loopback address", None),
        ("https://localhost", "is a loopback address", None),
        ("http://10.0.0.1", "is a private address", None),
        ("https://[fd12::1]/v1", "is a private address", None),
        ("https://[64:ff9b::169.254.169.254]/v1", "names no host", "names no host"),
    ],
)
def test_the_own_network_needs_leave_and_others_https(url: str, without: str | None, with_leave: str | None) -> None:
    for allow_private, expected in ((False, without), (True, with_leave)):
        fault = address_fault(url, allow_private=allow_private)
        assert (fault or "").startswith(expected or "")
        assert bool(fault) == bool(expected)


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert reach(text) in ("loopback", "private", "public", "unknown", "forbidden")
    fault = url_fault(text)
    assert fault is None or fault


@given(st.ip_addresses())
def test_every_address_lies_somewhere_and_a_mapped_one_where_it_maps(address: object) -> None:
    assert reach(str(address)) != "unknown"


@looped(
    "url",
    [
        "redis://cache",
        "redis://cache:6379/0",
        "rediss://user:p%40ss@cache.internal:6380/15",
        "redis://:secret@10.0.0.1/",
        "redis://[::1]:6379",
        "unix:///run/redis.sock",
        "unix://user:secret@/run/redis.sock",
    ],
)
def test_an_address_of_redis_is_one(url: str) -> None:
    assert redis_fault(url) is None


@looped(
    ("url", "fault"),
    [
        ("", "must begin"),
        ("cache:6379", "must begin"),
        ("http://cache", "must begin"),
        ("redis:///0", "must begin"),
        ("redis://:secret@", "must begin"),
        ("unix://", "absolute path"),
        ("unix:///", "absolute path"),
        ("unix://run/redis.sock", "absolute path"),
        ("redis://ca che", "spaces"),
        ("redis://cäche", "spaces"),
        ("redis://:sec\\ret@cache", "backslashes"),
        ("redis://cache:x", "well-formed"),
        ("redis://:se[cret@cache", "well-formed"),
        ("redis://:sec/ret@cache", "well-formed"),
        ("redis://:sec?ret@cache", "well-formed"),
        ("redis://cache?socket_timeout=9", "options"),
        ("unix:///run/redis.sock?db=1", "options"),
        ("redis://cache#secret", "fragment"),
        ("redis://cache/secret", "number of a database"),
        ("redis://cache/0/1", "number of a database"),
        ("redis://cache:0", "port"),
        ("redis://cache:", "port"),
        ("redis://169.254.169.254", "no host"),
    ],
)
def test_any_other_address_of_redis_is_refused_without_repeating_it(url: str, fault: str) -> None:
    told = redis_fault(url)
    assert told is not None
    assert fault in told
    assert "secret" not in told


@given(st.text())
def test_any_text_is_judged_as_an_address_of_redis(text: str) -> None:
    assert redis_fault(text) != ""
    assert redis_fault(f"redis://{text}") != ""


@looped(
    "url",
    [
        "sqlite:ledger.db",
        "sqlite:/var/lib/dragoman/ledger.db",
        "sqlite:../ledger 2.db",
        "postgresql://db.internal/ledger",
        "postgres://u:p%40ss@10.0.0.5:5432/ledger?sslmode=require",
        "postgresql:///ledger?host=/run/postgresql",
        "postgresql://localhost",
    ],
)
def test_a_ledger_is_a_file_or_a_database(url: str) -> None:
    assert ledger_fault(url) is None


@looped(
    ("url", "fault"),
    [
        ("", "must be sqlite:FILE"),
        ("ledger.db", "must be sqlite:FILE"),
        ("mysql://u:secret@h/l", "must be sqlite:FILE"),
        ("postgresql:secret", "names no host"),
        ("postgresql:///secret", "names no host"),
        ("postgresql://u:se cret@h/l", "spaces"),
        ("postgresql://u:se\\cret@h/l", "backslashes"),
        ("postgresql://u:sécret@h/l", "without spaces"),
        ("postgresql://u:se[cret@h/l", "well-formed"),
        ("postgresql://h:port/l", "well-formed"),
        ("postgresql://h:0/l", "port"),
        ("postgresql://h/l#secret", "fragment"),
        ("postgresql://169.254.169.254/l", "no host"),
        ("sqlite:", "must name a file"),
        ("sqlite:folder/", "must name a file"),
        ("sqlite:a\nb", "must name a file"),
        (f"sqlite:{'x' * 1025}", "must name a file"),
        ("sqlite::memory:", "in memory"),
        ("sqlite:///var/l.db", "directly after the colon"),
    ],
)
def test_any_other_ledger_is_refused_without_repeating_it(url: str, fault: str) -> None:
    told = ledger_fault(url)
    assert told is not None
    assert fault in told
    assert "secret" not in told


@given(st.text())
def test_any_text_is_judged_as_a_ledger(text: str) -> None:
    assert ledger_fault(text) != ""
    assert ledger_fault(f"postgresql://{text}") != ""
