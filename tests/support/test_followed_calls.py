"""The recorded calls: each function once, and the changes of package among them."""

from types import FrameType

from tests.support.followed_calls import ROOT, FollowedCalls, package_of_code
from tests.support.looped import looped

FILES = {
    "proxy/relay/made_up.py": """
async def outer():
    await pause()
    return [each for each in inner()]

async def pause():
    await Pause()

class Pause:
    def __await__(self):
        yield
        yield

def last(): ...
""",
    "proxy/made_up.py": "def inner(): return innermost(), same()",
    "proxy/limits/made_up.py": "def innermost(): return other()",
    "elsewhere.py": "def other(): return last()",
    "proxy/relay/second.py": "def same(): return ()",
}


def made_up() -> dict[str, object]:
    """Return the functions of the made-up files, which can call each other."""
    names: dict[str, object] = {}
    for path, text in FILES.items():
        exec(compile(text, str(ROOT / path), "exec"), names)  # noqa: S102 - our own text
    return names


def followed(ends: str) -> FollowedCalls:
    """Return the calls from `outer` to the function named `ends`."""

    def is_last(frame: FrameType) -> bool:
        return frame.f_code.co_name == ends

    calls, outer = FollowedCalls(is_last), made_up()["outer"]
    assert callable(outer)
    coroutine = outer()
    calls.begin()
    try:
        for _ in range(3):
            coroutine.send(None)
    except StopIteration:
        pass
    finally:
        calls.end()
    return calls


def test_each_function_is_called_once_and_only_a_call_of_another_package_changes_packages() -> None:
    calls = followed("nothing")
    assert [(each.package, each.function, each.changes_package) for each in calls.calls] == [
        ("proxy/relay", "outer", False),
        ("proxy/relay", "pause", False),
        ("proxy/relay", "Pause.__await__", False),
        ("proxy", "inner", False),
        ("proxy/limits", "innermost", True),
        ("proxy/relay", "last", True),
        ("proxy/relay", "same", False),
    ]
    assert calls.changes == 2


def test_nothing_is_followed_after_the_end() -> None:
    assert [each.function for each in followed("last").calls] == [
        "outer",
        "pause",
        "Pause.__await__",
        "inner",
        "innermost",
    ]


def test_the_table_marks_changes_of_package() -> None:
    assert str(followed("last")).splitlines() == [
        "5 calls, 1 changes of package:",
        "   proxy/relay                  outer",
        "   proxy/relay                  pause",
        "   proxy/relay                  Pause.__await__",
        "   proxy                        inner",
        "-> proxy/limits                 innermost",
    ]


@looped(
    ("path", "package"),
    [
        (str(ROOT / "proxy/limits/gcra.py"), "proxy/limits"),
        (str(ROOT / "providers/target.py"), "providers"),
        (str(ROOT / "tests/conftest.py"), None),
        ("/elsewhere/proxy/limits/gcra.py", None),
        ("<string>", None),
    ],
)
def test_the_package_of_a_file_is_its_folder(path: str, package: str | None) -> None:
    assert package_of_code(path) == package
