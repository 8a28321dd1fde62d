"""A request made into the calls that a target can take: one where that is enough, several where it is not.

Never sends anything, and never a vendor's name: the table of cells says what a target lacks.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Literal, cast

from providers.capabilities import SCANNED, Capabilities, feature_of
from providers.context import fits, most_prompt_tokens
from providers.dialect import Target, UpstreamRequest
from providers.emulate import Finishing
from providers.engine_members import check_members
from providers.exact_streams import as_asked
from providers.extra_headers import check_headers
from providers.failure import Refusal
from providers.fanout import Part
from providers.guided import Unenforceable
from providers.media import check_media
from providers.permits import NO_MEDIA, Media
from providers.unified import (
    LogprobsWanted,
    Params,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
    is_neutral,
    one_prompt,
)
from providers.verify import AnswerCheck, answer_check

MAX_CALLS = 256
"""Calls that one request may become."""

MAX_CHOICES = 8192
"""Choices of one request, prompts times `n`. An answer of a hundred thousand takes a second to decode."""

MAX_BYTES = 128 * 2**20
"""Bytes that several calls of one request may send together: four times the largest body that a client can send."""

MAX_ECHO = 32 * 2**20
"""Characters of the prompts that the gateway repeats before all choices of one answer together."""

MAX_NAMED = 64
"""Fields without which a request is sent that are named one by one; a header has to hold the names. So many are also
left out one at a time, each of which costs another attempt at the calls."""

MAX_SEED = 2**63 - 1

_UNMIXED: Final = (
    "a prompt's log probabilities cannot go with a 'stop', 'best_of' or constraint that the gateway sees to"
)

_BAD: Final = "invalid_value"

WINDOW: Final = "context_length_exceeded_behavior"
KEEP: Final = "include_stop_str_in_output"

_PLAIN_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)

NEVER_DROPPED = frozenset(
    {"prompt", "messages", "images", "max_tokens", "n", "best_of", "echo", "logprobs", "stop", "response_format"}
    | {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "tools", "tool_choice", "model"}
    | {"inference_extra_params", "inference_extra_headers"}
)
"""What an answer would be wrong without: `on_unsupported: drop` does not reach it."""


_JUDGED_OTHERWISE = NEVER_DROPPED | {"guided", WINDOW}
"""Fields that the table's cell alone does not refuse, or that are not dropped under this name."""


@dataclass(frozen=True, slots=True)
class Call:
    """One upstream call: what it asks for, in unified terms and on the wire, and which of the answer's choices it
    gives."""

    request: UnifiedRequest
    sent: UpstreamRequest
    part: Part


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A request ready for one target.

    `request` is what the target will have honoured, after dropping. No calls at all means that the gateway knows the
    answer: the prompts alone. `counted` says that the prompts must be held against the window before they are sent.
    """

    target: Target
    request: UnifiedRequest
    calls: tuple[Call, ...]
    emulated: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    finishing: Finishing | None = None
    counted: bool = False

    @property
    def check(self) -> AnswerCheck | None:
        """What the answer's texts are held against."""
        return None if self.finishing is None else self.finishing.check


def unsupported(target: Target, name: str, why: str) -> Refusal:
    """A field that the target cannot honour, and why: a clause without its full stop."""
    return Refusal(name, f"'{name}' is not supported by {target.name}: {why}.")


def prepare(
    request: UnifiedRequest,
    target: Target,
    on_unsupported: Literal["error", "drop"] = "error",
    behavior: Literal["truncate", "error"] | None = None,
    media: Media = NO_MEDIA,
) -> Prepared:
    """The calls of a request. Raises Refusal when the target cannot honour it or may not be sent what it holds.

    `behavior` stands in for a `context_length_exceeded_behavior` that the client did not send; `media` is the team's.
    """
    overruled = check_headers(request.extra_headers, target) if request.extra_headers else ()
    check_media(request, target, media)
    if request.prompts > 1 and request.choices > MAX_CHOICES:
        name = "n" if request.prompts <= MAX_CHOICES else "prompt"
        raise Refusal(name, f"This request asks for {request.choices} choices; at most {MAX_CHOICES} can be.", _BAD)
    if behavior is not None and WINDOW in request.injected:
        request = replace(request, params={**request.params, WINDOW: behavior})
    dropped: list[str] = []
    prepared = _prepared(request, target) if on_unsupported == "error" else _lenient(request, target, dropped)
    if overruled:
        dropped.append("inference_extra_headers")
    return replace(prepared, dropped=tuple(dropped)) if dropped else prepared


