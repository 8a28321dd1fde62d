"""How fields bear on each other: aliases, conflicts, and values that mean the same as absence.

Never checks a single value by itself; the field table has done that. Each step edits the draft's values and notes what
is wrong; a field that was refused counts as absent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from providers.unified import MAX_STOPS, ChatPrompt, Guided, LogprobsWanted, TextPrompt, TokenPrompt
from proxy.surfaces.checks import Invalid
from proxy.surfaces.draft import Draft
from proxy.surfaces.prompt import match_images

LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens")
"""Spellings of one limit, the one that rules first."""

GUIDED: Mapping[str, Literal["json", "regex", "choice", "grammar"]] = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
}


def limits(draft: Draft) -> None:
    """One token limit under three names; equal values agree, different ones conflict."""
    agreed = _agreed(draft, LIMITS, "limit")
    if agreed is None:
        return
    leader, limit = agreed
    if limit == 0 and not draft.get("echo", bool) and draft.operation not in draft.rules.bare_zero_tokens:
        draft.refuse(leader, Invalid("must be at least 1 unless 'echo' is true"))
    draft.values["max_tokens"] = limit


SEEDS = ("seed", "random_seed")
"""OpenAI's name, then Mistral's, which only the path of its API knows."""


def seeds(draft: Draft) -> None:
    """One seed under two names."""
    if "random_seed" in draft.values and (agreed := _agreed(draft, SEEDS, "seed")) is not None:
        draft.values["seed"] = agreed[1]


def _agreed(draft: Draft, names: Sequence[str], what: str) -> tuple[str, int] | None:
    """The first of several names of one thing that was given, and its value, with which the others must agree."""
    given = {name: value for name in names if (value := draft.take(name, int)) is not None}
    if not given:
        return None
    leader, value = next(iter(given.items()))
    for name, other in given.items():
        if other != value:
            draft.conflict(name, f"differs from '{leader}', which names the same {what}")
    return leader, value


def stops(draft: Draft) -> None:
    """`stop` and `stop_sequences` together, in order, each string once."""
    given = {name: listed for name in ("stop", "stop_sequences") if (listed := draft.take(name, tuple)) is not None}
    if not given:
        return
    merged: tuple[str, ...] = tuple(dict.fromkeys(word for listed in given.values() for word in listed))
    if len(merged) > MAX_STOPS:
        both = " together with 'stop_sequences'" if len(given) > 1 else ""
        draft.refuse(next(iter(given)), Invalid(f"may hold at most {MAX_STOPS} strings{both}"))
    if merged:
        draft.values["stop"] = merged


def logprobs(draft: Draft) -> None:
    """Three fields to one wish: a count asks for the four arrays, true for the `content` form."""
    values = draft.values
    if not ("logprobs" in values or "top_logprobs" in values or "return_token_log_probs" in values):
        return
    asked = draft.take("logprobs", int)
    top = draft.take("top_logprobs", int)
    spelled = draft.take("return_token_log_probs", bool)
    if spelled and asked is False:
        draft.conflict("return_token_log_probs", "is true while 'logprobs' is false")
    elif asked is False or (asked is None and not spelled):
        if top and not draft.refused("logprobs", "return_token_log_probs"):
            draft.refuse("top_logprobs", Invalid("needs 'logprobs', which must be true or a count"))
    elif asked is None or asked is True:
        values["logprobs"] = LogprobsWanted(top or 0, "content")
    else:
        values["logprobs"] = LogprobsWanted(asked if top is None else top, "legacy")


def candidates(draft: Draft) -> None:
    """`best_of` counts only above `n`, and cannot stream."""
    best = draft.take("best_of", int)
    if not best:
        return
    n = draft.get("n", int) or 1
    if best < n:
        draft.refuse("best_of", Invalid("must be at least 'n'; n must be at most best_of"))
    elif best > n:
        if draft.get("stream", bool):
            draft.conflict("best_of", "cannot be greater than 'n' in a stream")
        draft.values["best_of"] = best


def streaming(draft: Draft) -> None:
    """`stream_options` is about a stream, even when it is empty."""
    if "stream_options" in draft.values and not draft.get("stream", bool) and not draft.refused("stream"):
        draft.refuse("stream_options", Invalid("is only allowed when 'stream' is true"))


def neutral(draft: Draft) -> None:
    """An empty `suffix` and an `echo_last` beside `echo` say nothing."""
    values = draft.values
    if values.get("suffix") == "":
        del values["suffix"]
    if "echo_last" in values and values.get("echo") is True:
        del values["echo_last"]


def images(draft: Draft) -> None:
    """Images need their prompts; none at all leaves the marker an ordinary word."""
    given = draft.get("images", tuple)
    if given is None:
        return
    if not any(given):
        del draft.values["images"]
        return
    prompt = draft.values.get("prompt", draft.values.get("messages"))
    if isinstance(prompt, TextPrompt | TokenPrompt | ChatPrompt):
        try:
            match_images(given, prompt)
        except Invalid as bad:
            draft.refuse("images", bad)


def guided(draft: Draft) -> None:
    """At most one guided field, and nothing else that shapes the text beside it."""
    values = draft.values
    given = [name for name in GUIDED if name in values]
    if not given:
        return
    leader = given[0]
    for name in given[1:]:
        draft.conflict(name, f"cannot go with '{leader}'")
    format_ = values.get("response_format")
    if isinstance(format_, dict) and format_.get("type") != "text":
        draft.conflict(leader, "cannot go with a 'response_format' other than text")
    if values.get("tools"):
        draft.conflict(leader, "cannot go with 'tools'")
    for name in given:
        value = values.pop(name)
        if name == leader and isinstance(value, dict | tuple | str):
            values["guided"] = Guided(GUIDED[name], value)


def tools(draft: Draft) -> None:
    """Tools need the chat form of an upstream, which cannot repeat, continue or complete raw text."""
    values = draft.values
    if not values.get("tools"):
        return
    for name in ("echo", "echo_last", "suffix"):
        if values.get(name):
            draft.conflict(name, "cannot go with 'tools'")
    if isinstance(values.get("prompt"), TokenPrompt):
        draft.conflict("prompt", "cannot be token ids when there are 'tools'")


def reasoning(draft: Draft) -> None:
    """Fireworks' two ways to say how much to think exclude each other."""
    if "thinking" in draft.values and "reasoning_effort" in draft.values:
        draft.conflict("reasoning_effort", "cannot go with 'thinking'")


STEPS: tuple[Callable[[Draft], None], ...] = (
    limits,
    seeds,
    stops,
    logprobs,
    candidates,
    streaming,
    neutral,
    images,
    guided,
    tools,
    reasoning,
)
"""In order: `candidates` and `limits` read what the table checked, `tools` what `neutral` left."""
