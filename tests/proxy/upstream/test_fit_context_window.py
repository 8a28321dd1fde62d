"""Requests fitted into the window, in virtual time: the requests to the engine, and the resulting limit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import orjson
import pytest

from providers.context_overflow import MARGIN_TOKENS, MAX_FITTING_CALLS, Overflow
from providers.emulation.plan_calls import PlannedCall, plan_calls
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import ChatPrompt, Operation, Params, Prompt, TextPrompt, TokenPrompt, UnifiedRequest
from proxy.errors import GatewayError
from proxy.request_record import RequestRecord
from proxy.upstream import fit_context_window as fitting
from proxy.upstream.fit_context_window import COUNT_WAIT, Fitting
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import target_of as claude
from tests.proxy.kit.mark_streams import CUT, Body
from tests.proxy.kit.scripted_calls import LLAMACPP, Vendor, ask, refusal, target, whole
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

WINDOW = "context_length_exceeded_behavior"
TRUNCATE: Mapping[str, object] = {WINDOW: "truncate"}
ERROR: Mapping[str, object] = {WINDOW: "error"}
VLLM = target("vllm")
SURE = 1100
"""Tokens that a short prompt certainly does not exceed, including templates."""

Tokenizer = Callable[[str, JsonObject], Body]


def llamacpp(window: int) -> Tokenizer:
    """Return an engine that counts letters, with a window."""

    def answer(path: str, body: JsonObject) -> Body:
        if path == "/tokenize":
            return whole({"tokens": [0] * len(str(body["content"]))})
        assert path == "/props"
        return whole({"default_generation_settings": {"n_ctx": window}})

    return answer


HUNDRED = llamacpp(100)


def vllm(path: str, body: JsonObject) -> Body:
    """Respond as an engine that counts letters, with a window of 100."""
    assert path == "/tokenize"
    return whole({"count": len(str(body["prompt"])), "max_model_len": 100})


@dataclass
class Rig:
    """A fitting in front of an engine."""

    tokenizer: Tokenizer = HUNDRED
    target: Target = LLAMACPP
    record: RequestRecord = field(default_factory=lambda: RequestRecord("req-1", 0.0, "openai", "/"))

    def __post_init__(self) -> None:
        self.vendor = Vendor(lambda body: Body(), self.tokenizer)
        self.fitting = Fitting(lambda call, record: self.vendor.open(call.sent, record.request_id))

    def call(self, request: UnifiedRequest) -> PlannedCall:
        (made,) = plan_calls(request, self.target).calls
        return made

    def before(self, *requests: UnifiedRequest) -> list[PlannedCall]:
        """Return the calls of these requests, one after the other, as they may be sent."""

        async def main() -> list[PlannedCall]:
            return [await self.fitting.beforehand(self.call(request), self.record) for request in requests]

        return run(main())

    def smaller(self, request: UnifiedRequest, failure: Failure, tries: int = 1) -> PlannedCall | None:
        """Return the call to make after a refusal."""
        return run(self.fitting.smaller(self.call(request), failure, tries, self.record))

    def limit(self, request: UnifiedRequest) -> object:
        (made,) = self.before(request)
        assert orjson.loads(made.sent.body).get("max_tokens") == made.request.params.get("max_tokens")
        return made.request.params.get("max_tokens")

    def fails(self, request: UnifiedRequest) -> Failure:
        with pytest.raises(UpstreamError) as caught:
            self.before(request)
        return caught.value.failure

    @property
    def asked(self) -> list[str]:
        return [seen.path for seen in self.vendor.seen]


def injected(request: UnifiedRequest) -> UnifiedRequest:
    return replace(request, injected=frozenset({WINDOW}))


# Counted first -------------------------------------------------------------------------------------------------------


def test_what_fits_is_sent_as_it_is() -> None:
    rig = Rig()
    request = ask("a" * 50, {**ERROR, "max_tokens": 50})
    (made,) = rig.before(request)
    assert made.request is request
    assert rig.asked == ["/tokenize", "/props"]
    assert rig.vendor.seen[0].body == {"content": "a" * 50, "add_special": True, "parse_special": True}
    assert (rig.record.emulated, rig.record.max_tokens) == ((), None)
    assert rig.vendor.under_way == []


def test_under_truncate_the_limit_becomes_what_is_left() -> None:
    rig = Rig()
    assert rig.limit(ask("a" * 60, {**TRUNCATE, "max_tokens": 50})) == 40
    assert (rig.record.emulated, rig.record.max_tokens) == ((WINDOW,), 40)


def test_under_error_what_does_not_fit_is_an_error_in_the_words_that_clients_know() -> None:
    failure = Rig().fails(ask("a" * 60, {**ERROR, "max_tokens": 50}))
    assert failure.kind is FailureKind.CONTEXT_LENGTH
    assert failure.message == (
        "This model's maximum context length is 100 tokens. However, you requested 110 tokens (60 in the prompt, 50 in "
        "the completion)."
    )


def test_a_prompt_that_fills_the_window_is_an_error_whatever_is_wanted() -> None:
    for behaviour in (TRUNCATE, ERROR):
        assert Rig().fails(ask("a" * 100, {**behaviour, "max_tokens": 5})).kind is FailureKind.CONTEXT_LENGTH
        assert Rig().fails(ask("a" * 100, behaviour)).kind is FailureKind.CONTEXT_LENGTH
    assert Rig().limit(ask("a" * 99, ERROR)) is None


def test_the_longest_of_several_prompts_decides() -> None:
    rig = Rig(vllm, VLLM)
    prompts = TextPrompt(("a" * 10, "b" * 70, "c" * 20))
    assert rig.fails(ask(prompts, {**ERROR, "max_tokens": 40})).message.endswith(
        "110 tokens (70 in the prompt, 40 in the completion)."
    )
    assert [seen.body["prompt"] for seen in rig.vendor.seen] == list(prompts.texts)


def test_token_ids_are_counted_by_their_number() -> None:
    rig = Rig()
    prompt = TokenPrompt((tuple(range(60)),))
    assert rig.fails(ask(prompt, {**ERROR, "max_tokens": 50})).kind is FailureKind.CONTEXT_LENGTH
    assert rig.asked == ["/props"]


def test_a_conversation_is_counted_as_the_engine_would_put_it() -> None:
    def answer(path: str, body: JsonObject) -> Body:
        return whole({"prompt": "p" * 90}) if path == "/apply-template" else HUNDRED(path, body)

    rig = Rig(answer)
    prompt = ChatPrompt(({"role": "user", "content": "hi"},))
    request = UnifiedRequest(
        Operation.CHAT, "v/m", prompt, {"max_tokens": 20, "context_length_exceeded_behavior": "error"}
    )
    assert rig.fails(request).message.endswith("(90 in the prompt, 20 in the completion).")
    assert rig.asked == ["/apply-template", "/tokenize", "/props"]


# Without a request to the engine --------------------------------------------------------------------------------------


def test_what_is_sure_to_fit_is_not_asked_about_whoever_named_the_window() -> None:
    rig = Rig(target=replace(LLAMACPP, context_window=4096))
    assert rig.limit(ask("hi", {**ERROR, "max_tokens": 4096 - SURE})) == 4096 - SURE
    assert rig.asked == []
    rig = Rig(llamacpp(4096))
    rig.before(ask("hi", ERROR), ask("hi", ERROR), ask("hello", {**ERROR, "max_tokens": 100}))
    assert rig.asked == ["/tokenize", "/props"]
    rig = Rig()
    failure = Failure(FailureKind.CONTEXT_LENGTH, "no", overflow=Overflow(4096, 4000, exact=True))
    rig.smaller(ask("hi", ERROR), failure)
    rig.before(ask("hi", ERROR))
    assert rig.asked == []


def test_members_that_may_lengthen_the_prompt_are_asked_about() -> None:
    rig = Rig(llamacpp(4096), replace(LLAMACPP, context_window=4096))
    rig.before(replace(ask("hi", ERROR), unknown={"prefix": "x" * 5000}))
    rig.before(replace(ask("hi", ERROR), extra_params={"prefix": "x" * 5000}))
    assert rig.asked == ["/tokenize", "/props"] * 2


def test_the_smaller_of_the_table_s_window_and_the_engine_s_holds() -> None:
    rig = Rig(llamacpp(4096), replace(LLAMACPP, context_window=50))
    assert rig.limit(ask("a" * 30, {**TRUNCATE, "max_tokens": 50})) == 20
    rig = Rig(llamacpp(40), replace(LLAMACPP, context_window=50))
    assert rig.limit(ask("a" * 30, {**TRUNCATE, "max_tokens": 50})) == 10


# Engines that cannot count --------------------------------------------------------------------------------------------

UNKNOWN = target("openai_compatible")
"""A vendor without a tokenizer."""


def test_a_client_that_asked_for_the_behaviour_is_told_that_it_cannot_be_kept() -> None:
    for window, why in ((None, "its window is not known"), (100, "its prompts cannot be counted")):
        rig = Rig(target=replace(UNKNOWN, context_window=window))
        with pytest.raises(GatewayError) as caught:
            rig.before(ask("a" * 90, ERROR))
        facts = caught.value.facts
        assert (facts.status, facts.code, facts.param) == (400, "unsupported_parameter", WINDOW)
        assert facts.message == f"'{WINDOW}' cannot be held on v/m/default: {why}."


def test_a_default_is_left_at_that() -> None:
    rig = Rig(target=UNKNOWN)
    assert rig.limit(injected(ask("a" * 90, {**ERROR, "max_tokens": 50}))) == 50
    assert rig.asked == []


def test_a_limit_that_is_larger_than_the_window_needs_no_counting() -> None:
    rig = Rig(target=replace(UNKNOWN, context_window=100))
    failure = rig.fails(injected(ask("a", {**ERROR, "max_tokens": 101})))
    assert failure.message.endswith("you requested 101 tokens for the completion alone.")


def test_under_truncate_the_limit_becomes_what_is_sure_to_be_left() -> None:
    rig = Rig(target=replace(UNKNOWN, context_window=4096))
    limit = rig.limit(ask("hi", {**TRUNCATE, "max_tokens": 4090}))
    assert isinstance(limit, int)
    assert 4096 - SURE <= limit < 4090
    assert rig.record.max_tokens == limit


# Engines that do not report their window ------------------------------------------------------------------------------


@looped("status", [401, 403, 404, 405, 501])
def test_an_engine_without_a_tokenizer_is_not_asked_again(status: int) -> None:
    rig = Rig(lambda path, body: refusal(status, "no"))
    request = injected(ask("hi", ERROR))
    rig.before(request, request)
    rig.target = replace(LLAMACPP, upstream_model="other")
    rig.before(request)
    questions = [seen.path for seen in rig.vendor.seen]
    assert questions == ["/tokenize", "/props"] * 2
    rig.target = LLAMACPP
    with pytest.raises(GatewayError, match="unsupported_parameter"):
        rig.before(ask("hi", ERROR))
    assert len(rig.vendor.seen) == len(questions)


def test_engines_without_a_tokenizer_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST", 1)
    rig = Rig(lambda path, body: refusal(404, "no"))
    for model in ("first", "second", "second", "first"):
        rig.target = replace(LLAMACPP, upstream_model=model)
        rig.before(injected(ask("hi", ERROR)))
    assert rig.asked == ["/tokenize", "/props"] * 3


@looped("status", [400, 413, 422, 429, 500, 503])
def test_an_engine_that_could_not_count_one_prompt_is_asked_about_the_next(status: int) -> None:
    answers = [refusal(status, "no")]
    rig = Rig(lambda path, body: answers.pop() if answers else HUNDRED(path, body))
    request = injected(ask("a" * 60, {**ERROR, "max_tokens": 50}))
    rig.before(request)
    assert rig.fails(request).kind is FailureKind.CONTEXT_LENGTH


TROUBLE: Mapping[str, tuple[Callable[[], Body], FailureKind]] = {
    "429": (lambda: refusal(429, "slow down"), FailureKind.RATE_LIMITED),
    "503": (lambda: refusal(503, "loading"), FailureKind.OVERLOADED),
    "cut": (lambda: Body(CUT), FailureKind.TRUNCATED),
    "silent": (Body, FailureKind.TIMEOUT),
}


@looped(("make", "kind"), TROUBLE.values(), ids=TROUBLE.keys())
def test_an_engine_in_trouble_is_in_the_way_only_of_who_must_know(make: Callable[[], Body], kind: FailureKind) -> None:
    rig = Rig(lambda path, body: make())
    assert rig.fails(ask("hi", ERROR)).kind is kind
    assert rig.limit(injected(ask("hi", {**ERROR, "max_tokens": 5}))) == 5
    assert rig.vendor.under_way == []


def test_an_engine_is_not_waited_for_without_end() -> None:
    rig = Rig(lambda path, body: Body(COUNT_WAIT - 1, b"{}", b""))
    rig.before(injected(ask("hi", ERROR)))
    (first, *_) = rig.vendor.given
    assert (first.released, [seen.time for seen in rig.vendor.seen]) == (1, [0.0, COUNT_WAIT - 1])


# Requests to the engine that are repeated -----------------------------------------------------------------------------


def smaller(
    overflow: Overflow | None, params: Mapping[str, object], tries: int = 1, prompt: str | Prompt = "hi"
) -> int | None:
    rig = Rig(target=UNKNOWN)
    failure = Failure(FailureKind.CONTEXT_LENGTH, "no", overflow=overflow)
    made = rig.smaller(ask(prompt, params), failure, tries)
    if made is None:
        assert (rig.record.emulated, rig.record.max_tokens) == ((), None)
        return None
    limit = made.request.params["max_tokens"]
    assert orjson.loads(made.sent.body)["max_tokens"] == limit
    assert (rig.record.emulated, rig.record.max_tokens) == ((WINDOW,), limit)
    return limit


LONG: Mapping[str, object] = {**TRUNCATE, "max_tokens": 3000}


@looped(
    ("overflow", "limit"),
    [
        (Overflow(4096, 2000, exact=True), 2096),
        (Overflow(4096, 2000, exact=False), 2096 - MARGIN_TOKENS),
        (Overflow(4096), 1500),
        (Overflow(), 1500),
        (Overflow(output_cap=1024), 1024),
        (Overflow(4096, 4096, prompt_alone=True), None),
        (None, None),
    ],
)
def test_a_refused_limit_is_lowered_by_what_the_refusal_says(overflow: Overflow | None, limit: int | None) -> None:
    assert smaller(overflow, LONG) == limit


def test_nobody_is_asked_more_than_three_times() -> None:
    overflow = Overflow(4096)
    assert [smaller(overflow, LONG, tries) is not None for tries in (1, 2, 3)] == [True, True, False]
    assert MAX_FITTING_CALLS == 3


@looped("params", [{**ERROR, "max_tokens": 3000}, {"max_tokens": 3000}, TRUNCATE])
def test_a_limit_is_lowered_only_for_who_wants_it_and_has_one(params: Mapping[str, object]) -> None:
    assert smaller(Overflow(4096, 2000, exact=True), params) is None


def test_the_record_has_the_lowest_limit_and_names_the_behaviour_once() -> None:
    rig = Rig(target=UNKNOWN)
    rig.record.emulated += ("prompt",)
    for window in (4096, 3000, 3500):
        failure = Failure(FailureKind.CONTEXT_LENGTH, "no", overflow=Overflow(window, 2000, exact=True))
        assert rig.smaller(ask("hi", LONG), failure) is not None
    assert rig.record.max_tokens == 1000
    assert list(rig.record.emulated) == ["prompt", WINDOW]


# In the client's own API ---------------------------------------------------------------------------------------------


def test_a_smaller_call_stays_in_the_client_s_own_api() -> None:
    request = own_request(unheard_of=1)
    request = replace(request, params=cast(Params, {**request.params, **TRUNCATE}), injected=frozenset({WINDOW}))
    rig = Rig(target=claude("anthropic", "claude-haiku-4-5"))
    refused = Failure(FailureKind.CONTEXT_LENGTH, "x", overflow=Overflow(window=1000, prompt=700))
    smaller = rig.smaller(request, refused)
    assert smaller is not None
    body = orjson.loads(smaller.sent.body)
    assert (smaller.sent.native, body["unheard_of"]) == (True, 1)
    assert body["max_tokens"] == rig.record.max_tokens == smaller.request.params["max_tokens"]
    assert body["max_tokens"] < 500
