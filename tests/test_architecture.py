"""The structure of the source tree: permitted imports, the one place of each concern, and size limits. It does not test
behaviour."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support import source_rules as rules
from tests.support.looped import looped
from tests.support.rooms import DIALECTS, ROOMS, STARTS
from tests.support.source_files import texts

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("config", "providers", "proxy")

# Besides the standard library. pydantic_core is part of pydantic's own interface, multidict and yarl of aiohttp's.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "config": frozenset({"config", "pydantic", "pydantic_core", "yaml"}),
    "providers": frozenset({"providers", "pydantic", "pydantic_core", "yaml", "orjson", "jsonschema_rs"}),
    "proxy": frozenset(
        {"proxy", "config", "providers"}
        | {"aiohttp", "multidict", "yarl", "orjson", "pydantic", "prometheus_client", "tenacity", "uvloop"}
        | {"aiohappyeyeballs", "httptools", "jiter"}
        | {"azure", "botocore", "genai_prices", "google", "opentelemetry", "psycopg", "redis"}
    ),
}

# Without waiting, a clock or random numbers, a dialect can be tested with values alone.
IMPURE = frozenset(
    {"asyncio", "concurrent", "multiprocessing", "subprocess", "threading"}
    | {"http.client", "select", "selectors", "socket", "ssl", "urllib.request"}
    | {"os", "random", "secrets", "time", "uuid.uuid1", "uuid.uuid4"}
)

# Packages and files of proxy that receive the time and random numbers as arguments, and wait for nothing.
PURE_PROXY = (
    *("proxy/deployment_health/", "proxy/routing/", "proxy/surfaces/", "proxy/bounded_dict.py"),
    *("proxy/dispatch/next_deployment.py", "proxy/dispatch/retry_rules.py"),
    "proxy/teams/retry_budget.py",
    *("proxy/forms/part_heads.py", "proxy/forms/parse_multipart.py"),
    *("proxy/listener/cors_and_host_names.py", "proxy/shared_state/link_state.py"),
    "proxy/shared_state/shared_cooldowns.py",
)
SHARED_FILES = (
    *("surfaces/surface", "surfaces/thinking_envelope", "cli/terminal", "cli/check_command", "plugins/api"),
    "admin/recent_requests",
    *("cli/imports/accounts", "cli/imports/endpoints", "cli/imports/foreign_section", "cli/imports/remarks"),
    *("cli/imports/table_draft", "cli/imports/table_values"),
)
"""Files at the top of a folder of packages that these packages may import."""

WAITS = ("proxy/deployment_health/deployment_queue.py",)
"""Files of the packages above that wait: for a slot in a queue."""

OPTIONAL = frozenset(
    f"proxy.{name}"
    for name in ("conversations", "payload_log", "plugins", "reasoning_memory", "response_cache", "tracing")
)
"""Packages of features that a configuration may do without."""

SMALL_FILE = 60
MOST_SMALL_FILES = 108
"""The number of source files with functions and fewer lines than `SMALL_FILE`. A ratchet: it only falls, because a
concept in many small files is hard to follow. A file without functions, such as one with names that other packages
import, may have any size, and a package may have any number of files."""

# Names that only one file may use.
HOMES: Mapping[str, str] = {
    "aiohappyeyeballs": "proxy/http_client/dialer.py",
    "asyncio.create_task": "proxy/background_tasks.py",
    "asyncio.ensure_future": "proxy/background_tasks.py",
    "azure": "proxy/vendor_credentials/entra.py",
    "botocore": "proxy/vendor_credentials/aws.py",
    "genai_prices": "proxy/cli/prices/genai_data.py",
    "google": "proxy/vendor_credentials/google.py",
    "httptools": "proxy/http_client/http1_connection.py",
    "jsonschema_rs": "providers/constraints/compiled_checks.py",
    "opentelemetry": "proxy/tracing/otlp_exporter.py",
    "prometheus_client": "proxy/telemetry/metrics.py",
    "psycopg": "proxy/ledger/postgres_connection.py",
    "redis": "proxy/shared_state/redis_sync.py",
    "tenacity": "proxy/dispatch/attempt_loop.py",
}

# Libraries of vendors, Redis and PostgreSQL. `google` itself is a namespace that several distributions share.
VENDORS = frozenset(
    {"anthropic", "azure.core", "azure.identity", "boto3", "botocore", "cohere", "genai_prices", "google.auth"}
    | {"google.genai", "groq"}
    | {"huggingface_hub", "mistralai", "msal", "ollama", "openai", "requests", "text_generation", "together", "urllib3"}
    | {"psycopg", "redis"}
)

# The files in which a secret becomes text: a header for the socket, a signature, the client's own credential at a token
# endpoint or at Redis.
MAY_REVEAL = frozenset(
    {
        "providers/vendor_credential.py",
        "providers/dialects/platforms/aws_sigv4.py",
        "proxy/vendor_credentials/aws.py",
        "proxy/vendor_credentials/oidc.py",
    }
    | {"proxy/ledger/ledger_settings.py", "proxy/shared_state/redis_sync.py", "proxy/tracing/otlp_exporter.py"}
    | {"proxy/payload_log/payload_log.py"}
)

# The outermost handler: an internal error must not reach a client as a traceback. All other errors have a type or end
# the process. A task passes on the exception that ends its coroutine, and a forked worker exits by itself before its
# parent's handlers see the exception. The listener catches the exceptions raised around that handler, as aiohttp does.
# The ledger's threads and readers run beside the requests: an error there is reported, and serving goes on. Any
# exception of a plugin is the plugin's failure. An error in an observer of requests must change no response.
MAY_CATCH_ALL = frozenset(
    {
        "proxy/accounting/ledger_service.py",
        "proxy/accounting/ledger_reader.py",
        "proxy/gateway/handle_request.py",
        "proxy/eager_task.py",
        "proxy/http_client/http1_connection.py",
        "proxy/ledger/journal.py",
        "proxy/ledger/loading.py",
        "proxy/listener/inline_requests.py",
        "proxy/tracing/export_queue.py",
        "proxy/plugins/call_plugin.py",
        "proxy/plugins/usage_sinks.py",
        "proxy/telemetry/observer_guard.py",
        "proxy/workers/worker_template.py",
    }
)


def complaints(files: Mapping[str, str], rule: Callable[[str], list[str]]) -> list[str]:
    """Return the complaints of a rule about each file, as `path:line: complaint`."""
    return [f"{path}:{complaint}" for path, text in files.items() for complaint in rule(text)]


def none_of(found: list[str]) -> None:
    """Fail with every complaint on its own line; pytest would show only the first few of a list."""
    assert not found, "\n" + "\n".join(found)


@looped("package", PACKAGES)
def test_each_package_imports_only_what_its_place_allows(package: str) -> None:
    files = texts(package)
    assert files
    none_of(complaints(files, lambda text: rules.foreign_imports(text, MAY_IMPORT[package])))


def test_nothing_is_imported_by_a_computed_name() -> None:
    none_of(complaints(texts(*PACKAGES), lambda text: rules.forbidden_uses(text, {"importlib.import_module"})))


def test_providers_have_no_sockets_no_clock_and_no_randomness() -> None:
    files = texts("providers")
    none_of(complaints(files, lambda text: rules.forbidden_uses(text, IMPURE)))
    none_of(complaints(files, rules.clock_reads))


def test_the_deciding_parts_of_proxy_wait_for_nothing() -> None:
    pure = {path: text for path, text in texts("proxy").items() if path.startswith(PURE_PROXY) and path not in WAITS}
    assert pure
    none_of(complaints(pure, lambda text: rules.forbidden_uses(text, {"asyncio", "aiohttp"})))


@looped("name", HOMES)
def test_a_name_with_one_home_is_used_only_there(name: str) -> None:
    elsewhere = {path: text for path, text in texts(*PACKAGES).items() if path != HOMES[name]}
    none_of(complaints(elsewhere, lambda text: rules.forbidden_uses(text, {name})))


def test_tasks_are_started_on_a_loop_only_by_their_owner() -> None:
    elsewhere = {path: text for path, text in texts(*PACKAGES).items() if path != HOMES["asyncio.create_task"]}
    none_of(complaints(elsewhere, rules.loop_tasks))


def test_secrets_are_opened_in_exactly_one_function() -> None:
    opened = [(path, function) for path, text in texts(*PACKAGES).items() for function in rules.secret_reads(text)]
    assert len(set(opened)) == 1, opened
    assert opened[0][0] == "providers/vendor_credential.py"


def test_the_function_that_opens_secrets_is_called_where_they_are_sent_or_signed() -> None:
    elsewhere = {path: text for path, text in texts(*PACKAGES).items() if path not in MAY_REVEAL}
    none_of(complaints(elsewhere, lambda text: rules.forbidden_uses(text, {"providers.vendor_credential.reveal"})))


def test_the_libraries_of_vendors_are_loaded_by_a_table_that_needs_them_and_not_before() -> None:
    modules = [path.removesuffix(".py").replace("/", ".") for path in texts(*PACKAGES) if "__" not in path]
    code = f"import sys\nfor name in {modules!r}: __import__(name)\nprint(sorted(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    loaded = {name for name in VENDORS if f"'{name}'" in shown}
    assert loaded == set()
    assert "'proxy.process.assemble_app'" in shown


def test_only_the_outermost_handler_catches_everything() -> None:
    found = {path: rules.broad_excepts(text) for path, text in texts(*PACKAGES).items()}
    assert {path: broad for path, broad in found.items() if broad and path not in MAY_CATCH_ALL} == {}
    assert {path: broad for path, broad in found.items() if len(broad) > 1} == {}


def test_files_and_functions_keep_their_budgets() -> None:
    none_of(complaints(texts(*PACKAGES, "tests", ".ci"), rules.too_long))


def test_every_module_says_what_it_is_for() -> None:
    files = texts(*PACKAGES, "tests", ".ci")
    none_of([path for path, text in files.items() if rules.lacks_docstring(text)])


def test_init_files_hold_nothing_but_their_sentence() -> None:
    files = {path: text for path, text in texts(*PACKAGES).items() if path.endswith("__init__.py")}
    none_of([path for path, text in files.items() if rules.has_code(text)])


def test_every_source_file_with_functions_has_its_test_file() -> None:
    none_of(rules.missing_mirrors(texts(*PACKAGES), texts("tests")))


def test_every_folder_of_python_files_has_an_init_file() -> None:
    none_of(rules.folders_without_init([*texts(*PACKAGES), *texts("tests")]))


def may_import(path: str) -> tuple[str, ...]:
    """Return the parts of its own package that a source file may import besides its own and the package's top."""
    package, room = path.split("/")[0], rules.room_of(path)
    named = ROOMS[package]
    return (*named.get(room, named.get(f"{room.rpartition('/')[0]}/*", ())), *DIALECTS.get(room, ()))


