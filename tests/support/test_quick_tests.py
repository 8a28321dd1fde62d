"""The conditions of a quick test, and every source file has one."""

import re
import socket
import subprocess
import sys

import pytest

from tests.support import source_rules as rules
from tests.support.looped import looped
from tests.support.quick_tests import (
    ROOT,
    SCOPES,
    SLOW,
    NoSockets,
    has_quick_tests,
    has_smoke,
    has_tests_in,
    imported_modules,
    is_pure,
)
from tests.support.source_files import texts


@pytest.mark.smoke
@looped(
    ("text", "modules"),
    [
        ("import a\n", {"a"}),
        ("import a.b as c, d\n", {"a.b", "d"}),
        ("from a import b\n", {"a", "a.b"}),
        ("from a.b import (\n    c as d,\n    e,\n)\n", {"a.b", "a.b.c", "a.b.e"}),
        ("def f():\n    import a\n", {"a"}),
        ("# import a\nimporting = 1\n", set()),
    ],
)
def test_imports_are_read(text: str, modules: set[str]) -> None:
    assert imported_modules(text) == modules


@pytest.mark.smoke
@looped(
    ("path", "pure"),
    [
        ("tests/config/test_addresses.py", True),
        ("tests/support/vendor.py", False),
        ("tests/proxy/gateway/test_handle_request.py", False),  # through the module of helpers that it imports
    ],
)
def test_a_file_is_pure_if_nothing_that_it_imports_has_sockets(path: str, pure: bool) -> None:
    assert is_pure(ROOT / path) == pure


@pytest.mark.smoke
@looped(
    ("path", "scopes"),
    [
        ("tests/config/test_addresses.py", {"quick", "all"}),
        ("tests/proxy/relay/test_relayed_runs.py", {"quick", "rest", "all"}),  # pure, with a test that is `thorough`
        ("tests/faults/test_faults.py", {"rest", "all"}),
        ("tests/e2e/test_smoke.py", {"quick", "rest", "all"}),
    ],
)
def test_a_file_without_tests_of_a_scope_is_left_out(path: str, scopes: set[str]) -> None:
    assert {scope for scope in SCOPES if has_tests_in(scope, ROOT / path)} == scopes


@pytest.mark.smoke
def test_every_source_file_with_functions_is_covered_by_a_quick_test_of_its_mirror() -> None:
    sources = texts("config", "providers", "proxy")
    mirrors = [ROOT / rules.mirror_of(path) for path, text in sources.items() if rules.has_functions(text)]
    assert [path for path in mirrors if not has_quick_tests(path)] == []
    all_slow = re.compile(rf"^pytestmark = .*mark\.({'|'.join(SLOW)})", re.MULTILINE)
    slow = [path for path in mirrors if all_slow.search(path.read_text(encoding="utf-8"))]
    assert [path for path in slow if not has_smoke(path)] == []


@pytest.mark.smoke
def test_a_pure_test_that_opens_a_socket_or_starts_a_process_fails() -> None:
    guard = NoSockets()
    guard.install()
    with guard.in_test("test_it"):
        with socket.socket() as server, pytest.raises(AssertionError, match=r"test_it raised socket\.bind"):
            server.bind(("127.0.0.1", 0))
        with pytest.raises(AssertionError, match=r"test_it raised subprocess\.Popen"):
            subprocess.run([sys.executable, "-c", ""], check=True)
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_the_quick_scope_and_the_rest_are_all_tests() -> None:
    def collected(*scope: str) -> list[str]:
        path = "tests/proxy/http_client/test_http_transport.py"
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *scope, path]
        lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        return [line for line in lines if line.startswith(path)]

    quick, rest = collected("--scope", "quick"), collected("--scope", "rest")
    assert quick
    assert rest
    assert sorted(quick + rest) == sorted(collected())
