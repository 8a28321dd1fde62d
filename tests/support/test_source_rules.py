"""Each rule on source text finds a planted violation and accepts similar code that is allowed."""

import pytest

from tests.support import source_rules as rules
from tests.support.looped import looped


@looped(
    ("text", "line"),
    [
        ("import proxy", 1),
        ("import proxy.process.assemble_app as app", 1),
        ("x = 1\nfrom proxy.process.assemble_app import build", 2),
        ("def f():\n    import requests", 2),
        ("from . import schema", 1),
        ("from ..proxy import app", 1),
    ],
)
def test_an_import_from_outside_is_found_with_its_line(text: str, line: int) -> None:
    (complaint,) = rules.foreign_imports(text, {"config", "yaml"})
    assert complaint.startswith(f"{line}: ")


def test_allowed_and_standard_imports_pass() -> None:
    assert rules.foreign_imports("import json\nimport yaml\nfrom config.schema import Table", {"config", "yaml"}) == []


@looped(
    "text",
    [
        "import asyncio\nasyncio.create_task(f())",
        "import asyncio as a\na.create_task(f())",
        "from asyncio import create_task",
        "from asyncio import create_task as start",
        "import asyncio.tasks\nx = asyncio.create_task",
    ],
)
def test_a_forbidden_name_is_found_however_it_was_imported(text: str) -> None:
    assert rules.forbidden_uses(text, {"asyncio.create_task"}) != []


@looped(
    ("text", "forbidden"),
    [
        ("import http.client", "http.client"),
        ("from http import client", "http.client"),
        ("import urllib.request as r", "urllib.request"),
        ("from aiohttp.client import ClientSession", "aiohttp.client"),
        ("from aiohttp import ClientSession", "aiohttp"),
        ("def f():\n    import time", "time"),
        ("import datetime\ndatetime.datetime.now().time()", "datetime.datetime.now().time"),
    ],
)
def test_forbidding_a_module_forbids_what_is_below_it(text: str, forbidden: str) -> None:
    assert rules.forbidden_uses(text, {forbidden}) != []


@looped(
    "text",
    [
        "import asyncio\nasync def f(group: asyncio.TaskGroup): group.create_task(g())",
        "from http import HTTPStatus",
        "import timeit",
        "create_task = 1\ncreate_task",
        "'asyncio.create_task'",
    ],
)
def test_names_that_only_resemble_a_forbidden_one_pass(text: str) -> None:
    assert rules.forbidden_uses(text, {"asyncio.create_task", "http.client", "time"}) == []


@looped("call", ["datetime.now(UTC)", "datetime.datetime.utcnow()", "date.today()"])
def test_asking_for_the_present_moment_is_found(call: str) -> None:
    assert rules.clock_reads(f"x = {call}") != []


def test_a_moment_that_was_handed_in_passes() -> None:
    assert rules.clock_reads("def sign(now: datetime) -> str:\n    return now.strftime('%Y')") == []


@pytest.mark.parametrize("call", ["asyncio.get_running_loop().create_task(f())", "self._loop.create_task(f())"])
def test_a_task_started_on_a_loop_is_found(call: str) -> None:
    assert rules.loop_tasks(call) != []


def test_a_task_started_in_a_group_passes() -> None:
    assert rules.loop_tasks("group.create_task(f())") == []


def test_each_opened_secret_is_found_with_its_function() -> None:
    text = "def a(s):\n    def b():\n        return s.get_secret_value()\n    return b\nx = s._secret_value\n"
    assert sorted(rules.secret_reads(text)) == ["<module>", "b"]
    assert rules.secret_reads("def a(s):\n    return getattr(s, 'get_secret_value')()") == ["a"]
    assert rules.secret_reads("def a(s):\n    return str(s)") == []


@looped(
    "text",
    [
        "try: f()\nexcept: pass",
        "try: f()\nexcept Exception: pass",
        "try: f()\nexcept Exception as e:\n    log(e)",
        "try: f()\nexcept (ValueError, BaseException): pass",
        "try: f()\nexcept Exception as e:\n    raise Other from e",
        "try: f()\nexcept* Exception: pass",
        "with contextlib.suppress(Exception): f()",
        "with suppress(Exception): f()",
    ],
)
def test_a_handler_that_stops_everything_is_found(text: str) -> None:
    assert rules.broad_excepts(text) != []


@looped(
    "text",
    [
        "try: f()\nexcept ValueError: pass",
        "try: f()\nexcept BaseException:\n    close()\n    raise",
        "try: f()\nexcept:\n    raise",
        "with suppress(OSError): f()",
    ],
)
def test_a_narrow_or_re_raising_handler_passes(text: str) -> None:
    assert rules.broad_excepts(text) == []


def function_of(lines: int, docstring: str = "") -> str:
    return "\n".join(["def f():", *([f'    """{docstring}"""'] if docstring else []), *["    x = 1"] * (lines - 1)])


def test_a_file_over_its_budget_is_found() -> None:
    assert rules.too_long("x = 1\n" * rules.MAX_FILE_LINES) == []
    (complaint,) = rules.too_long("x = 1\n" * (rules.MAX_FILE_LINES + 1))
    assert complaint == "1: 401 lines, 400 allowed"


