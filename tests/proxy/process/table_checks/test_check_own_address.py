"""Configurations that call the gateway which serves them."""

from collections.abc import Callable

import pytest

from config.problem import ConfigError
from config.sections.server_section import ServerSection
from providers.profiles.load_profiles import load_profiles
from proxy.process.load_table import Source
from proxy.process.table_checks.check_own_address import Listener
from tests.proxy.cli.conftest import source
from tests.support.looped import looped

__all__ = ("source",)

Writer = Callable[[str], Source]


@looped(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080/v1"),
        ("127.0.0.1", "http://localhost:8080"),
        ("127.0.0.1", "https://LocalHost.:8080/v1"),
        ("127.0.0.1", "http://gateway.localhost:8080/v1"),
        ("localhost", "http://[::1]:8080/v1"),
        ("::1", "http://localhost:8080/v1"),
        ("0.0.0.0", "http://127.0.0.1:8080/v1"),
        ("0.0.0.0", "http://127.9.9.9:8080/v1"),
        ("0.0.0.0", "http://localhost:8080/v1"),
        ("::", "http://[::1]:8080/v1"),
        ("10.1.2.3", "http://10.1.2.3:8080/v1"),
        ("gateway.internal", "http://gateway.internal:8080/v1"),
        ("10.1.2.3", "http://llm.example.com:8080/v1"),
    ],
)
def test_an_address_that_the_listener_answers_to_is_its_own(host: str, url: str) -> None:
    assert Listener(host, 8080, ["llm.example.com"]).answers(url)


@looped(
    ("host", "port", "url"),
    [
        ("127.0.0.1", 8080, "http://127.0.0.1:8081/v1"),
        ("127.0.0.1", 8080, "http://127.0.0.2:8080/v1"),
        ("127.0.0.1", 8080, "http://[::1]:8080/v1"),
        ("10.1.2.3", 8080, "http://127.0.0.1:8080/v1"),
        ("0.0.0.0", 8080, "http://10.1.2.3:8080/v1"),
        ("127.0.0.1", 8080, "http://localhost.example.com:8080/v1"),
        ("127.0.0.1", 8080, "https://llm.example.com/v1"),
        ("127.0.0.1", 0, "http://127.0.0.1:8080/v1"),
        ("127.0.0.1", 8080, "mock:"),
    ],
)
def test_another_address_may_be_an_engines(host: str, port: int, url: str) -> None:
    assert not Listener(host, port, ["llm.example.com", "*.example.com"]).answers(url)


TABLE = """\
version: 1
defaults: {allow_private: true}
vendors:
  local: {profile: vllm, base_url: "http://localhost:8080/v1"}
  other: {profile: vllm}
models:
  local/a: {}
  local/b: {}
  other/a: {deployments: {one: {base_url: "http://127.0.0.1:8080/v1"}, two: {}}}
"""


def test_check_refuses_each_place_that_names_it_once(source: Writer) -> None:
    written = source(TABLE)
    with pytest.raises(ConfigError) as caught:
        written.load_to_serve()
    text = "this is the gateway's own address (port 8080): requests would come back to it"
    assert [str(problem).partition("t.yaml:")[2] for problem in caught.value.problems] == [
        f"4:36 vendors.local.base_url: {text}",
        f"9:43 models.other/a.deployments.one.base_url: {text}",
    ]


def test_the_port_that_counts_is_the_command_lines(source: Writer) -> None:
    written = source(TABLE)
    served = Source(written.path, {}, port=9000).load_to_serve()
    assert len(list(served.snapshot.targets())) == 4
    with pytest.raises(ConfigError, match="port 8000"):
        Source(written.path, {}, port=8000).load_to_serve()


def test_no_profiles_default_address_has_the_gateways_default_port() -> None:
    ours = f":{ServerSection().port}"
    assert [name for name, row in load_profiles().items() if ours in (row.base_url or "")] == []


@pytest.mark.parametrize(
    "mistake", ["routes: {r: other/b}", "server: {prot: 1, host: 127.0.0.1}", "routes: {r: {targets: [other/a], x: 1}}"]
)
def test_other_mistakes_do_not_hide_it(mistake: str, source: Writer) -> None:
    with pytest.raises(ConfigError) as caught:
        source(f"{TABLE}{mistake}\n").load_to_serve()
    assert [problem.line for problem in caught.value.problems] == [4, 9, 10]


def test_of_a_port_that_is_refused_the_default_is_not_judged(source: Writer) -> None:
    with pytest.raises(ConfigError) as caught:
        source(f"{TABLE}server: {{port: lots}}\n").load_to_serve()
    assert [problem.line for problem in caught.value.problems] == [10]


MOCK = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\n"


@pytest.mark.parametrize(
    "server",
    [
        "{port: 9091}",
        "{admin: {port: 8080}}",
        "{port: 5, admin: {port: 5, host: localhost}}",
        "{port: 5, host: '::1', admin: {port: 5, host: localhost}}",
        "{port: 5, admin: {port: 5, host: 0.0.0.0, token: x}}",
    ],
)
def test_two_listeners_cannot_share_a_port(server: str, source: Writer) -> None:
    with pytest.raises(ConfigError) as caught:
        source(f"{MOCK}server: {server}\n").load_to_serve()
    (problem,) = caught.value.problems
    assert problem.path == "server.admin.port"
    assert problem.message.startswith("the public listener (server.port) takes port ")


@pytest.mark.parametrize(
    "server",
    [
        "{port: 0, admin: {port: 0}}",
        "{port: 5, admin: {port: 5, host: 127.0.0.2}}",
        "{port: 5, admin: {port: 5, host: '::1'}}",
        "{port: 5, admin: {port: 6}}",
    ],
)
def test_listeners_at_different_places_are_sound(server: str, source: Writer) -> None:
    source(f"{MOCK}server: {server}\n").load_to_serve()


def test_the_port_of_the_command_line_is_held_against_the_admin_listener(source: Writer) -> None:
    with pytest.raises(ConfigError, match=r"the public listener \(--port\) takes port 9091"):
        Source(source(MOCK).path, {}, port=9091).load_to_serve()
    Source(source(f"{MOCK}server: {{port: 9091}}\n").path, {}, port=9000).load_to_serve()