def test_each_room_imports_only_the_vocabulary_and_the_rooms_above_it() -> None:
    files = texts(*PACKAGES)
    inner = {path: text for path, text in files.items() if path not in STARTS}
    none_of([wrong for path, text in inner.items() for wrong in rules.out_of_room(path, text, may_import(path), files)])


def test_the_gateway_imports_no_optional_feature() -> None:
    """Features take part in requests as hooks. The endpoints of stored responses are an API of their own."""
    files = {path: text for path, text in texts("proxy").items() if path.startswith("proxy/gateway/")}
    ordinary = {path: text for path, text in files.items() if path != "proxy/gateway/response_endpoints.py"}
    assert len(ordinary) < len(files)
    none_of(complaints(ordinary, lambda text: rules.forbidden_uses(text, OPTIONAL)))
    assert not {"plugins", "tracing", "payload_log", "reasoning_memory", "response_cache"} & {
        *ROOMS["proxy"]["gateway"]
    }


@looped("package", PACKAGES)
def test_what_a_room_may_import_stands_above_it(package: str) -> None:
    above: set[str] = set()
    for room, allowed in ROOMS[package].items():
        missing = {name for name in allowed if name not in above and name not in SHARED_FILES}
        assert missing <= set(), f"{room} is above {missing}"
        above.add(room)


def test_every_folder_is_a_room_with_its_place_in_the_order() -> None:
    rooms = {(path.split("/")[0], rules.room_of(path)) for path in texts(*PACKAGES)}
    unknown = [
        f"{package}/{room}"
        for package, room in sorted(rooms)
        if room not in ROOMS[package] and f"{room.rpartition('/')[0]}/*" not in ROOMS[package]
    ]
    none_of(unknown)


def test_small_files_become_no_more() -> None:
    small = [
        path
        for path, text in texts(*PACKAGES).items()
        if len(text.splitlines()) < SMALL_FILE and rules.has_functions(text)
    ]
    assert len(small) <= MOST_SMALL_FILES, "\n" + "\n".join(small)


def test_each_class_name_occurs_once() -> None:
    places = [(name, path) for path, text in texts(*PACKAGES).items() for name in rules.class_names(text)]
    counts = Counter(name for name, _ in places)
    none_of(sorted(f"{name}: {path}" for name, path in places if counts[name] > 1))
