"""Plans the upstream calls of a request: one call if the target accepts the whole request, otherwise several calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from providers.adaptation.adapt_request import adapt_request
from providers.adaptation.drop_unsupported import MAX_NAMED, plan_dropping
from providers.adaptation.fit_model import fit_to_model
from providers.adaptation.forced_calls import FIELD as FORCING
from providers.adaptation.forced_calls import ForcedCall, forces_by_format, hold_to_call
from providers.capabilities import SCANNED, Capabilities
from providers.client_extras.engine_members import check_members
from providers.client_extras.extra_headers import check_headers
from providers.client_extras.media_addresses import check_media
from providers.client_extras.native_members import admit_native
from providers.constraints.constraint_styles import Unenforceable
from providers.context_overflow import fits, most_prompt_tokens
from providers.dialect import UpstreamRequest
from providers.emulation.check_answer import AnswerCheck
from providers.emulation.check_tool_calls import has_strict_tools
from providers.emulation.echo import check_echo
from providers.emulation.merge_choices import MAX_CALLS, CallShare, too_many_calls
from providers.emulation.plan_checks import FORMAT, constraint_field, named_by_client, plan_checks
from providers.emulation.post_processing import PostProcessing
from providers.emulation.prefer_streaming import prefer_stream
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.hosted_tools.native_hosted import encode_own_body
from providers.request_fields import SEARCH, STOP_STRING, WINDOW, is_neutral, shown_names
from providers.target import NO_MEDIA, Media, OnUnsupported, Target
from providers.unified_request import (
    ChatPrompt,
    ContextBehavior,
    LogprobsWanted,
    Params,
    Prompt,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
    one_prompt,
)

MAX_CHOICES = 8192
"""The most choices of one request: prompts times `n`. Decoding 100,000 choices takes a second."""

MAX_BYTES = 128 * 2**20
"""The most bytes that the calls of one request may have together: four times the largest body that a client can
send."""

MAX_SEED = 2**63 - 1

_OF_TOOLS: Final = frozenset({"tools", "tool_choice", SEARCH})
"""The fields that `check_members` and `adapt_request` read in addition to the prompt."""

_UNMIXED: Final = "a prompt's log probabilities go with no 'stop', 'best_of' or constraint that the gateway sees to"
_INVALID_VALUE: Final = "invalid_value"


@frozen
class PlannedCall:
    """One upstream call. `sent` is the encoded call, `part` its share of the choices. `yielding` are the fields that
    may be removed if the vendor refuses them."""

    request: UnifiedRequest
    sent: UpstreamRequest
    part: CallShare
    yielding: frozenset[str] = frozenset()


@frozen(eq=False)
class CallPlan:
    """The calls of a request on one target.

    `request` is the request without the dropped fields. If there are no calls, the response consists of the prompts
    alone. `counted` says that the prompts must be counted and compared with the context window before they are sent.
    `max_tokens` is the lowered limit, `None` if the client's limit was not lowered. `refused` maps each dropped field
    that the target refuses to the message of the refusal."""

    target: Target
    request: UnifiedRequest
    calls: tuple[PlannedCall, ...]
    emulated: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    finishing: PostProcessing | None = None
    counted: bool = False
    max_tokens: int | None = None
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[AnswerCheck, ...]:
        """The checks of the response."""
        return () if self.finishing is None else self.finishing.checks


def unsupported_field(target: Target, name: str, why: str) -> Refusal:
    """Return the refusal of a field that the target cannot honour. `why` is a clause without a full stop."""
    return Refusal(name, f"'{name}' is not supported by {target.name}: {why}.")


def plan_calls(
    request: UnifiedRequest,
    target: Target,
    on_unsupported: OnUnsupported = "error",
    behavior: ContextBehavior | None = None,
    media: Media = NO_MEDIA,
) -> CallPlan:
    """Plan the calls of a request. Raises Refusal if the target cannot honour the request, or may not receive its
    content.

    `behavior` replaces a `context_length_exceeded_behavior` that the client did not send. `media` are the team's
    settings.
    """
    overruled = check_headers(request.extra_headers, target) if request.extra_headers else ()
    check_media(request, target, media)
    if request.prompt.count > 1 and request.choices > MAX_CHOICES:
        name = "n" if request.prompt.count <= MAX_CHOICES else "prompt"
        raise Refusal(
            name, f"This request asks for {request.choices} choices; at most {MAX_CHOICES} can be.", _INVALID_VALUE
        )
    if behavior is not None and WINDOW in request.injected:
        request = replace(request, params={**request.params, WINDOW: behavior})
    refused: dict[str, str] = {}
    plan = _plan(request, target) if on_unsupported == "error" else plan_dropping(_plan, request, target, refused)
    dropped = list(refused)
    if overruled:
        dropped.append("inference_extra_headers")
    dropped += plan.dropped
    if plan.calls and (left_out := plan.calls[0].sent.dropped):
        dropped += shown_names(left_out, MAX_NAMED - len(dropped))
    return replace(plan, dropped=tuple(dropped), refused=refused) if dropped else plan


def _plan(request: UnifiedRequest, target: Target) -> CallPlan:
    """Return the plan of a request with all of its fields. Raises Refusal for a field that the target refuses."""
    fitted = fit_to_model(request, target)
    if fitted is not None:
        request = fitted.request
    plan = None if request.native is None else _plan_own_body(request, target)
    if plan is None:
        plan = _plan_translated(request, target)
    if fitted is None:
        return plan
    return replace(
        plan,
        emulated=tuple(dict.fromkeys((*fitted.emulated, *plan.emulated))),
        dropped=(*plan.dropped, *fitted.dropped),
        max_tokens=fitted.max_tokens,
    )


def _plan_own_body(request: UnifiedRequest, target: Target) -> CallPlan | None:
    """Return the plan of a request whose body is sent in the client's own API; `None` if it must be translated."""
    # If a call is forced by a response format, the request must be translated, whichever API the client speaks.
    if FORCING in request.params and forces_by_format(request.params, target.dialect.capabilities(request, target)):
        return None
    sent = encode_own_body(request, target)
    if sent is None:
        return None
    call = PlannedCall(request, sent, CallShare(0, 0, 1))
    return CallPlan(target, request, (call,), sent.emulated, counted=admit_native(request, target))