def _lenient(request: UnifiedRequest, target: Target, dropped: list[str]) -> Prepared:
    """The same without the fields that the target refuses, as far as an answer may do without them."""
    for _ in range(MAX_NAMED):
        try:
            return _prepared(request, target)
        except Refusal as refusal:
            if not _droppable(refusal, request):
                raise
            names = _refused_alike(refusal.param, request, target)
            dropped += _shown(names, MAX_NAMED - len(dropped))
            request = _without(request, names)
    return _prepared(request, target)


def _refused_alike(name: str, request: UnifiedRequest, target: Target) -> Collection[str]:
    """A refused field, and those that the table refuses as well: each pass costs as much as the whole request."""
    table, unknown = target.dialect.capabilities(request, target), request.unknown or {}
    if name in unknown and table["unknown"].refused:
        return dict.fromkeys(each for each in unknown if each not in NEVER_DROPPED)
    alike = {
        each: None
        for each, value in request.params.items()
        if each not in _JUDGED_OTHERWISE | request.injected
        and not is_neutral(each, value)
        and table[feature_of(each, value)].refused
    }
    return alike if name in alike else {name: None}


def _shown(names: Collection[str], most: int) -> list[str]:
    """The names for a header and a log line; `unknown` stands for those that are no plain words, and once for all that
    are too many."""
    shown = [name if _PLAIN_NAME.fullmatch(name) else "unknown" for name in islice(names, max(0, most))]
    return shown if len(shown) == len(names) else [*shown, "unknown"]


def _droppable(refusal: Refusal, request: UnifiedRequest) -> bool:
    name = refusal.param
    known = name in request.params or name in (request.unknown or ())
    return refusal.code == "unsupported_parameter" and known and name not in NEVER_DROPPED


def _without(request: UnifiedRequest, names: Collection[str]) -> UnifiedRequest:
    params = {key: value for key, value in request.params.items() if key not in names}
    unknown = {key: value for key, value in (request.unknown or {}).items() if key not in names}
    return replace(request, params=cast(Params, params), unknown=unknown or None)


def _prepared(request: UnifiedRequest, target: Target) -> Prepared:
    if target.is_engine:
        check_members(request, target)
    table = target.dialect.capabilities(request, target)
    counted = bool(table.counts) and request.params.get(WINDOW) in table.counts
    if request.prompts == 1 and not _needs_gateway(request.params, table):
        asked = as_asked(request, target)
        call = Call(asked, target.dialect.encode(asked, target), Part(0, 0, request.choices))
        return Prepared(target, request, (call,), call.sent.emulated, counted=counted)
    return replace(_Division(request, target, table).prepared(), counted=counted)


def _needs_gateway(params: Params, table: Capabilities) -> bool:
    if table.watched.isdisjoint(params):
        return False
    # Most requests with stops have one, which nearly every vendor takes.
    stops, asked = params.get("stop", ()), table.watched.intersection(params)
    return asked != {"stop"} or bool(params.get(KEEP)) or _own_stops(stops, table) != stops


def _own_stops(stops: tuple[str, ...], table: Capabilities) -> tuple[str, ...]:
    """The stops that the vendor looks for itself."""
    own = stops if table.blank_stops else tuple(stop for stop in stops if stop.strip())
    return own[: table.most_stops]


