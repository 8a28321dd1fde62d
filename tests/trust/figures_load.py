"""The figures that need the whole gateway as a process under load, or a tool that runs for a while.

The modules named `load_`, `soak` and `fuzz` in this folder measure them.
"""

from tests.trust import (
    fuzz,
    fuzz_server,
    load_capacity,
    load_dead,
    load_drain,
    load_failed,
    load_failover,
    load_hostile,
    load_memory,
    load_receipts,
    load_reload,
    load_shared,
    load_workers,
    soak,
)
from tests.trust.figure_types import Figure, Sabotage

LEAK = Sabotage(
    "proxy/gateway/handle_request.py",
    "        record.finished = record.finished or self._now()\n        self._exchanges",
    "        record.finished = record.finished or self._now()\n"
    '        self.__dict__.setdefault("kept", []).append(record)\n        self._exchanges',
)
"""A leak: every record stays in memory."""

LOAD_FIGURES: tuple[Figure, ...] = (
    Figure(
        "R05",
        "SIGTERM under load",
        "0 of 200 streams, 40 keep-alive clients and 20 uploads dropped or cut, five times; exit code 0 within 4 s",
        "N",
        load_drain.r05,
        Sabotage("proxy/process/shutdown.py", "    gateway.draining = True\n", ""),
        0.5,
    ),
    Figure(
        *("R06", "SIGTERM beyond the drain limit", "every survivor gets an error event or an envelope", "C"),
        load_drain.r06,
        Sabotage("proxy/gateway/handle_request.py", "deadlines.expire(Phase.DRAIN)", "pass"),
        0.15,
    ),
    Figure(
        "R07",
        "Reload under load",
        "0 of 10,000 requests fail over 100 reloads, 50 of them invalid; applied within 250 ms; p99 at most 20 ms more",
        "N",
        load_reload.r07,
        Sabotage(
            "proxy/process/reload.py",
            "table = await asyncio.to_thread(self._source.load_to_serve)",
            'table = (__import__("time").sleep(0.3), self._source.load_to_serve())[1]',
        ),
        1.0,
    ),
    Figure(
        "R08",
        "SIGKILL of one of two workers",
        "losses only at that worker; new connections fail for at most 20 ms; two workers again within 1.5 s",
        "N",
        load_workers.r08,
        Sabotage(
            "proxy/workers/restart_workers.py", "return 0.0 if quick_ends < 2 else", "return 5.0 if quick_ends < 2 else"
        ),
        0.4,
    ),
    Figure(
        "R09",
        "Soak slope, mixed load",
        "memory grows by at most 3 MB an hour over 7 of 10 minutes at 150 requests a second; descriptors flat",
        "N",
        soak.r09_night,
        LEAK,
        10.2,
    ),
    Figure(
        "R09",
        "Soak slope, mixed load",
        "memory grows by at most 1 MB an hour over 50 of 60 minutes at 150 requests a second; descriptors flat",
        "W",
        soak.r09_release,
        LEAK,
        60.2,
    ),
    Figure(
        *("R10", "Cycle leak", "memory after 5 cycles of 20,000 requests at most 1 % above that after 2", "N"),
        soak.r10,
        Sabotage(
            "proxy/process/request_observer.py",
            "self._lines.write(self._line(record, cost))\n",
            "self._lines.write(self._line(record, cost)), self.__dict__.setdefault('kept', []).append(record)\n",
        ),
        4.2,
    ),
    Figure(
        *("R12", "Memory of an idle relayed stream", "at most 40 KB, and 220 MB with 4,000 of them", "N"),
        load_memory.r12,
        Sabotage(
            "proxy/gateway/client_exchange.py",
            "        response.begin(self.http)\n",
            '        response.begin(self.http)\n        response.__dict__["x"] = b"x" * 2**16\n',
        ),
        0.6,
    ),
    Figure(
        "R13",
        "Slow readers",
        "at most 512 KB for each of 200 that never read, closed at 60 s, upstream paused",
        "N",
        load_memory.r13,
        Sabotage("proxy/deadlines.py", "CLIENT_STALL = 60.0", "CLIENT_STALL = 6000.0"),
        1.8,
    ),
    Figure(
        "R41",
        "Memory after 200 failed answers as large as are read",
        "at most 40 MB more at rest, at most 512 MB at any moment",
        "N",
        load_failed.r41,
        Sabotage("proxy/relay/relay_to_client.py", "                del broken  #", "                pass  #"),
        3.5,
    ),
    Figure(
        "R15",
        "Retry amplification, every upstream dead",
        "at most 1.3 tries a request with ejection off, 0.1 with it on",
        "N",
        load_dead.r15,
        Sabotage("proxy/teams/retry_budget.py", "if self._tokens < 1:", "if False:"),
        2.1,
    ),
    Figure(
        "R16",
        "One of three dead, one of two killed",
        "0 client errors after the first second; at most 40 tries on the dead one in 60 s",
        "N",
        load_dead.r16,
        Sabotage(
            "proxy/deployment_health/circuit_breaker.py",
            "enough = denied or breaker._count_failure(now, self._probe)",
            "enough = denied",
        ),
        1.6,
    ),
    Figure(
        "R17",
        "One of three hanging",
        "p99 of the first byte at most 5 s, with 60 s for a try, at a scale of 1:10",
        "N",
        load_dead.r17,
        Sabotage(
            "proxy/deployment_health/circuit_breaker_rules.py", "hanging_least: int = 16", "hanging_least: int = 10**9"
        ),
        0.8,
    ),
    Figure(
        "R21",
        "Overload at three times the capacity",
        "at least 90 % of the peak, refused p99 at most 50 ms, admitted p99 at most twice the unloaded one, none lost",
        "N",
        load_capacity.r21,
        Sabotage(
            "proxy/overload/start_queue.py",
            "return len(self._waiting) + self.coming >= self._longest and",
            "return False and",
        ),
        1.2,
    ),
    Figure(
        "R23",
        "Fuzz, parsers",
        "0 unexpected exceptions in 200,000 runs of each parser of bytes from outside, 10,000 of a vendor's decoders",
        "N",
        fuzz.r23,
        Sabotage(
            "providers/framing/parse_aws_eventstream.py", "except (IndexError, struct.error):", "except IndexError:"
        ),
        5.0,
    ),
    Figure(
        "R25",
        "Fuzz, whole server",
        "0 status 500, 0 without an envelope, 0 lags above 100 ms in 100,000 requests and 20,000 raw connections",
        "N",
        fuzz_server.r25,
        Sabotage(
            "proxy/listener/http_connection.py",
            'error = bad_http("The request could not be read as HTTP.", status)',
            "error = internal_error()",
        ),
        2.0,
    ),
    Figure(
        "R31",
        "Redis refused, frozen, flapping",
        "at most 5 requests 60 ms later than beside it without Redis, p99 at most 10 ms and 25 % more; 1 to 4 lines",
        "N",
        load_shared.r31,
        Sabotage(
            "proxy/shared_state/redis_sync.py",
            "reply = await reply_within(COMMAND_TIMEOUT, self._command(sent))",
            'reply = (__import__("time").sleep(0.1), await reply_within(COMMAND_TIMEOUT, self._command(sent)))[1]',
        ),
        1.2,
    ),
    Figure(
        "R33",
        "Loop lag",
        "at most 20 ms at half of the capacity, at most 150 ms during a body of 32 MiB, scrapes and reloads",
        "N",
        load_capacity.r33,
        Sabotage(
            "proxy/surfaces/request/heavy_body.py",
            "INLINE_PARSE_BYTES: Final = 384 * 1024",
            "INLINE_PARSE_BYTES: Final = 2**40",
        ),
        1.3,
    ),
    Figure(
        *("R36", "Stall of others by costly requests", "at most 50 ms more than at rest, over the whole corpus", "N"),
        load_hostile.r36,
        Sabotage("proxy/off_loop/answer_check_pool.py", "if check.brief(text):", "if True:"),
        0.5,
    ),
    Figure(
        *("R37", "Memory kept after costly requests", "at most 20 MB", "N"),
        load_hostile.r37,
        Sabotage(
            "proxy/off_loop/answer_check_pool.py",
            "if check.brief(text):",
            'if self.__dict__.setdefault("kept", []).append(text * 40) is None:',
        ),
        0.5,
    ),
    Figure(
        *("R40", "FailoverBench at its own times", "12 pass, 4 safe (what broke in mid-stream), 7 runs each", "N"),
        load_failover.r40,
        Sabotage(
            "proxy/dispatch/attempt_loop.py", "self._fallbacks_used = (*self._fallbacks_used, kind)", "return None"
        ),
        1.4,
    ),
    Figure(
        *("R49", "Client's time less the sum of the receipt's parts", "<= 2 ms at p99 of 10,000 requests", "N"),
        load_receipts.r49,
        Sabotage(
            "proxy/receipt/server_timing.py",
            "own = int((end - record.started) * 100_000 + 0.5) - vendor",
            "own = int((end - record.started) * 100_000 + 0.5)",
        ),
        0.5,
    ),
)
"""In the order of their numbers."""
