"""Each tool that loads a gateway produces its figure, at a scale that takes a second or two.

The tests do not check the figures: a change cannot be judged by the speed of a machine.
"""

from pathlib import Path

import uvloop

from tests.trust import load_dead, load_drain, load_failed, load_memory, load_reload, load_shared, load_workers
from tests.trust.load_drain import Crowd


def test_a_stop_under_load_loses_nobody(tmp_path: Path) -> None:
    result = load_drain.stop_under_load(tmp_path, Crowd(streams=4, seconds=0.4, keepers=2, uploads=2), 1)
    assert result.value.startswith("dropped or cut 0 of 4 streams, ")
    assert "exit codes [0]" in result.value


def test_survivors_of_a_drain_are_told(tmp_path: Path) -> None:
    result = load_drain.stop_beyond_the_limit(tmp_path, 2, 20.0, 1)
    assert result.good, result.value


def test_reloads_under_load_fail_no_request(tmp_path: Path) -> None:
    found = uvloop.run(load_reload.reload_under_load(tmp_path, 60, 60.0, 4))
    assert [ended for ended in found.during if not ended.well] == []
    assert (len(found.during), found.taken, found.refused, len(found.applied)) == (60, 2, 2, 4)


def test_a_killed_worker_costs_only_what_it_had_and_is_replaced(tmp_path: Path) -> None:
    killed = uvloop.run(load_workers.kill_once(tmp_path, 40.0, 3.0, 8))
    assert sum(not ended.well for ended in killed.streamed) == killed.held
    assert len(killed.asked) == 120
    assert killed.back > 0


def test_dead_vendors_are_not_asked_more_often_than_the_budget_allows(tmp_path: Path) -> None:
    result = load_dead.amplification(tmp_path, 100.0, 40)
    assert "of 40 requests each at 100 a second; 0 ended in anything but an envelope" in result.value


def test_a_dead_deployment_costs_no_client_an_answer(tmp_path: Path) -> None:
    result = load_dead.one_of_three_dead(tmp_path, 40.0, 50)
    assert result.good, result.value


def test_a_vendor_that_is_killed_costs_no_client_an_answer_for_long(tmp_path: Path) -> None:
    result = load_dead.one_of_two_killed(tmp_path, 30.0, 60)
    assert result.good, result.value


def test_a_hanging_deployment_is_left_alone(tmp_path: Path) -> None:
    assert "100 requests" in load_dead.one_of_three_hanging(tmp_path, 100.0, 100, 5.0).value


def test_a_lost_redis_is_told_of_and_delays_no_request(tmp_path: Path) -> None:
    for name in ("sharing", "plain"):
        (tmp_path / name).mkdir()
    seen = uvloop.run(load_shared.beside(tmp_path, "redis://127.0.0.1:1", 20.0, 120))
    assert (len(seen.sharing), len(seen.plain), seen.lines) == (120, 120, 1)
    assert "0 failed of 120" in seen.text()


def test_idle_streams_are_weighed(tmp_path: Path) -> None:
    held = uvloop.run(load_memory.idle_streams(tmp_path, 40))
    assert held.streams == 40
    assert held.loaded > held.at_rest > 0


def test_clients_that_never_read_stop_the_upstream(tmp_path: Path) -> None:
    seen = uvloop.run(load_memory.unread_streams(tmp_path, 2, 0.1, 1))
    assert (seen.more, seen.last, seen.well) == (0, None, True)


def test_answers_that_fail_leave_nothing_in_memory(tmp_path: Path) -> None:
    names = ("a stream of one event", "a stream of no JSON", "a stream that is whole", "a stream that breaks")
    result = load_failed.memory_after_failures(tmp_path, {name: load_failed.KINDS[name] for name in names}, 2)
    assert result.good, result.value
