"""`dragoman explain`: print the upstream calls of a request, as text or JSON. `proxy.gateway.dry_run` computes them."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson
from multidict import CIMultiDict

from providers.dialect import UpstreamRequest
from providers.emulation.plan_calls import CallPlan
from providers.failure import FailureKind, Refusal
from proxy.cli.chosen_table import find_team
from proxy.cli.terminal import FAILED, USAGE, CommandError, Style, paint
from proxy.gateway.dry_run import (
    DEFAULT_SURFACE,
    Calls,
    Explanation,
    NotGenerating,
    StoreNeeded,
    Trial,
    default_path,
    explained,
    is_counted,
    sent_calls,
    upstream_headers,
    why_dropped,
)
from proxy.plugins.load_plugins import passed_plugins
from proxy.process.load_table import Source
from proxy.response_cache.lookup import explained_use
from proxy.routing.route_settings import CacheRules
from proxy.routing.session_load import PlacedSession
from proxy.teams.limit_outline import RequestLimits

Form = Callable[[Explanation], Iterator[str]]


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """The options of the command line. `body` is the file with the body (`-` for standard input). `path` also
    determines the surface; without it, the body determines the path. `headers` are the client's, each as `name:
    value`."""

    body: str
    team: str | None
    surface: str | None
    path: str | None
    headers: Sequence[str] = ()


def explain(source: Source, options: ExplainOptions, form: Form) -> int:
    """Print the explanation of one request. Return 1 if the client would get an error."""
    table = source.load()
    snapshot = table.snapshot
    team = find_team(snapshot, options.team)
    headers = read_headers(options.headers) if options.headers else None
    body = _read(options.body)
    path = options.path or default_path(options.surface or DEFAULT_SURFACE, body)
    try:
        explanation = explained(snapshot, team, path, body, headers)
    except (NotGenerating, StoreNeeded) as error:
        raise CommandError(str(error), USAGE) from None
    if options.surface not in (None, explanation.surface):
        raise CommandError(f"the path {path} belongs to the surface {explanation.surface}", USAGE)
    plugins = passed_plugins(table.loaded, table.plugins, team.name)
    for line in form(replace(explanation, plugins=plugins)):
        print(line)
    return 0 if explanation.error is None else FAILED


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read the request {name}: {error.strerror or error}") from None


_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*?)[ \t]*")
"""A field line of RFC 9112, section 5."""


def read_headers(lines: Sequence[str]) -> CIMultiDict[str]:
    """Return headers from `name: value` lines. The error does not repeat a value, because it may be a secret."""
    headers = CIMultiDict[str]()
    for number, line in enumerate(lines, 1):
        found = _HEADER.fullmatch(line)
        if found is None:
            raise CommandError(f"header {number} is not of the form 'name: value' on one line", USAGE)
        headers.add(found[1], found[2])
    return headers


# Text ---------------------------------------------------------------------------------------------------------------


def text_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the explanation as text: the rules that resolve the model, then each target with its calls."""
    yield paint(f"POST {explanation.path} on the surface {explanation.surface}, as {explanation.team}", Style.BOLD)
    if explanation.plan is not None:
        yield f"{explanation.plan.asked} was found as"
        yield from (f"  {step.rule}: {step.name}" for step in explanation.plan.steps)
    if explanation.placed is not None:
        yield from _placed_lines(explanation, explanation.placed)
    if explanation.drawn:
        yield "The order of the targets is chosen for each request by its policies; this is one of the possible orders."
    yield from _passed_lines(explanation)
    if explanation.plan is not None and explanation.plan.out_of_service:
        yield f"Out of service, so not called: {', '.join(each.name for each in explanation.plan.out_of_service)}."
    for number, trial in enumerate(explanation.trials, 1):
        yield ""
        yield from _trial_lines(number, trial, explanation.chosen)
    source = f" (fallbacks of {explanation.fallbacks_of})" if explanation.fallbacks_of else ""
    for kind, trials in explanation.fallbacks.items():
        yield ""
        yield paint(f"After {_AFTER.get(kind, kind.value)}, instead of the next of these{source}:", Style.BOLD)
        for number, trial in enumerate(trials, 1):
            yield ""
            yield from _trial_lines(number, trial, trials[0].outcome)
    if explanation.error is not None:
        status, body = explanation.error
        yield ""
        yield paint(f"Nothing would be sent. The client gets {status}:", Style.BOLD)
        yield _pretty(body)
    if explanation.logged is not None:
        yield f"The log says {explanation.logged}: the name exists, which the response to the team hides."


def _placed_lines(explanation: Explanation, placed: PlacedSession) -> Iterator[str]:
    session, known = placed.session, explanation.with_headers
    if session is None:
        unnamed = (
            "neither its headers nor its body name one" if known else "nothing in its body names one; a header may"
        )
        why = unnamed if placed.without == "none" else "its prompt is shorter than `least`"
        yield f"Its conversation does not order the targets, since {why}."
        return
    other = "" if known else "; headers may name another"
    yield f"Its conversation is {session.number:016x} by {session.source}{other}. It ranks"
    for placement in placed.placements:
        why_skipped = explanation.why_skipped(placement)
        skipped = f"; the first is skipped: {why_skipped}" if why_skipped else ""
        yield f"  {placement.group.label}: {', '.join(placement.ranked_names)}{skipped}"
    load = placed.placements[0].rules.load
    yield f"The first is skipped while it has more than {load:g} times its share of the requests in flight."


def _limit_lines(limits: RequestLimits) -> Iterator[str]:
    tokens = f"1 request and about {limits.tokens} tokens"
    wait = f", after waiting up to {limits.patience:g} s" if limits.patience else ""
    yield f"These limits apply, with {tokens}; beyond a limit the client gets 429{wait}:"
    yield from (f"  {held.scope}: {words}" for held in limits.held for words in held.words)
    for label, scopes in limits.targets.items():
        yield from (f"  for {label}: {held.scope}: {words}" for held in scopes for words in held.words)
    if any("requests go to" in words for held in limits.held for words in held.words):
        yield "Whether another name serves it depends on the spending; the running gateway knows it: `dragoman limits`."


_AFTER = {
    FailureKind.CONTEXT_LENGTH: "a prompt that is too long for its target",
    FailureKind.CONTENT_FILTER: "a refusal by a target's content filter",
}


def _trial_lines(number: int, trial: Trial, chosen: Calls | Refusal | None) -> Iterator[str]:
    outcome = trial.outcome
    name = paint(f"{number}. {trial.target.name}", Style.BOLD)
    if isinstance(outcome, Refusal):
        yield f"{name} cannot: {outcome.code} {outcome.param}: {outcome.message}"
        return
    later = "would get, if the deployments before it fail or cannot honour the request"
    yield f"{name} {'gets' if outcome is chosen else later}"
    if trial.behind:
        yield f"It comes after targets that honour {', '.join(trial.behind)}, which it would drop."
    if not outcome.calls:
        yield "nothing: the response is the prompt"
    calls = sent_calls(outcome)
    for position, sent in enumerate(calls, 1):
        if position == 1:
            yield from _call_lines(sent)
        else:
            yield f"and {position} of {len(calls)}, to the same address:"
        yield _pretty(sent.body)
    if is_counted(outcome):
        yield "The prompt is first compared with the context window; if that is uncertain, the engine counts it."
    notes = {"emulated": outcome.emulated, "dropped": outcome.dropped}
    yield from (f"{note}: {', '.join(fields)}" for note, fields in notes.items() if fields)
    yield from (f"  {why}" for why in why_dropped(outcome).values())


def _call_lines(sent: UpstreamRequest) -> Iterator[str]:
    yield f"{sent.method} {sent.url}"
    if sent.responses_because:
        yield f"by the vendor's Responses API: {sent.responses_because}"
    yield from (f"{field}: {value}" for field, value in upstream_headers(sent).items())
    yield from (f"tool {theirs} is the client's {ours}" for theirs, ours in sent.tool_names.items())
    yield ""


def _pretty(body: bytes) -> str:
    return json.dumps(orjson.loads(body), indent=2, ensure_ascii=False)


# JSON ---------------------------------------------------------------------------------------------------------------


def _passed_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the checks between the request and its targets: limits, the response cache, second attempts, plugins."""
    if explanation.limits is not None:
        yield from _limit_lines(explanation.limits)
    cached = cached_clause(explanation)
    if cached and (rules := cache_of(explanation)) is not None:
        yield f"Responses are cached {rules.words}; {cached}."
    if explanation.plan is not None and (hedge := explanation.plan.hedge) is not None:
        why = explanation.without_second
        yield f"It may have a second attempt: {hedge.words}." if why is None else f"It has no second attempt: {why}."
    if explanation.plugins:
        yield f"It would pass these plugins, which are not called here: {', '.join(explanation.plugins)}."


def json_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the explanation as one JSON object."""
    found = explanation.plan
    facts: dict[str, object] = {
        "path": explanation.path,
        "surface": explanation.surface,
        "team": explanation.team,
        "model": None if found is None else found.asked,
        "steps": [] if found is None else [{"rule": step.rule, "name": step.name} for step in found.steps],
        "order_drawn": explanation.drawn,
        "targets": [_trial_facts(trial, explanation.chosen) for trial in explanation.trials],
        "fallbacks": {
            kind.value: [_trial_facts(trial, explanation.chosen) for trial in trials]
            for kind, trials in explanation.fallbacks.items()
        },
        "fallbacks_of": explanation.fallbacks_of or None,
        "limits": None if explanation.limits is None else _limit_facts(explanation.limits),
        "cache": None if (rules := cache_of(explanation)) is None else _cache_facts(rules, cached_clause(explanation)),
        "affinity": None if explanation.placed is None else _placed_facts(explanation, explanation.placed),
        "hedge": _hedge_facts(explanation),
        "plugins": explanation.plugins,
        "error": None,
    }
    if explanation.error is not None:
        status, body = explanation.error
        facts["error"] = {"status": status, "body": orjson.loads(body), "logged": explanation.logged}
    yield json.dumps(facts, indent=2, ensure_ascii=False)


def cache_of(explanation: Explanation) -> CacheRules | None:
    """Return the rules of the response cache of the requested name."""
    return None if explanation.plan is None else explanation.plan.cache


def cached_clause(explanation: Explanation) -> str:
    """Return a clause that says whether the response cache of the name is used for the request; empty if the name has
    no cache."""
    calls = explanation.chosen
    if cache_of(explanation) is None or not isinstance(calls, CallPlan):
        return ""
    return explained_use(calls.request, explanation.surface)


def _cache_facts(rules: CacheRules, how: str) -> dict[str, object]:
    return {**rules.facts, "this_request": how}


def _hedge_facts(explanation: Explanation) -> dict[str, object] | None:
    if explanation.plan is None or (hedge := explanation.plan.hedge) is None:
        return None
    return {**hedge.facts, "not_this_request": explanation.without_second}


def _placed_facts(explanation: Explanation, placed: PlacedSession) -> dict[str, object]:
    session = placed.session
    if session is None:
        return {"key": None, "without": placed.without, "groups": []}
    groups = [
        {
            "name": each.group.label,
            "ranks": each.ranked_names,
            "load": each.rules.load,
            "skipped": explanation.why_skipped(each),
        }
        for each in placed.placements
    ]
    return {"key": session.source, "conversation": f"{session.number:016x}", "without": None, "groups": groups}


def _limit_facts(limits: RequestLimits) -> dict[str, object]:
    return {
        "tokens": limits.tokens,
        "held_to": {held.scope: held.words for held in limits.held},
        "deployments": {label: {held.scope: held.words for held in scopes} for label, scopes in limits.targets.items()},
        "patience": limits.patience,
    }


def _trial_facts(trial: Trial, chosen: Calls | None) -> dict[str, object]:
    outcome = trial.outcome
    facts: dict[str, object] = {
        "deployment": trial.target.name,
        "chosen": outcome is chosen,
        "behind_for": trial.behind,
    }
    if isinstance(outcome, Refusal):
        return {**facts, "refused": {"code": outcome.code, "param": outcome.param, "message": outcome.message}}
    notes: dict[str, object] = {"emulated": outcome.emulated, "dropped": outcome.dropped}
    notes |= {"why_dropped": dict(why_dropped(outcome)), "counted_first": is_counted(outcome)}
    return {**facts, **notes, "calls": [*map(_call_facts, sent_calls(outcome))]}


def _call_facts(sent: UpstreamRequest) -> dict[str, object]:
    return {
        "operation": sent.operation,
        "method": sent.method,
        "url": sent.url,
        "responses_because": sent.responses_because or None,
        "headers": upstream_headers(sent),
        "body": orjson.loads(sent.body),
        "tool_names": dict(sent.tool_names),
    }


FORMS: Mapping[str, Form] = {"text": text_lines, "json": json_lines}
"""Output formats by the value of `--output`."""