def test_a_function_over_its_budget_is_found() -> None:
    assert rules.too_long(function_of(rules.MAX_FUNCTION_LINES)) == []
    assert rules.too_long(function_of(rules.MAX_FUNCTION_LINES + 1)) == ["1: f has 61 lines, 60 allowed"]


def test_a_docstring_is_no_part_of_a_functions_budget() -> None:
    assert rules.too_long(function_of(rules.MAX_FUNCTION_LINES, docstring="a\n\nb\n")) == []
    assert rules.too_long(function_of(rules.MAX_FUNCTION_LINES + 1, docstring="a\n\nb\n")) != []


def test_a_long_method_and_a_long_inner_function_are_found() -> None:
    inner = function_of(rules.MAX_FUNCTION_LINES + 1).replace("\n", "\n    ")
    assert rules.too_long(f"class C:\n    {inner}") != []
    assert rules.too_long(f"async def g():\n    {inner}") != []


@looped("text", ["", "x = 1", '"""   """', "# only a comment", 'x = 1\n"""late"""'])
def test_a_module_without_a_sentence_is_found(text: str) -> None:
    assert rules.lacks_docstring(text)


def test_a_module_with_a_sentence_passes() -> None:
    assert not rules.lacks_docstring('# a comment may come first\n"""What this is."""\nx = 1')


@looped("text", ['"""Doc."""\nimport os', "x = 1", '"""Doc."""\n"""more"""'])
def test_code_besides_the_docstring_is_found(text: str) -> None:
    assert rules.has_code(text)


@looped("text", ["", '"""Doc."""', "# a comment"])
def test_a_docstring_alone_is_no_code(text: str) -> None:
    assert not rules.has_code(text)


@looped("text", ["def f(): return 1", "async def f(): return 1", "class C:\n    @property\n    def p(self): return 1"])
def test_a_file_with_functions_needs_its_mirror(text: str) -> None:
    assert rules.missing_mirrors({"proxy/surfaces/scale_genai.py": text}, {"tests/proxy/test_scale.py"}) == [
        "proxy/surfaces/scale_genai.py: has no tests/proxy/surfaces/test_scale_genai.py"
    ]
    assert (
        rules.missing_mirrors({"proxy/surfaces/scale_genai.py": text}, {"tests/proxy/surfaces/test_scale_genai.py"})
        == []
    )


@pytest.mark.parametrize(
    "text", ["x = 1", "class P(Protocol):\n    def f(self) -> int:\n        '''Doc.'''\n        ..."]
)
def test_a_file_without_functions_needs_no_mirror(text: str) -> None:
    assert rules.missing_mirrors({"config/table/table_schema.py": text}, set()) == []


def test_the_entry_point_is_mirrored_under_a_plain_name() -> None:
    assert rules.mirror_of("proxy/__main__.py") == "tests/proxy/test_main.py"


def test_a_folder_without_an_init_file_is_found() -> None:
    assert rules.folders_without_init(["tests/__init__.py", "tests/proxy/surfaces/test_a.py"]) == [
        "tests/proxy",
        "tests/proxy/surfaces",
    ]
    assert rules.folders_without_init(["tests/__init__.py", "tests/test_a.py"]) == []


FILES = ("proxy/errors.py", "proxy/a/one.py", "proxy/a/two.py", "proxy/b/one.py", "providers/target.py")


def test_the_room_of_a_file_is_its_folder_below_the_package() -> None:
    assert [rules.room_of(path) for path in ("proxy/errors.py", "proxy/a/one.py", "providers/d/v/x.py")] == [
        ".",
        "a",
        "d/v",
    ]


@looped(
    "text",
    ["from proxy.b.one import X", "from proxy.b import one", "import proxy.b.one", "def f():\n    import proxy.b.one"],
)
def test_an_import_from_a_room_that_is_not_listed_is_found(text: str) -> None:
    line = text.count("\n") + 1
    found = [f"proxy/a/one.py:{line}: a may not import proxy/b/one.py"]
    assert rules.out_of_room("proxy/a/one.py", text, (), FILES) == found
    for allowed in ("b", "b/one"):
        assert rules.out_of_room("proxy/a/one.py", text, (allowed,), FILES) == []
    assert rules.out_of_room("proxy/a/one.py", text, ("b/two",), FILES) == found


@looped("text", ["from proxy.errors import X", "from proxy.a.two import X", "import os"])
def test_a_room_imports_itself_and_the_vocabulary(text: str) -> None:
    assert rules.out_of_room("proxy/a/one.py", text, (), FILES) == []


def test_the_vocabulary_imports_no_room() -> None:
    found = rules.out_of_room("proxy/errors.py", "from proxy.a.one import X", (), FILES)
    assert found == ["proxy/errors.py:1: . may not import proxy/a/one.py"]


def test_a_star_stands_for_the_rooms_of_a_folder() -> None:
    files = ("providers/d/v/x.py", "providers/e/x.py")
    text = "from providers.d.v import x\nfrom providers.e import x as y"
    assert rules.out_of_room("providers/d/r.py", text, ("d/*",), files) == [
        "providers/d/r.py:2: d may not import providers/e/x.py"
    ]


def test_classes_within_classes_and_functions_have_names_too() -> None:
    assert rules.class_names("class A:\n    class B: ...\ndef f():\n    class C: ...") == ["A", "B", "C"]
