"""Event streams that are relayed unread, and whether they are complete."""

import pytest

from providers.tasks.passed_events import EventWatch, watch_events
from providers.unified_request import Task
from tests.support.looped import looped

PARTIAL = (
    b'event: image_generation.partial_image\ndata: {"type":"image_generation.partial_image","b64_json":"QQ=="}\n\n'
)
COMPLETED = b'data: {"type":"image_generation.completed","b64_json":"QUFB"}\n\n'


def seen(stream: bytes, size: int, task: Task = Task.IMAGES) -> EventWatch:
    watch = watch_events(task)
    for start in range(0, len(stream), size):
        watch.see(stream[start : start + size])
    return watch


@looped("size", [1, 7, 4096])
def test_a_stream_is_whole_with_its_last_event_whatever_the_cuts(size: int) -> None:
    assert seen(PARTIAL * 2, size).unfinished
    assert not seen(PARTIAL * 2 + COMPLETED, size).unfinished
    assert not seen(COMPLETED, size).unfinished


@pytest.mark.parametrize(("stream", "task"), [(b"data: [DONE]\n\n", Task.IMAGES), (PARTIAL, Task.MODERATIONS)])
def test_a_stream_of_unknown_events_is_taken_as_it_ends(stream: bytes, task: Task) -> None:
    assert not seen(stream, 5, task).unfinished


@looped("size", [1, 3, 4096])
def test_it_is_known_whether_an_event_is_open(size: int) -> None:
    assert seen(PARTIAL, size).between
    assert not seen(PARTIAL[:-1], size).between
    assert seen(PARTIAL.replace(b"\n", b"\r\n"), size).between
    assert watch_events(Task.SPEECH).between


PINGS = (
    b": ping\n\n",
    b":\r\n\r\n",
    b"\n\n",
    b"event: ping\ndata: {}\n\n",
    b"event:keepalive\r\ndata: {}\r\n\r\n",
    b"retry: 10\nid: 7\n\n",
)


@looped("ping", PINGS)
@looped("size", [1, 3, 4096])
def test_pings_are_no_content(ping: bytes, size: int) -> None:
    watch = seen(PARTIAL, 4096)
    assert watch.content
    for start in range(0, 3 * len(ping), size):
        watch.see((ping * 3)[start : start + size])
        assert not watch.content
    watch.see(PARTIAL)
    assert watch.content


def test_each_part_of_a_long_line_of_data_is_content() -> None:
    watch = seen(PARTIAL[:-9], 4096)
    for _ in range(9):
        watch.see(b"QQQQ")
        assert watch.content
