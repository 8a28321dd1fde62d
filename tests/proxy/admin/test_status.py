"""The status of one process and of several."""

from proxy.admin.status import ProcessStatus, combined, status_facts
from proxy.deployment_health.concurrency_limit import Limited
from proxy.deployment_health.last_failures import Noted
from proxy.discovery.discovered_models import ListState
from proxy.process.load_table import Source
from proxy.workers.worker_main import STATUS


def test_several_are_ready_as_soon_as_one_is_and_have_the_sum_of_what_each_has() -> None:
    one = ProcessStatus(False, 2, 5, {"v/m/a": 1.5, "v/m/b": 3.0})
    other = ProcessStatus(True, 3, 0, {"v/m/b": 2.0, "v/m/c": 9.0})
    assert combined([one, other]) == ProcessStatus(True, 5, 5, {"v/m/a": 1.5, "v/m/b": 3.0, "v/m/c": 9.0})


def test_of_several_that_failed_at_a_deployment_the_last_one_tells() -> None:
    moments = [
        ProcessStatus(True, 0, 0, {}, last_failures={"a": Noted("a", when, "timeout")}) for when in (1.0, 3.0, 2.0)
    ]
    assert combined(moments).last_failures == {"a": Noted("a", 3.0, "timeout")}


def test_the_limits_of_several_are_added_up_in_the_words_of_the_tightest() -> None:
    one = ProcessStatus(
        True, 9, 0, {}, limited={"v/m/a": Limited(8, "operator", 8, 2), "v/m/b": Limited(5, "operator", 1, 0)}
    )
    other = ProcessStatus(True, 9, 0, {}, limited={"v/m/a": Limited(7, "learned", 5, 0)})
    both = combined([one, other, ProcessStatus(True, 0, 0, {})])
    assert both.limited == {"v/m/a": Limited(15, "learned", 13, 2), "v/m/b": Limited(5, "operator", 1, 0)}
    facts = status_facts(Source(None, {}).load().snapshot, both)
    assert facts["limited"] == [
        "v/m/a, 15 at once (learned), 13 in flight, 2 waiting",
        "v/m/b, 5 at once (operator), 1 in flight, 0 waiting",
    ]


def test_none_at_all_are_not_ready() -> None:
    assert combined([]) == ProcessStatus(False, 0, 0, {})


def test_a_deployment_that_is_unavailable_is_named_with_the_time() -> None:
    snapshot = Source(None, {}).load().snapshot
    failures = {"v/m/a": Noted("v/m/a", 1_790_000_000.25, "connect: The upstream refused the connection (h:1).")}
    facts = status_facts(snapshot, ProcessStatus(True, 1, 0, {"v/m/b": 2.04, "v/m/a": 10}, last_failures=failures))
    refused = "2026-09-21T14:13:20.250Z v/m/a: connect: The upstream refused the connection (h:1)."
    assert facts["last_failures"] == [refused]
    assert facts["unavailable"] == ["v/m/a, 10.0 s", "v/m/b, 2.0 s"]
    assert facts["limited"] == []
    assert (facts["table"], facts["ready"], facts["in_flight"]) == (snapshot.digest, True, 1)


def test_of_a_list_of_models_that_several_fetch_the_one_that_failed_is_told() -> None:
    one = ProcessStatus(True, 0, 0, {}, model_lists={"v": ListState(5), "w": ListState()})
    other = ProcessStatus(True, 0, 0, {}, model_lists={"v": ListState(5, 0, "timeout"), "w": ListState(7)})
    both = combined([one, other])
    facts = status_facts(Source(None, {}).load().snapshot, both)
    assert facts["model_lists"] == ["v, 5 models, last fetch failed: timeout", "w, 7 models"]
    assert STATUS.validate_json(STATUS.dump_json(both)) == both