def _plan_translated(request: UnifiedRequest, target: Target) -> CallPlan:
    """Return the plan of a request that is translated into the vendor's API. Raises Refusal."""
    adapted = None
    if not _is_plain_chat(request):
        if target.is_engine:
            check_members(request, target)
        adapted = adapt_request(request, target)
        if adapted is not None:
            request = adapted.request
    table = target.dialect.capabilities(request, target)
    held, forced = request, None
    if FORCING in request.params and forces_by_format(request.params, table):
        try:
            held, forced = hold_to_call(request, table)
        except Unenforceable as reason:
            raise unsupported_field(target, FORCING, reason.reason) from None
    strict = "tools" in held.params and has_strict_tools(held.params)
    if held.prompt.count == 1 and not (strict or forced or table.leaves_to_gateway(held.params)):
        sent = held if held.stream else prefer_stream(held, target)
        call = PlannedCall(sent, target.dialect.encode(sent, target), CallShare(0, 0, held.params.get("n", 1)))
        plan = CallPlan(target, held, (call,), call.sent.emulated)
    else:
        plan = _Planner(held, target, table, forced).plan()
    if plan.calls and (first := plan.calls[0].sent).unenforced:
        # Only encoding shows that the vendor cannot be held to the constraint.
        plan = _Planner(held, target, table, forced, first.unenforced, first.in_prompt).plan()
    if forced is not None:
        plan = replace(plan, request=request, dropped=tuple(shown_names(forced.left_out, MAX_NAMED)))
    if adapted is not None and (adapted.emulated or adapted.dropped):
        plan = replace(plan, emulated=adapted.also(plan.emulated), dropped=adapted.dropped)
    counted = table.counts and held.params.get(WINDOW) in table.counts
    return replace(plan, counted=True) if counted else plan


def _is_plain_chat(request: UnifiedRequest) -> bool:
    """Return whether a request is a conversation of plain texts without tools, and without unknown fields. Such a
    request cannot pass a host, a path or code to an engine, and needs no adaptation."""
    if request.unknown or request.extra_params or not _OF_TOOLS.isdisjoint(request.params):
        return False
    return isinstance(request.prompt, ChatPrompt) and request.prompt.plain


