"""The return values of guards are checked."""

from proxy.plugins.api import ALLOW, GuardedText, Refuse, Rewrite
from proxy.plugins.run_guards import LONGEST_REASON, MAX_ADDED, fault_of, refused
from tests.proxy.plugins.test_running_guard import Plain, guard
from tests.support.looped import looped

TEXTS = (GuardedText("a", "content", "user", "p"), GuardedText('{"a":1}', "tool_arguments", "assistant", "q"))


@looped(
    ("verdict", "fault"),
    [
        (ALLOW, None),
        (Refuse("no"), None),
        (Rewrite(("b", '{"b":2}')), None),
        (Rewrite(("b" * MAX_ADDED, '{"a":1}')), None),
        (Rewrite(("b" * (MAX_ADDED + 2), '{"a":1}')), "longer by more than"),
        (Rewrite(("b",)), "rewrote 2 texts into 1"),
        (Rewrite(("b", "no json")), "which are JSON"),
        (Rewrite(("\udfff", '{"a":1}')), "is not valid Unicode"),
        (Rewrite((b"b", "{}")), "into something else"),  # type: ignore[arg-type]
        (Rewrite("ab"), "into something else"),  # type: ignore[arg-type]
        (None, "returned NoneType"),
        (Rewrite, "returned type"),
    ],
)
def test_what_is_no_verdict_is_a_failure(verdict: object, fault: str | None) -> None:
    found = fault_of(TEXTS, verdict)
    assert found is None if fault is None else fault in (found or "")


async def test_a_reason_is_one_short_line_and_its_code_one_of_two() -> None:
    facts = refused(guard(Plain()), "a\nb" + "c" * 1000, "own").facts
    assert facts.message.startswith("Refused by the plugin 'g': a bcc")
    assert len(facts.message) < LONGEST_REASON + 40
    assert (facts.code, facts.status) == ("refused_by_plugin", 400)
    assert refused(guard(Plain()), None, "content_filter").facts.code == "content_filter"
