"""Plans the upstream calls of a request: one where the target can take it whole, several where it cannot."""

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
"""The most choices of one request, prompts times `n`. Decoding a hundred thousand takes a second."""

MAX_BYTES = 128 * 2**20
"""The most bytes of several calls of one request together: four times the largest body that a client can send."""

MAX_SEED = 2**63 - 1

_OF_TOOLS: Final = frozenset({"tools", "tool_choice", SEARCH})
"""Fields that `check_members` and `adapt_request` read besides the prompt."""

_UNMIXED: Final = "a prompt's log probabilities go with no 'stop', 'best_of' or constraint that the gateway sees to"
_BAD: Final = "invalid_value"


@frozen
class PlannedCall:
    """One upstream call, as a request and on the wire, its share of the choices, and fields that it may go without."""

    request: UnifiedRequest
    sent: UpstreamRequest
    part: CallShare
    yielding: frozenset[str] = frozenset()


@frozen(eq=False)
class CallPlan:
    """The calls of a request on one target.

    `request` is what the target will honour, without the dropped fields. Without any calls the answer is the prompts
    alone. `counted` says that the prompts must be counted and compared with the window before they are sent.
    `max_tokens` is the limit to which the client's was lowered, `None` if it was not. `refused` are dropped fields that
    the target refuses, with the words of the refusal."""

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
        """The checks of the answer."""
        return () if self.finishing is None else self.finishing.checks


def unsupported_field(target: Target, name: str, why: str) -> Refusal:
    """Return the refusal of a field that the target cannot honour; `why` is a clause without its full stop."""
    return Refusal(name, f"'{name}' is not supported by {target.name}: {why}.")


def plan_calls(
    request: UnifiedRequest,
    target: Target,
    on_unsupported: OnUnsupported = "error",
    behavior: ContextBehavior | None = None,
    media: Media = NO_MEDIA,
) -> CallPlan:
    """Plan the calls of a request. Raises Refusal when the target cannot honour it or may not be sent what it holds.

    `behavior` replaces a `context_length_exceeded_behavior` that the client did not send; `media` is the team's.
    """
    overruled = check_headers(request.extra_headers, target) if request.extra_headers else ()
    check_media(request, target, media)
    if request.prompt.count > 1 and request.choices > MAX_CHOICES:
        name = "n" if request.prompt.count <= MAX_CHOICES else "prompt"
        raise Refusal(name, f"This request asks for {request.choices} choices; at most {MAX_CHOICES} can be.", _BAD)
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
    """Return the plan of a request, none of whose fields are dropped for being refused. Raises Refusal."""
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
    """Return the plan of a request whose body goes on in the client's own API; `None` if it must be translated."""
    # A model that cannot be forced to call is not forced, whichever API the client speaks.
    if FORCING in request.params and forces_by_format(request.params, target.dialect.capabilities(request, target)):
        return None
    sent = encode_own_body(request, target)
    if sent is None:
        return None
    call = PlannedCall(request, sent, CallShare(0, 0, 1))
    return CallPlan(target, request, (call,), sent.emulated, counted=admit_native(request, target))


def _plan_translated(request: UnifiedRequest, target: Target) -> CallPlan:
    """Return the plan of a request that is written in the vendor's API. Raises Refusal."""
    adapted = None
    if not _is_plain_chat(request):
        if target.is_engine:
            check_members(request, target)
        adapted = adapt_request(request, target)
        if adapted is not None:
            request = adapted.request
    table = target.dialect.capabilities(request, target)
    if FORCING in request.params and forces_by_format(request.params, table):
        try:
            held, forced = hold_to_call(request, table)
        except Unenforceable as reason:
            raise unsupported_field(target, FORCING, reason.reason) from None
        plan = _plan_encoded(held, target, table, forced)
        plan = replace(plan, request=request, dropped=tuple(shown_names(forced.left_out, MAX_NAMED)))
    else:
        plan = _plan_encoded(request, target, table, None)
    if adapted is None or not (adapted.emulated or adapted.dropped):
        return plan
    return replace(plan, emulated=adapted.also(plan.emulated), dropped=adapted.dropped)


def _is_plain_chat(request: UnifiedRequest) -> bool:
    """Return whether a request is a conversation of plain texts without tools, and without members that the gateway
    does not know: it can name no host, path or code to an engine, and there is nothing to adapt in it."""
    if request.unknown or request.extra_params or not _OF_TOOLS.isdisjoint(request.params):
        return False
    return isinstance(request.prompt, ChatPrompt) and request.prompt.plain


def _plan_encoded(request: UnifiedRequest, target: Target, table: Capabilities, forced: ForcedCall | None) -> CallPlan:
    """Return the plan of a request by the capabilities of its endpoint: one call as it is, or what `_Planner` makes
    if the gateway has a part in it. Raises Refusal."""
    counted = bool(table.counts) and request.params.get(WINDOW) in table.counts
    strict = "tools" in request.params and has_strict_tools(request.params)
    if request.prompt.count == 1 and not (strict or forced or table.leaves_to_gateway(request.params)):
        sent = request if request.stream else prefer_stream(request, target)
        call = PlannedCall(sent, target.dialect.encode(sent, target), CallShare(0, 0, request.params.get("n", 1)))
        plan = CallPlan(target, request, (call,), call.sent.emulated, (), None, counted)
    else:
        plan = replace(_Planner(request, target, table, forced).plan(), counted=counted)
    if plan.calls and (first := plan.calls[0].sent).unenforced:
        # Only encoding shows that the vendor cannot be held to what was asked.
        again = _Planner(request, target, table, forced, first.unenforced, first.in_prompt)
        return replace(again.plan(), counted=counted)
    return plan


@dataclass(slots=True)
class _Planner:
    """Plans a request in which the gateway has a part. `prompt` and `params` are what the vendor gets, `emulated` the
    fields that the gateway took over, `forced` the wanted call; `unenforced`, `in_prompt` as in UpstreamRequest."""

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
        # The later steps depend on what the earlier ones take over.
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
        """The field in whose place the request has a format."""
        return None if self.forced is None else FORCING

    def _refuse(self, name: str, why: str) -> Refusal:
        return unsupported_field(self.target, name, why)

    def _plan_ranking(self, finishing: PostProcessing) -> PostProcessing:
        best, cell = self.params.get("best_of", 0), self.table["best_of"]
        # A vendor's own ranking cannot be streamed, which looking for stops requires.
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
        # The vendor's own echo would be searched, ranked and checked with the text.
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
            # Most vendors do not say whether a stop has cut the text, which then need not keep to its constraint.
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
                # Candidates of one prompt differ by their seed alone.
                made = replace(made, part=part)
            size += len(made.sent.body)
            if size > MAX_BYTES:
                message = f"The {len(parts)} calls of {self.target.name} that this request would become are too large: "
                raise Refusal(
                    self._multiplying_field(candidates), f"{message}together {MAX_BYTES} bytes at most.", _BAD
                )
            yield made

    def _multiplying_field(self, candidates: int) -> str:
        """Return the field for which a request becomes several calls."""
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
        """Return whether each prompt needs a call of its own: because a call takes only one, or because each may need a
        limit of its own."""
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
            # Candidates of one seed would all be equal.
            params["seed"] = (params["seed"] + part.first) % (MAX_SEED + 1)
        if "images" in params and not is_neutral("images", params["images"]):
            params["images"] = (params["images"][part.prompt],)
        return replace(request, prompt=one_prompt(request.prompt, part.prompt), params=params)
