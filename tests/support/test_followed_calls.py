"""What is followed of a row of calls: each function of the packages once, and the changes of room among them."""

from types import FrameType

from tests.support.followed_calls import ROOT, FollowedCalls, room_of_code
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
    """The functions of the made-up files, which see each other."""
    names: dict[str, object] = {}
    for path, text in FILES.items():
        exec(compile(text, str(ROOT / path), "exec"), names)  # noqa: S102 - our own text
    return names


def followed(ends: str) -> FollowedCalls:
    """The calls that `outer` makes up to the function that is named so."""

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


def test_each_function_is_called_once_and_only_what_leaves_a_room_for_another_changes_rooms() -> None:
    calls = followed("nothing")
    assert [(each.room, each.function, each.changes_room) for each in calls.calls] == [
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


def test_the_table_marks_changes_of_room() -> None:
    assert str(followed("last")).splitlines() == [
        "5 calls, 1 changes of room:",
        "   proxy/relay                  outer",
        "   proxy/relay                  pause",
        "   proxy/relay                  Pause.__await__",
        "   proxy                        inner",
        "-> proxy/limits                 innermost",
    ]


@looped(
    ("path", "room"),
    [
        (str(ROOT / "proxy/limits/gcra.py"), "proxy/limits"),
        (str(ROOT / "providers/target.py"), "providers"),
        (str(ROOT / "tests/conftest.py"), None),
        ("/elsewhere/proxy/limits/gcra.py", None),
        ("<string>", None),
    ],
)
def test_a_file_of_the_packages_has_a_room(path: str, room: str | None) -> None:
    assert room_of_code(path) == room
