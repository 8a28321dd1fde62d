"""The responses of the health paths."""

from proxy.listener.health_endpoints import health_response
from tests.support.looped import looped


@looped(
    ("path", "ready", "status", "word"),
    [
        ("/health/ready", True, 200, b"ok"),
        ("/health/ready", False, 503, b"unavailable"),
        ("/health", False, 503, b"unavailable"),
        ("/health/live", False, 200, b"ok"),
        ("/health/liveliness", False, 200, b"ok"),
        ("/health/readiness", True, 200, b"ok"),
        ("/health/readiness", False, 503, b"unavailable"),
    ],
)
def test_health_is_a_status_and_a_word(path: str, ready: bool, status: int, word: bytes) -> None:
    answer = health_response(path, ready)
    assert (answer.status, answer.body, answer.content_type) == (status, b'{"status":"%b"}' % word, "application/json")