@dataclass(slots=True)
class _Division:
    """A request being divided. `params` are what is left for the vendor, `emulated` what the gateway took over."""

    request: UnifiedRequest
    target: Target
    table: Capabilities
    params: Params = field(default_factory=Params)
    emulated: list[str] = field(default_factory=list)

    def prepared(self) -> Prepared:
        request = self.request
        self.params = cast(Params, dict(request.params))
        finishing = Finishing(n=request.params.get("n", 1))
        # The later steps depend on what the earlier ones take over.
        for step in (self._verified, self._stopped, self._ranked, self._echoed):
            finishing = step(finishing)
        calls: tuple[Call, ...] = ()
        if not (finishing.echo and request.params.get("max_tokens") == 0):
            stream = bool(finishing.stops) or as_asked(request, self.target).stream
            calls = tuple(self._calls(finishing.candidates, stream=stream))
        for call in calls[:1]:
            self.emulated.extend(call.sent.emulated)
        whole = len(calls) == 1 and finishing == Finishing(n=finishing.n, candidates=finishing.n)
        emulated = tuple(dict.fromkeys(self.emulated))
        return Prepared(self.target, request, calls, emulated, finishing=None if whole else finishing)

    def _refuse(self, name: str, why: str) -> Refusal:
        return unsupported(self.target, name, why)

    def _ranked(self, finishing: Finishing) -> Finishing:
        best, cell = self.params.get("best_of", 0), self.table["best_of"]
        # A vendor's own choosing cannot be streamed, which looking for stops needs.
        if best <= finishing.n or cell.refused or (cell.native and not finishing.stops):
            return replace(finishing, candidates=finishing.n)
        del self.params["best_of"]
        self.emulated.append("best_of")
        self.params["n"] = best
        only_for_ranking = "logprobs" not in self.params
        if only_for_ranking:
            self.params["logprobs"] = LogprobsWanted(0, "legacy")
        return replace(finishing, candidates=best, drop_logprobs=only_for_ranking)

    def _echoed(self, finishing: Finishing) -> Finishing:
        cell, prompt = self.table["echo"], self.request.prompt
        if not self.params.get("echo") or cell.refused:
            return finishing
        # The vendor's own echo would be searched, ranked and held against the constraint with the text.
        if cell.native and finishing == Finishing(n=finishing.n, candidates=finishing.n):
            return finishing
        if "logprobs" in self.request.params:
            scored = self.table["echo.logprobs"]
            raise self._refuse("echo", scored.how or _UNMIXED)
        if not isinstance(prompt, TextPrompt):
            form = "a prompt in token ids" if isinstance(prompt, TokenPrompt) else "a conversation"
            raise self._refuse("echo", f"the text of {form} is not known to the gateway")
        self._check_echo(prompt, finishing.n)
        del self.params["echo"]
        self.emulated.append("echo")
        return replace(finishing, echo=prompt.texts)

    def _check_echo(self, prompt: TextPrompt, n: int) -> None:
        """Raises Refusal for more than one answer may repeat."""
        if sum(map(len, prompt.texts)) * n > MAX_ECHO:
            message = f"'echo' can repeat at most {MAX_ECHO} characters before all choices together."
            raise Refusal("echo", message, "invalid_value")

    def _stopped(self, finishing: Finishing) -> Finishing:
        stops = self.params.get("stop", ())
        keep = bool(self.params.get(KEEP))
        own = _own_stops(stops, self.table)
        if finishing.check is not None:
            # Most vendors do not say whether a stop has cut the text, which then need not keep to its constraint.
            own = ()
        if keep and self.table[KEEP] == SCANNED:
            del self.params[KEEP]
            own = ()
            if stops:
                self.emulated.append(KEEP)
        if own == stops:
            return finishing
        self.emulated.append("stop")
        self.params["stop"] = own
        if not own:
            del self.params["stop"]
        return replace(finishing, stops=tuple(stop for stop in stops if stop not in own), keep=keep)

    def _verified(self, finishing: Finishing) -> Finishing:
        if not self.table.verifies:
            return finishing
        try:
            check = answer_check(self.params)
        except Unenforceable as reason:
            guided = self.params.get("guided")
            raise self._refuse("response_format" if guided is None else guided.field, reason.reason) from None
        return finishing if check is None else replace(finishing, check=check)

    def _calls(self, candidates: int, *, stream: bool) -> Iterator[Call]:
        request = replace(self.request, params=self.params, stream=stream)
        parts = self._parts(candidates)
        if len(parts) == 1:
            yield Call(request, self._encoded(request), parts[0])
            return
        made: Call | None = None
        size = 0
        for part in parts:
            if made is None or part.prompt != made.part.prompt or "seed" in self.params:
                own = self._sub_request(request, part)
                made = Call(own, self._encoded(own), part)
            else:
                # Candidates of one prompt differ by their seed alone.
                made = replace(made, part=part)
            size += len(made.sent.body)
            if size > MAX_BYTES:
                message = f"The {len(parts)} calls of {self.target.name} that this request would become are too large: "
                raise Refusal(self._several(candidates), f"{message}together {MAX_BYTES} bytes at most.", _BAD)
            yield made

    def _several(self, candidates: int) -> str:
        """The field for which a request becomes several calls."""
        if candidates > 1:
            return "best_of" if candidates > self.request.params.get("n", 1) else "n"
        return "prompt"

    def _encoded(self, request: UnifiedRequest) -> UpstreamRequest:
        try:
            return self.target.dialect.encode(request, self.target)
        except Refusal as refusal:
            if refusal.param == "logprobs" and "logprobs" not in self.request.params:
                raise self._refuse("best_of", "there are no log probabilities to choose by") from None
            raise

    def _parts(self, candidates: int) -> list[Part]:
        prompts = self.request.prompts
        each = candidates > 1 and not self.table["n"].native
        if not each and not (prompts > 1 and self._one_by_one()):
            return [Part(0, 0, prompts * candidates)]
        self._check_count(prompts * candidates if each else prompts, candidates)
        if prompts > 1:
            self.emulated.append("prompt")
        if not each:
            return [Part(prompt, 0, candidates) for prompt in range(prompts)]
        if self.request.params.get("n", 1) > 1:
            self.emulated.append("n")
        return [Part(prompt, number, 1) for prompt in range(prompts) for number in range(candidates)]

    def _check_count(self, calls: int, candidates: int) -> None:
        """Raises Refusal for more calls than one request may become."""
        if calls > MAX_CALLS:
            name = "prompt" if self.request.prompts > MAX_CALLS else self._several(candidates)
            raise too_many_calls(name, calls, self.target)

    def _one_by_one(self) -> bool:
        """Whether each prompt needs a call of its own: where one call takes one, and where each prompt may have to make
        do with another limit."""
        batch = "prompt.token_batch" if isinstance(self.request.prompt, TokenPrompt) else "prompt.batch"
        cell = self.table[batch]
        if cell.refused:
            raise Refusal("prompt", f"Several prompts are not supported by {self.target.name}: {cell.how}.")
        if cell.emulated or self.params.get(WINDOW) != "truncate" or self.table[f"{WINDOW}.truncate"].native:
            return cell.emulated
        limit = self.params.get("max_tokens")
        most = most_prompt_tokens(self.request.prompt, self.params)
        return limit is not None and not fits(most, limit, self.target.context_window)

    def _sub_request(self, request: UnifiedRequest, part: Part) -> UnifiedRequest:
        params = cast(Params, dict(self.params))
        if part.count == 1:
            params.pop("n", None)
        if "seed" in params and part.first:
            # Candidates of one seed would all be equal.
            params["seed"] = (params["seed"] + part.first) % (MAX_SEED + 1)
        if "images" in params and not is_neutral("images", params["images"]):
            params["images"] = (params["images"][part.prompt],)
        return replace(request, prompt=one_prompt(request.prompt, part.prompt), params=params)


def too_many_calls(param: str, calls: int, target: Target) -> Refusal:
    """The answer to a request that would become more than MAX_CALLS calls because of a parameter."""
    message = f"This request would become {calls} calls of {target.name}; at most {MAX_CALLS} can be."
    return Refusal(param, message, _BAD)
