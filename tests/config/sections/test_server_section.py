"""The `server` section."""

import pytest
from pydantic import ValidationError

from config.sections.server_section import ServerSection
from tests.support.looped import looped


def server(**fields: object) -> ServerSection:
    return ServerSection.model_validate(fields)


def test_nothing_written_is_one_process_on_loopback() -> None:
    found = server()
    assert (found.host, found.port, found.workers, found.tls, found.shared) == ("127.0.0.1", 8080, 1, None, None)
    assert (found.admin.host, found.admin.port, found.admin.token) == ("127.0.0.1", 9091, None)


def test_an_empty_token_is_none() -> None:
    assert server(admin={"token": ""}).admin.token is None
    token = server(admin={"token": "t"}).admin.token
    assert token is not None
    assert token.get_secret_value() == "t"


def test_hosts_and_origins_are_kept_as_browsers_send_them() -> None:
    found = server(
        hosts=["LLM.Example.com."], cors={"origins": ["HTTPS://App.Example.com:443"]}, admin={"hosts": ["[::2]"]}
    )
    assert (found.hosts, found.cors.origins, found.admin.hosts) == (
        ["llm.example.com"],
        ["https://app.example.com"],
        ["::2"],
    )
    assert (server().hosts, server().cors.origins, server().admin.hosts) == ([], [], [])


@looped(
    "fields",
    [
        {"hosts": ["https://a.example"]},
        {"cors": {"origins": ["null"]}},
        {"cors": {"origin": []}},
        {"admin": {"hosts": [""]}},
    ],
)
def test_what_browsers_do_not_send_cannot_be_listed(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        server(**fields)


def test_sizes_and_times_have_units() -> None:
    found = server(max_body="1MiB", drain_timeout="2m", limits={"body_bytes": "2kB"})
    assert (found.max_body, found.drain_timeout, found.limits.body_bytes) == (2**20, 120.0, 2000)


@looped("fields", [{"workers": 0}, {"workers": 257}, {"workers": "some"}, {"port": 70000}, {"tls": {"cert": "c.pem"}}])
def test_what_cannot_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        server(**fields)