@dataclass(slots=True)
class _Planner:
    """Plans a request of which the gateway emulates a part. `prompt` and `params` are the parts that are sent to the
    vendor, `emulated` are the fields that the gateway emulates, `forced` is the call that the client forces.
    `unenforced` and `in_prompt` have the same meaning as in UpstreamRequest."""

    request: UnifiedRequest
    target: Target
    table: Capabilities
    forced: ForcedCall | None = None
    unenforced: tuple[str, ...] = ()
    in_prompt: bool = False
    prompt: Prompt = field(init=False)
    params: Params = field(default_factory=Params)
    emulated: list[str] = field(default_factory=list)

    def plan(self) -> CallPlan:
        request = self.request
        self.prompt, self.params = request.prompt, cast(Params, dict(request.params))
        finishing = PostProcessing(n=request.params.get("n", 1), forced=self.forced)
        # The order matters: later steps depend on the fields that earlier steps have removed from `params`.
        for step in (self._plan_check, self._plan_stops, self._plan_ranking, self._plan_echo, self._plan_one_call):
            finishing = step(finishing)
        calls: tuple[PlannedCall, ...] = ()
        if not (finishing.echo and request.params.get("max_tokens") == 0):
            stream = bool(finishing.stops) or prefer_stream(request, self.target).stream
            calls = tuple(self._make_calls(finishing.candidates, stream=stream))
        for call in calls[:1]:
            self.emulated.extend(call.sent.emulated)
        whole = len(calls) == 1 and finishing == PostProcessing(n=finishing.n, candidates=finishing.n)
        emulated = named_by_client(self.emulated, request.params, self.stands_for)
        return CallPlan(self.target, request, calls, emulated, finishing=None if whole else finishing)

    @property
    def stands_for(self) -> str | None:
        """The client's field that the request expresses by a response format."""
        return None if self.forced is None else FORCING

    def _refuse(self, name: str, why: str) -> Refusal:
        return unsupported_field(self.target, name, why)

    def _plan_ranking(self, finishing: PostProcessing) -> PostProcessing:
        best, cell = self.params.get("best_of", 0), self.table["best_of"]
        # A vendor's own ranking cannot be streamed, but a search for stop strings requires a stream.
        if best <= finishing.n or cell.refused or (cell.native and not finishing.stops):
            return replace(finishing, candidates=finishing.n)
        del self.params["best_of"]
        self.emulated.append("best_of")
        self.params["n"] = best
        only_for_ranking = "logprobs" not in self.params
        if only_for_ranking:
            self.params["logprobs"] = LogprobsWanted(0, "legacy")
        return replace(finishing, candidates=best, drop_logprobs=only_for_ranking)

    def _plan_echo(self, finishing: PostProcessing) -> PostProcessing:
        cell, prompt = self.table["echo"], self.request.prompt
        if not self.params.get("echo") or cell.refused:
            return finishing
        # An echo by the vendor would be searched, ranked and checked together with the generated text.
        if cell.native and finishing == PostProcessing(n=finishing.n, candidates=finishing.n):
            return finishing
        if "logprobs" in self.request.params:
            scored = self.table["echo.logprobs"]
            raise self._refuse("echo", scored.how or _UNMIXED)
        if not isinstance(prompt, TextPrompt):
            form = "a prompt in token ids" if isinstance(prompt, TokenPrompt) else "a conversation"
            raise self._refuse("echo", f"the text of {form} is not known to the gateway")
        check_echo(prompt.texts, finishing.n)
        del self.params["echo"]
        self.emulated.append("echo")
        return replace(finishing, echo=prompt.texts)

    def _plan_one_call(self, finishing: PostProcessing) -> PostProcessing:
        wanted = self.params.get("parallel_tool_calls") is False and self.params.get("tools")
        if not wanted or not self.table["parallel_tool_calls"].emulated:
            return finishing
        del self.params["parallel_tool_calls"]
        self.emulated.append("parallel_tool_calls")
        return replace(finishing, one_call=True)

    def _plan_stops(self, finishing: PostProcessing) -> PostProcessing:
        stops = self.params.get("stop", ())
        keep = bool(self.params.get(STOP_STRING))
        own = self.table.own_stops(stops)
        if finishing.check is not None:
            # Most vendors do not report whether a stop string has cut the text. A cut text need not satisfy its
            # constraint.
            own = ()
        if keep and self.table[STOP_STRING] == SCANNED:
            del self.params[STOP_STRING]
            own = ()
            if stops:
                self.emulated.append(STOP_STRING)
        if own == stops:
            return finishing
        self.emulated.append("stop")
        self.params["stop"] = own
        if not own:
            del self.params["stop"]
        return replace(finishing, stops=tuple(stop for stop in stops if stop not in own), keep=keep)

    def _plan_check(self, finishing: PostProcessing) -> PostProcessing:
        request, table, name = self.request, self.table, self.stands_for
        try:
            checks = plan_checks(request, table, self.unenforced, in_prompt=self.in_prompt, stands_for=name)
        except Unenforceable as reason:
            raise self._refuse(name or constraint_field(self.params), reason.reason) from None
        self.prompt, self.params = checks.request.prompt, cast(Params, dict(checks.request.params))
        self.emulated.extend(checks.emulated)
        return replace(finishing, check=checks.text, call_checks=checks.calls)

    def _make_calls(self, candidates: int, *, stream: bool) -> Iterator[PlannedCall]:
        request = replace(self.request, prompt=self.prompt, params=self.params, stream=stream)
        parts = self._shares(candidates)
        if len(parts) == 1:
            yield PlannedCall(request, self._encode(request), parts[0])
            return
        made: PlannedCall | None = None
        size = 0
        for part in parts:
            if made is None or part.prompt != made.part.prompt or "seed" in self.params:
                own = self._sub_request(request, part)
                made = PlannedCall(own, self._encode(own), part)
            else:
                # Calls for candidates of one prompt differ only by their seed.
                made = replace(made, part=part)
            size += len(made.sent.body)
            if size > MAX_BYTES:
                message = f"The {len(parts)} calls of {self.target.name} that this request would become are too large: "
                raise Refusal(
                    self._multiplying_field(candidates), f"{message}together {MAX_BYTES} bytes at most.", _INVALID_VALUE
                )
            yield made

    def _multiplying_field(self, candidates: int) -> str:
        """Return the name of the field that causes a request to become several calls."""
        if candidates > 1:
            return "best_of" if candidates > self.request.params.get("n", 1) else "n"
        return "prompt"

    def _encode(self, request: UnifiedRequest) -> UpstreamRequest:
        try:
            return self.target.dialect.encode(request, self.target)
        except Refusal as refusal:
            if refusal.param == FORMAT and self.forced is not None:
                raise self._refuse(FORCING, "it cannot be held to the arguments of these tools") from refusal
            if refusal.param == "logprobs" and "logprobs" not in self.request.params:
                raise self._refuse("best_of", "there are no log probabilities to choose by") from None
            raise

    def _shares(self, candidates: int) -> list[CallShare]:
        prompts = self.request.prompt.count
        each = candidates > 1 and not self.table["n"].native
        if not each and not (prompts > 1 and self._one_by_one()):
            return [CallShare(0, 0, prompts * candidates)]
        self._check_count(prompts * candidates if each else prompts, candidates)
        if prompts > 1:
            self.emulated.append("prompt")
        if not each:
            return [CallShare(prompt, 0, candidates) for prompt in range(prompts)]
        if self.request.params.get("n", 1) > 1:
            self.emulated.append("n")
        return [CallShare(prompt, number, 1) for prompt in range(prompts) for number in range(candidates)]

    def _check_count(self, calls: int, candidates: int) -> None:
        """Raise Refusal for more calls than one request may become."""
        if calls > MAX_CALLS:
            name = "prompt" if self.request.prompt.count > MAX_CALLS else self._multiplying_field(candidates)
            raise too_many_calls(name, calls, self.target)

    def _one_by_one(self) -> bool:
        """Return whether each prompt needs its own call. This is so if a call takes only one prompt, or if each prompt
        may need its own token limit."""
        batch = "prompt.token_batch" if isinstance(self.request.prompt, TokenPrompt) else "prompt.batch"
        cell = self.table[batch]
        if cell.refused:
            raise Refusal("prompt", f"Several prompts are not supported by {self.target.name}: {cell.how}.")
        if cell.emulated or self.params.get(WINDOW) != "truncate" or self.table[f"{WINDOW}.truncate"].native:
            return cell.emulated
        limit = self.params.get("max_tokens")
        most = most_prompt_tokens(self.request.prompt, self.params)
        return limit is not None and not fits(most, limit, self.target.context_window)

    def _sub_request(self, request: UnifiedRequest, part: CallShare) -> UnifiedRequest:
        params = cast(Params, dict(self.params))
        if part.count == 1:
            params.pop("n", None)
        if "seed" in params and part.first:
            # Each candidate gets its own seed, because candidates with the same seed would all be equal.
            params["seed"] = (params["seed"] + part.first) % (MAX_SEED + 1)
        if "images" in params and not is_neutral("images", params["images"]):
            params["images"] = (params["images"][part.prompt],)
        return replace(request, prompt=one_prompt(request.prompt, part.prompt), params=params)
