"""The values in the spans of a request."""

from providers.completion import Usage
from proxy.receipt.server_timing import NAMELESS
from proxy.request_outcomes import CacheUse, WaitMarks
from proxy.request_record import OTHER, Attempt, Outcome
from proxy.tracing.semantic_conventions import CalledDeployments
from proxy.tracing.span_values import FIRST_CONTENT, MOST_TEXT, Side, SpanEvent, SpanValues, spans_of
from tests.proxy.tracing.kit.finished import CALLED, LABEL, finished, record, trace
from tests.support.looped import looped

SECOND = 1_000_000_000
BASE = 1_800_000_000 * SECOND


def one(outcome: Outcome) -> SpanValues:
    return next(spans_of(finished(record(outcome=outcome, status=500)), CALLED))


def test_a_request_and_its_attempt_by_the_conventions() -> None:
    usage = Usage(10, 20, {"cached_tokens": 4, "cache_write_tokens": 2}, {"reasoning_tokens": 7})
    noted = trace(params={"gen_ai.request.max_tokens": 64}, finish_reasons=("stop",))
    request, attempt = spans_of(finished(record(usage=usage), noted, 0.25), CALLED)
    assert (request.name, request.side, request.span_id, request.parent_id, request.remote) == (
        *("chat v/m", Side.SERVER, 0x10, 0x99),
        True,
    )
    assert (request.start, request.end) == (BASE + SECOND, BASE + 3 * SECOND)
    assert request.attributes == {
        "gen_ai.operation.name": "chat",
        "http.request.method": "POST",
        "url.path": "/v1/chat/completions",
        "http.response.status_code": 200,
        "client.address": "10.0.0.9",
        "dragoman.request_id": "req-1",
        "dragoman.team": "search",
        "dragoman.surface": "openai",
        "dragoman.outcome": "ok",
        "dragoman.attempts": 1,
        "gen_ai.request.model": "v/m",
        "gen_ai.request.stream": False,
        "gen_ai.request.max_tokens": 64,
        "gen_ai.provider.name": "openai",
        "gen_ai.response.model": "gpt",
        "dragoman.deployment": LABEL,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 7,
        "dragoman.cost_usd": 0.25,
    }
    assert (attempt.name, attempt.side, attempt.span_id, attempt.parent_id, attempt.remote) == (
        *("chat v/m", Side.CLIENT, 0x11, 0x10),
        False,
    )
    assert (attempt.start, attempt.end) == (BASE + SECOND * 5 // 4, BASE + SECOND * 11 // 4)
    assert attempt.attributes["server.address"] == "api.openai.com"
    assert attempt.attributes["server.port"] == 443
    assert attempt.attributes["gen_ai.request.model"] == "gpt"
    assert attempt.attributes["gen_ai.usage.output_tokens"] == 20
    assert not request.failed
    assert not attempt.failed


def test_the_span_of_a_request_counts_all_of_its_calls_and_that_of_an_attempt_its_own() -> None:
    spans = spans_of(finished(record(usage=Usage(1, 2), billed=Usage(3, 5))), CALLED)
    counts = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    assert [[span.attributes[name] for name in counts] for span in spans] == [[3, 5], [1, 2]]


def test_a_stale_answer_of_the_cache_is_told_as_one() -> None:
    request, _ = spans_of(finished(record(cache=CacheUse("stale", 70.0))), CALLED)
    assert request.attributes["dragoman.cache"] == "stale"


def test_where_the_time_went_is_in_the_span_if_the_client_is_told() -> None:
    attempts = [Attempt(LABEL, 1.25, 1.5, "server", 500), Attempt(LABEL, 1.75, 2.75, begun=2.0, connect=0.125)]
    made = record(attempts=attempts, first_content=2.0, marks=WaitMarks(paused=0.25, stalls=1, stalled=1.5))
    request, *_ = spans_of(finished(made), CALLED)
    assert not [name for name in request.attributes if name.startswith("dragoman.time")]
    made.receipt = NAMELESS
    request, *_ = spans_of(finished(made), CALLED)
    told = {name.removeprefix("dragoman."): value for name, value in request.attributes.items()}
    assert {name: value for name, value in told.items() if name.startswith("time.")} == {
        "time.gateway": 0.25,
        "time.backoff": 0.25,
        "time.connect": 0.125,
        "time.vendor": 0.125,
        "time.stream": 1.0,
        "time.stalled": 1.5,
    }
    assert (told["stalls"], told["tokens_per_second"]) == (1, 20.0)


def test_the_first_content_of_a_stream_is_an_event_of_the_request_and_of_the_attempt_that_had_it() -> None:
    failed = Attempt(LABEL, 1.0, 1.1, "server", 500, name=LABEL)
    ended = record(stream=True, first_content=1.5, attempts=[failed, Attempt(LABEL, 1.25, 2.75, name=LABEL)])
    request, first, last = spans_of(finished(ended), CALLED)
    event = (SpanEvent(FIRST_CONTENT, BASE + SECOND * 3 // 2),)
    assert (request.events, first.events, last.events) == (event, (), event)
    assert request.attributes["gen_ai.response.time_to_first_chunk"] == 0.5


def test_an_attempt_that_failed_says_why_and_what_a_vendor_wrote_only_where_content_is_allowed() -> None:
    failed = Attempt(LABEL, 1.0, 0.0, "connect", None, "canary", True, "refused", LABEL, ("stale_connection",))
    ended = record(attempts=[failed], outcome="upstream_error", code="upstream_error", status=502, usage=None)
    request, attempt = spans_of(finished(ended), CALLED)
    assert attempt.failed
    assert attempt.message is None
    assert attempt.end == request.end
    assert attempt.attributes["error.type"] == "connect.refused"
    assert attempt.attributes["dragoman.maybe_executed"] is True
    assert attempt.attributes["http.request.resend_count"] == 1
    assert request.attributes["error.type"] == "upstream_error"
    assert [*spans_of(finished(ended, trace(keeps_content=True)), CALLED)][1].message == "canary"


@looped("outcome", ["upstream_error", "timeout", "truncated", "shed", "error"])
def test_what_went_wrong_behind_the_gateway_is_an_error(outcome: Outcome) -> None:
    assert one(outcome).failed


@looped("outcome", ["client_error", "client_gone", "denied", "limited"])
def test_what_the_client_did_is_none(outcome: Outcome) -> None:
    assert not one(outcome).failed


def test_contents_are_attributes_of_the_request_alone() -> None:
    request, attempt = spans_of(finished(of=trace(keeps_content=True, prompt="[1]", answer="[2]")), CALLED)
    assert request.attributes["gen_ai.input.messages"] == "[1]"
    assert request.attributes["gen_ai.output.messages"] == "[2]"
    assert not {"gen_ai.input.messages", "gen_ai.output.messages"} & attempt.attributes.keys()


def test_what_a_client_chose_is_cut_and_valid_and_in_no_span_name() -> None:
    ended = record(asked="m\udcff" * 500, path="/v1/chat/completions", model=OTHER, attempts=[])
    (request,) = spans_of(finished(ended), CALLED)
    assert request.name == "chat"
    assert request.attributes["gen_ai.request.model"] == "m?" * (MOST_TEXT // 2)


def test_a_deployment_that_a_reload_has_removed_is_told_by_its_name() -> None:
    attempt = [*spans_of(finished(), CalledDeployments())][1]
    assert attempt.attributes["gen_ai.provider.name"] == "_OTHER"
    assert attempt.attributes["gen_ai.request.model"] == "m"
    assert "server.address" not in attempt.attributes


def test_what_asks_no_model_is_a_request() -> None:
    (request,) = spans_of(finished(record(path="/v1/models", attempts=[], model=OTHER), trace(method="GET")), CALLED)
    assert request.name == "request"
    assert "gen_ai.request.model" not in request.attributes


def test_two_attempts_at_a_time_keep_the_ids_that_their_calls_carried() -> None:
    """The attempt that succeeded is the last one, whichever began first."""
    second = Attempt("v/m/two", 1.75, 2.0, "superseded", name="v/m/two", hedge=True, number=2)
    first = Attempt(LABEL, 1.25, 2.75, name=LABEL, number=1)
    made = record(attempts=[second, first], first_content=2.0)
    _, lost, answered = spans_of(finished(made), CALLED)
    assert (lost.span_id, answered.span_id) == (0x12, 0x11)
    assert (lost.failed, answered.failed) == (False, False)
    assert lost.attributes["dragoman.hedge"] is True
    assert lost.attributes["dragoman.superseded"] is True
    assert "dragoman.hedge" not in answered.attributes
    assert (lost.events, [event.name for event in answered.events]) == ((), [FIRST_CONTENT])
