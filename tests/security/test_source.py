"""Operations that no source file uses: running text as code, unpickling objects, weakening TLS, writing files."""

import ast
import tomllib
from collections.abc import Iterator, Mapping

from tests.security.floor import ROOT
from tests.support import source_rules as rules
from tests.support.looped import looped

UNPACKERS = frozenset({"pickle", "cPickle", "marshal", "shelve", "dill", "jsonpickle", "xml", "plistlib"})
CALLS_C = frozenset({"ctypes", "cffi"})
MAY_CALL_C = {
    f"proxy/{name}.py"
    for name in (
        *("process/c_signal_handlers", "process/c_allocator", "process/huge_pages"),
        *("process_name", "workers/adopted_process"),
    )
}
"""Signal handlers that work while native code holds the interpreter's lock, a setting of malloc, advice about the whole
heap, a process's name, and adopting the processes that a child leaves. Python offers no function for any of them."""

UNSAFE_YAML = frozenset(
    {f"yaml.{name}" for name in ("load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all")}
    | {f"yaml.{name}" for name in ("Loader", "FullLoader", "UnsafeLoader", "CFullLoader", "CUnsafeLoader")}
)
PROCESSES = frozenset({"subprocess", "os.system", "os.popen", "os.exec", "pty", "asyncio.create_subprocess_shell"})
RUNS_TEXT = frozenset({"eval", "exec", "__import__", "breakpoint"})
WEAKENS_TLS = frozenset({"CERT_NONE", "CERT_OPTIONAL", "_create_unverified_context", "TLSv1", "TLSv1_1"})
WRITES = frozenset({"write_text", "write_bytes", "unlink", "rmtree", "chmod", "symlink_to"})
MAY_WRITE = frozenset(
    {
        *("proxy/cli/prices/write_list_prices.py", "proxy/cli/imports/written_file.py"),
        "proxy/cli/usage/limit_demo.py",
        *(
            "proxy/ledger/journal.py",
            "proxy/ledger/journal_loader.py",
            "proxy/accounting/limit_shares_file.py",
            "proxy/accounting/loader_program.py",
        ),
    }
)
"""The programs of `make generate`, the command that writes a file on request, the demo with its own folder, the
ledger's journals, and the code that sets a session's niceness."""


def sources() -> Mapping[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for folder in ("config", "providers", "proxy")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def names(text: str) -> Iterator[tuple[str, int]]:
    """Yield every bare name that is called, every attribute, and every keyword with the value false, with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is False:
            yield f"{node.arg}=False", node.value.lineno


def uses(banned: frozenset[str], text: str) -> list[str]:
    """Return the banned names that a text uses."""
    return [f"{line}: {name}" for name, line in names(text) if name in banned]


def found(banned: frozenset[str], but: frozenset[str] = frozenset()) -> dict[str, list[str]]:
    """Return the same for every file that is not excepted."""
    return {path: used for path, text in sources().items() if path not in but and (used := uses(banned, text))}


@looped("banned", [UNPACKERS, UNSAFE_YAML, PROCESSES], ids=["unpackers", "yaml", "processes"])
def test_no_module_that_turns_data_into_behaviour_is_used(banned: frozenset[str]) -> None:
    files = sources()
    assert {path: used for path, text in files.items() if (used := rules.forbidden_uses(text, banned))} == {}


def test_c_is_called_where_python_has_no_words_for_it_only() -> None:
    assert {path for path, text in sources().items() if rules.forbidden_uses(text, CALLS_C)} == MAY_CALL_C


def test_yaml_is_loaded_by_a_safe_loader_only() -> None:
    lines = [line for text in sources().values() for line in text.splitlines() if "yaml.load(" in line]
    assert lines
    assert [line for line in lines if 'Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)' not in line] == []


def test_no_text_is_run_as_code() -> None:
    assert found(RUNS_TEXT) == {}


def test_no_certificate_goes_unchecked() -> None:
    assert found(WEAKENS_TLS | {"ssl=False", "verify=False", "check_hostname=False", "verify_ssl=False"}) == {}


def test_a_gateway_that_serves_writes_no_file_but_the_ledger_s() -> None:
    assert found(WRITES, MAY_WRITE) == {}


@looped(
    ("banned", "text"),
    [
        (RUNS_TEXT, "eval('1')"),
        (RUNS_TEXT, "def f(x):\n    return exec(x)"),
        (WEAKENS_TLS, "import ssl\ncontext.verify_mode = ssl.CERT_NONE"),
        (frozenset({"ssl=False"}), "session.get(url, ssl=False)"),
        (WRITES, "Path('x').write_text('y')"),
    ],
)
def test_each_rule_finds_what_it_forbids(banned: frozenset[str], text: str) -> None:
    assert uses(banned, text) != []


def test_the_linter_s_security_rules_are_on_for_every_source_file() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    assert [rule for rule in lint["ignore"] if rule.startswith("S")] == []
    excused = {path: rules for path, rules in lint["per-file-ignores"].items() if any(r[:1] == "S" for r in rules)}
    assert excused.keys() <= {"tests/**"}
