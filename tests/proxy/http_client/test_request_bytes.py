"""The head of a call: the same lines as in the dry run, and none of another call."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.target import Retries
from providers.vendor_credential import Credential
from proxy.http_client.request_bytes import CallHeads
from proxy.upstream.request_headers import DEFAULT_HEADERS, call_headers
from tests.proxy.kit.transport_calls import TARGET, call
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


def head(heads: CallHeads, request: UpstreamRequest, request_id: str = "req-1", fresh: bool = False) -> list[str]:
    """Return the lines of a head."""
    data = heads.of(request).bytes_for(request, request_id, fresh)
    assert data.endswith(b"\r\n\r\n")
    return data.decode().split("\r\n")[:-2]


def fields(lines: list[str]) -> dict[str, str]:
    found = dict(line.split(": ", 1) for line in lines[1:])
    assert len(found) == len(lines) - 1
    return {name.lower(): value for name, value in found.items()}


def test_the_lines_are_those_that_a_dry_run_shows() -> None:
    request = call("http://h.example:81/a?b=%2f", headers={"X-Own": "1", "user-agent": "client/1"})
    lines = head(CallHeads(), request)
    assert lines[0] == "POST /a?b=%2f HTTP/1.1"
    shown = {**DEFAULT_HEADERS, "Host": "h.example:81", "Content-Length": "2"}
    for name, value in call_headers(request, TARGET.credential.headers(), "req-1").items():
        shown = {each: kept for each, kept in shown.items() if each.lower() != name.lower()} | {name: value}
    assert fields(lines) == {name.lower(): value for name, value in shown.items()}


def test_what_is_the_same_is_put_together_once() -> None:
    heads = CallHeads()
    first = heads.of(call("http://h/"))
    assert heads.of(call("http://h/", body=b"other")) is first
    assert heads.of(call("http://h/", target=replace(TARGET))) is first


KEY = Credential("bearer", key=SecretStr("sk-other"))
CHANGES = {
    "url": (call("http://h/other"), "POST /other HTTP/1.1"),
    "method": (replace(call("http://h/"), method="PUT"), "PUT / HTTP/1.1"),
    "headers": (call("http://h/", headers={"X-Own": "2"}), "X-Own: 2"),
    "content type": (replace(call("http://h/"), content_type="text/plain"), "Content-Type: text/plain"),
    "credential": (call("http://h/", replace(TARGET, credential=KEY)), "Authorization: Bearer sk-other"),
}


@looped("name", CHANGES)
def test_whatever_changes_is_sent(name: str) -> None:
    heads = CallHeads()
    before = head(heads, call("http://h/"))
    request, line = CHANGES[name]
    for _ in range(2):
        assert line in head(heads, request)
        assert line not in before
        assert head(heads, call("http://h/")) == before


def test_targets_that_may_not_share_connections_do_not() -> None:
    heads = CallHeads()
    plain = heads.of(call("http://h/")).to
    for changed in (replace(TARGET, allow_private=False), replace(TARGET, retries=Retries(3, "strict"))):
        assert heads.of(call("http://h/", changed)).to != plain
    assert heads.of(call("https://h/")).to != plain


def test_a_call_without_a_body_says_so_unless_it_gets_something() -> None:
    heads = CallHeads()
    assert fields(head(heads, call("http://h/", body=b"")))["content-length"] == "0"
    assert "content-length" not in fields(head(heads, replace(call("http://h/", body=b""), method="GET")))


def test_on_a_fresh_connection_the_vendor_may_close() -> None:
    assert fields(head(CallHeads(), call("http://h/"), fresh=True))["connection"] == "close"


@pytest.mark.parametrize("port", ["", ":443"])
def test_a_host_is_named_without_the_port_that_goes_without_saying(port: str) -> None:
    assert fields(head(CallHeads(), call(f"https://h.example{port}/")))["host"] == "h.example"


def test_nothing_makes_two_lines_of_one() -> None:
    heads = CallHeads()
    for split in ("a\r\nHost: evil", "a\nb", "a\0b"):
        with pytest.raises(ValueError, match="line"):
            head(heads, call("http://h/", headers={"X-Own": split}))
        with pytest.raises(ValueError, match="splits"):
            head(heads, call("http://h/"), request_id=split)
    with pytest.raises(ValueError, match="line"):
        head(heads, call("http://h/a b"))


def test_no_credential_shows_in_a_repr() -> None:
    made = CallHeads().of(call("http://h/"))
    assert b"sk-operator" in made.lines
    assert "sk-operator" not in repr(made)


def test_an_id_that_names_an_address_is_no_address_for_an_engine() -> None:
    address = "prefill_addr_10.0.0.1:1234"
    assert fields(head(CallHeads(), call("http://h/"), address))["x-request-id"] == call_headers(
        call("http://h/"), {}, address
    ).get("x-request-id")
