"""The figures that tests decide, and the figures that no run measures.

A figure may be measured twice: by a simulation with every change, and under load at night. It then has two lines of one
number, and the other line is in `figures_load`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from tests.faults.registry import NUMBERS
from tests.trust.figure_types import Case, Figure, NotHeld, Result, Sabotage, Tests
from tests.trust.properties import properties

FAULTS: Final = ("tests/faults/test_faults.py",)
SIMULATION: Final = "tests/proxy/deployment_health/test_health_simulation.py::"
LOOPS: Final = frozenset({"asyncio", "uvloop"})
FAILOVER: Final = "tests/faults/test_failover"
TWELVE_AND_FOUR: Final = {"pass": 12, "safe": 4}
_FAULT: Final = re.compile(r"\bF(\d\d)-")
_SCENARIO: Final = re.compile(r"\[S\d\d-(pass|partial|safe|fail)\]")


def faults_shown(cases: Sequence[Case]) -> Result:
    """Return a good result if each fault passed on both loops. A skipped test does not count; .ci/run lists these."""
    cases = _run(cases)
    loops: dict[int, set[str]] = defaultdict(set)
    failed = set()
    for case in cases:
        if found := _FAULT.search(case.name):
            number = int(found[1])
            loops[number].update(loop for loop in LOOPS if loop in case.name)
            if case.state != "passed":
                failed.add(number)
    shown = {number for number, seen in loops.items() if seen == LOOPS} - failed
    absent = set(NUMBERS) - shown
    value = f"{len(shown)} of {len(NUMBERS)}"
    if absent:
        value += f"; not shown: {_names(absent)}"
    return Result(value, not absent and all(case.state == "passed" for case in cases))


def _run(cases: Sequence[Case]) -> Sequence[Case]:
    return [case for case in cases if case.state != "skipped"]


def _names(numbers: Iterable[int]) -> str:
    return ", ".join(f"F{number:02}" for number in sorted(numbers))


def none_hung(cases: Sequence[Case]) -> Result:
    """Return a good result if no case hung. A case that hangs fails at its limit."""
    return _none("hung", cases)


def none_leaked(cases: Sequence[Case]) -> Result:
    """Return a good result if no case leaked. A case fails if the resources before and after it differ."""
    return _none("leaked", cases)


def failed_over(cases: Sequence[Case]) -> Result:
    """Return a good result if twelve scenarios passed and four were safe, each in every run."""
    kinds = Counter(found[1] for case in cases if case.state == "passed" and (found := _SCENARIO.search(case.name)))
    failed = [case.name for case in cases if case.state != "passed"]
    value = f"{kinds['pass']} pass, {kinds['safe']} safe"
    return Result(value + (f"; {len(failed)} tests failed" if failed else ""), kinds == TWELVE_AND_FOUR and not failed)


def _none(word: str, cases: Sequence[Case]) -> Result:
    cases = _run(cases)
    failed = sum(case.state != "passed" for case in cases)
    told = f"; nothing is known of {failed} that failed" if failed else ""
    return Result(f"0 {word} in {len(cases) - failed} cases{told}", not failed)


FIGURES: Final = (
    Figure(
        *("R01", "Faults that end as documented", "69 of 69 on both loops", "C"),
        Tests(FAULTS, faults_shown),
        Sabotage("proxy/http_client/http1_connection.py", 'b"HTTP/1.1 1", b"HTTP/1.0 1"', 'b"HTTP/1.0 1"'),
        0.8,
    ),
    Figure(
        *("R02", "Hung requests over them", "0", "C"),
        Tests(FAULTS, none_hung),
        Sabotage("proxy/deadlines.py", "self._alarm = self._alarms.set(due, self._check)", "self._alarm = None"),
    ),
    Figure(
        *("R03", "Leaks after them", "0 sockets, descriptors, tasks, places, gauges", "C"),
        Tests(FAULTS, none_leaked),
        Sabotage("proxy/dispatch/running_attempt.py", "self._queue.release(self._exchange.team.name)", "pass"),
    ),
    Figure(
        *("R04", "Silent truncations", "0 of 1,000 random cuts", "C"),
        Tests(("tests/faults/test_cuts.py",)),
        Sabotage(
            "proxy/gateway/answer_request.py",
            "await _break(exchange, response, renderer, failed.facts)",
            'await response.write_eof(renderer.end() if renderer else b"")',
        ),
        0.4,
    ),
    Figure(
        *("R11", "Objects left by requests of every outcome", "0 of our classes, 250 requests each", "C"),
        Tests(("tests/trust/test_objects.py",)),
        Sabotage("proxy/deadlines.py", "self._among.discard(self)", "pass"),
        0.2,
    ),
    Figure(
        *("R14", "Departed clients whose upstream goes on", "0 of 500, before and after headers, in a wait", "C"),
        Tests(("tests/trust/test_departures.py",)),
        Sabotage(
            "proxy/listener/inline_requests.py",
            "self._stop_collecting()\n        if self._eager is not None:",
            "self._stop_collecting()\n        if False:",
        ),
    ),
    Figure(
        *("R15", "Retry amplification, all dead (virtual time)", "<= 1.3x without ejection, <= 0.1x with it", "C"),
        Tests(
            (
                f"{SIMULATION}test_dead_deployments_get_next_to_nothing_of_the_load",
                "tests/proxy/dispatch/test_single_attempt.py::test_retries_are_paid_for_out_of_what_is_asked_for",
                "tests/proxy/dispatch/test_attempt_loop.py::test_a_total_outage_is_not_made_worse",
            )
        ),
        Sabotage(
            "proxy/dispatch/attempt_loop.py",
            "return self._breaker(self._next.target).healthy(self.context.now(), self.exchange.team.tenant)",
            "return True",
        ),
    ),
    Figure(
        *("R16", "One of three dead (virtual time)", "0 errors; <= 40 tries on it in 60 s", "C"),
        Tests((f"{SIMULATION}test_one_dead_deployment_of_three_costs_few_tries_and_no_answer",)),
        Sabotage(
            "proxy/deployment_health/circuit_breaker.py",
            "return self._in_row >= rules.failures or too_many",
            "return False",
        ),
    ),
    Figure(
        *("R17", "One of three hanging (virtual time)", "p99 of the first byte <= 5 s", "C"),
        Tests((f"{SIMULATION}test_one_hanging_deployment_of_three_delays_few_requests",)),
        Sabotage(
            "proxy/deployment_health/circuit_breaker.py",
            "if self.in_flight <= self._rules.hanging_least:",
            "if self.in_flight:",
        ),
    ),
    Figure(
        "R18",
        "Recovery from 5 min outage, and of a primary (virtual time)",
        ">= 99 % within 10 s of the return",
        "C",
        Tests(
            (
                f"{SIMULATION}test_after_five_minutes_without_any_deployment_answers_are_back_within_seconds",
                "tests/proxy/deployment_health/test_recovery.py::test_a_primary_that_is_back_answers_within_ten_seconds",
            )
        ),
        Sabotage(
            "proxy/deployment_health/circuit_breaker.py",
            "if self._probe and self._epoch == breaker._epoch:",
            "if False:",
        ),
    ),
    Figure(
        *("R19", "Herd after a cooldown, 200 waiters", "1 probe at a time; <= 10 % in the first second", "C"),
        Tests(
            (
                f"{SIMULATION}test_of_two_hundred_waiters_one_goes_to_the_deployment_that_returns",
                f"{SIMULATION}test_of_two_hundred_waiters_for_one_deployment_one_is_let_through",
            )
        ),
        Sabotage(
            "proxy/deployment_health/circuit_breaker.py",
            "return self._rules.panic_every if self._probing else 0.0",
            "return 0.0",
        ),
    ),
    Figure(
        *("R20", "Retry-After honoured", "1,000 of 1,000: never early, never above the cap", "C"),
        Tests(("tests/trust/test_retry_after.py",)),
        Sabotage(
            "providers/vendor_text/read_retry_after.py", "return float(text) / unit", "return 0.9 * float(text) / unit"
        ),
    ),
    Figure(
        *("R22", "Deadlines kept (virtual time)", "2,000 of 2,000 at the limit; 0 tries after it", "C"),
        Tests(("tests/trust/test_total_deadlines.py",)),
        Sabotage(
            "proxy/deadlines.py",
            "self._total_at = self._last + total",
            "self._total_at = self._last + 1.01 * total",
        ),
    ),
    Figure(
        *("R24", "Fuzz, properties", "20 properties, 5,000 examples each, 0 failures", "N"),
        properties,
        Sabotage(
            "providers/vendor_text/read_retry_after.py",
            "except (ValueError, TypeError, OverflowError):",
            "except TypeError:",
        ),
        4.0,
    ),
    Figure(
        *("R26", "Smuggling corpus", "all refused or read in one way", "C"),
        Tests(("tests/proxy/listener/test_head_checks.py",)),
        Sabotage("proxy/listener/fast_head_parser.py", 'if "#" in target:', "if False:"),
    ),
    Figure(
        *("R27", "Secrets found in what leaves the gateway", "0", "C"),
        Tests(("tests/security/test_canary.py",)),
        Sabotage("proxy/dispatch/running_attempt.py", "return target.credential.conceal(text, fetched)", "return text"),
    ),
    Figure(
        *("R28", "Requests that move a call", "0 of 50,000 change host, path depth or credential", "C"),
        Tests(("tests/security/test_destination.py",)),
        Sabotage(
            "providers/dialects/bedrock/converse.py",
            "return f\"/model/{quote(target.upstream_model, safe='')}/{action}\"",
            'return f"/model/{target.upstream_model}/{action}"',
        ),
        0.4,
    ),
    Figure(
        *("R29", "Series that clients make", "0 of 10,000 names and 10,000 paths", "C"),
        Tests(("tests/security/test_cardinality.py",)),
        Sabotage(
            "proxy/gateway/answer_generation.py",
            "record.asked, record.stream = request.model, request.stream",
            "record.model, record.asked, record.stream = request.model, request.model, request.stream",
        ),
        0.2,
    ),
    Figure(
        *("R30", "Words of one tenant that another reads", "0 in 2,000 marked requests of 50 teams", "C"),
        Tests(("tests/security/test_isolation.py",)),
        Sabotage(
            "proxy/teams/client_keys.py",
            "found = snapshot.keys.get(digest)",
            "found = next(iter(snapshot.keys.values())) if digest in snapshot.keys else None",
        ),
    ),
    Figure(
        *("R32", "Log lines of 1,000 broken streams", "1,000 of <= 4 KiB, and <= 10 of the process", "C"),
        Tests(
            (
                "tests/trust/test_log_lines.py",
                "tests/proxy/telemetry/test_access_log.py::test_whatever_a_client_calls_things_and_whatever_failed_the_line_is_short",
            )
        ),
        Sabotage(
            "proxy/gateway/answer_request.py",
            "    metrics.abort(*abort_labels(error)",
            '    __import__("logging").warning("cut"); metrics.abort(*abort_labels(error)',
        ),
    ),
    Figure(
        *("R34", "Dependency floors and start-up hooks", "0 below a floor; planted hole refused; 0 hooks", "C"),
        Tests(
            (
                "tests/security/test_floor.py",
                "tests/security/test_hardening.py::test_the_image_is_not_built_with_a_file_that_python_runs_by_itself",
                "tests/security/test_hardening.py::test_no_dependency_brings_a_file_that_python_runs_by_itself",
            )
        ),
        Sabotage("tests/security/floor.py", "release(version) < release(floor.least):", "not release(version):"),
    ),
    Figure(
        *("R36", "Stall of others by costly requests, on a busy machine", "none of 1.5 s, over the whole corpus", "C"),
        Tests(("tests/security/test_costly_requests.py",)),
        Sabotage(
            "proxy/off_loop/answer_check_process.py",
            "    signal.setitimer(signal.ITIMER_PROF, CHECK_SECONDS + ",
            "    float(",
        ),
        0.5,
    ),
    Figure(
        *("R38", "Random constraints that crash, hold the loop or keep memory", "0 of 500; 20,000 at night", "C"),
        Tests(("tests/security/test_constraint_fuzz.py",)),
        Sabotage(
            "proxy/off_loop/answer_check_process.py", "threading.stack_size(STACK_BYTES)", "threading.stack_size(2**16)"
        ),
        0.2,
    ),
    Figure(
        *("R39", "Tenants hurt by another's behaviour", "0: uploads, deadlines, quoted words, grants", "C"),
        Tests(("tests/security/test_fair_share.py", "tests/security/test_grants.py")),
        Sabotage("proxy/routing/resolve_model.py", "if found.deployment is None or not allowed(", "if not allowed("),
        0.3,
    ),
    Figure(
        *("R40", "FailoverBench, by its own rules", "12 pass, 4 safe (what broke in mid-stream), 7 runs each", "C"),
        Tests((f"{FAILOVER}.py", f"{FAILOVER}_verdicts.py"), failed_over),
        Sabotage(
            "providers/failure.py",
            'FailureKind.CONTENT_FILTER: Verdict(400, "invalid_request_error", "content_filter", False,',
            'FailureKind.CONTENT_FILTER: Verdict(400, "invalid_request_error", "content_filter", True,',
        ),
        0.4,
    ),
    Figure(
        *("R42", "Spending counted twice, or steps that were not reached", "0 in all orders of two processes", "C"),
        Tests(("tests/proxy/limits/test_spending_in_any_order.py",)),
        Sabotage(
            "proxy/limits/spending.py",
            "return max(by_ledger - self._doubtful, by_others, min(self.settled, most))",
            "return max(by_ledger, by_others, min(self.settled, most))",
        ),
    ),
    Figure(
        *(
            "R43",
            "Limits after starts without Redis (virtual time)",
            "kept, but for idle parts of who knew nothing",
            "C",
        ),
        Tests(("tests/proxy/limits/test_restarted_alone.py",)),
        Sabotage(
            "proxy/shared_state/lease_keeper.py",
            "return NEVER if keeper.has_answered or keeper.other_gateways else math.inf",
            "return NEVER if keeper.has_answered else math.inf",
        ),
        0.5,
    ),
    Figure(
        *("R44", "Ledger rows lost on a full journal disk, a well database", "0 of 1,200, at SIGTERM too", "C"),
        Tests(("tests/trust/test_full_disk.py", "tests/proxy/ledger/test_full_disk.py")),
        Sabotage(
            "proxy/ledger/journal.py",
            "self._spare_until = now + SPARE_SECONDS",
            "self._spare_until = -math.inf",
        ),
    ),
    Figure(
        *("R45", "Responses that a fault of an observer changes", "0, for each observer, streamed and whole", "C"),
        Tests(("tests/trust/test_observers.py",)),
        Sabotage(
            "proxy/telemetry/observer_guard.py",
            "            return report(*about)\n        except Exception:",
            "            return report(*about)\n        except LookupError:",
        ),
    ),
    Figure(
        *("R46", "Conversations at the deployment with their cache", "95 % of one deployment's cached tokens", "C"),
        Tests(("tests/proxy/routing/test_affinity_figures.py", "tests/proxy/routing/test_session_processes.py")),
        Sabotage(
            "proxy/routing/session_load.py",
            "rank(session.number, group)",
            "rank(id(placed), group)",
        ),
        0.2,
    ),
    Figure(
        *("R47", "Keep-alives within an event, or in place of what follows", "0 in every cut of every stream", "C"),
        Tests(("tests/proxy/relay/test_client_stream.py", "tests/proxy/gateway/test_keep_alives.py")),
        Sabotage("proxy/listener/streamed_response.py", "client._paused or self._within_chunk", "client._paused"),
        0.3,
    ),
    Figure(
        *("R48", "Second attempts (virtual time)", "p99, p99.9 -80 %; <= 3 % more calls; an outage <= 0.5 %", "C"),
        Tests(
            (
                "tests/proxy/dispatch/test_hedging_figures.py",
                "tests/proxy/dispatch/test_hedged_attempt.py",
                "tests/proxy/gateway/test_hedging.py",
            )
        ),
        Sabotage(
            "proxy/dispatch/hedged_attempt.py",
            "self._exchange.deadlines.expire(Phase.HEDGE)",
            "pass",
        ),
        1.0,
    ),
    Figure(
        *("R49", "Parts of receipts that differ from the clock", "0, in virtual time and over sockets", "C"),
        Tests(("tests/proxy/receipt/test_times_by_the_clock.py", "tests/proxy/gateway/test_receipts.py")),
        Sabotage("proxy/dispatch/running_attempt.py", "exchange.record.waits().queued += waited", "pass"),
        0.2,
    ),
)

UNHELD: Final = (
    Figure(
        *("R35", "Flake rate of this board", "0 unexplained red in 20 nightly runs", "N"),
        NotHeld("kept by whoever runs the board at night: no run knows of the others"),
    ),
)
"""Figures that no run measures. Each stays on the board as long as nothing measures it."""
