"""Pass texts through guards in order. Each guard sees the output of the guard before it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import orjson

from proxy.errors import PluginError, plugin_failed, refused_by_plugin
from proxy.plugins.api import (
    AboutRequest,
    Allow,
    AnswerTexts,
    GuardedText,
    Refuse,
    RefusedStream,
    RequestTexts,
    Rewrite,
    Verdict,
)
from proxy.plugins.load_plugins import LoadedPlugin
from proxy.plugins.running_guard import GuardFailed, RunningGuard
from proxy.request_record import RequestRecord

MAX_ADDED: Final = 1024 * 1024
"""The maximum number of characters by which rewritten texts may be longer than the original ones."""

LONGEST_REASON: Final = 300

_CODES: Final = frozenset({"refused_by_plugin", "content_filter"})

Texts = tuple[GuardedText, ...]

TextCheck = Callable[[LoadedPlugin, Texts], Verdict]
"""Calls a plugin's check with the texts and returns the verdict."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Texts that passed the guards, and the names of the guards that changed them."""

    texts: Texts
    names: tuple[str, ...] = ()


async def passed(guards: Sequence[RunningGuard], texts: Texts, ask: TextCheck, *, heavy: bool) -> Passed:
    """Return the texts with the changes that the guards make. Raises PluginError if a guard refuses, or if it fails and
    does not fail open."""
    names: list[str] = []
    for guard in guards:
        try:
            verdict = await guard.call(partial(ask, guard.plugin, texts), partial(fault_of, texts), heavy=heavy)
        except GuardFailed as failure:
            failed(guard, failure)
            continue
        except RefusedStream as refusal:
            raise refused(guard, refusal.reason, refusal.code) from None
        if isinstance(verdict, Refuse):
            raise refused(guard, verdict.reason, verdict.code)
        if isinstance(verdict, Rewrite):
            new = tuple(
                [
                    old if old.text == text else replace(old, text=text)
                    for old, text in zip(texts, verdict.texts, strict=True)
                ]
            )
            if new != texts:
                names.append(guard.name)
                texts = new
    return Passed(texts, tuple(names))


def stopped(record: RequestRecord, error: PluginError) -> PluginError:
    """Record which plugin ends a request and why, and return the plugin's error."""
    if record.guarded is not None:
        record.guarded.plugin, record.guarded.reason = error.plugin, error.reason
    return error


def failed(guard: RunningGuard, failure: GuardFailed) -> None:
    """Count a guard's failure. Raises PluginError unless the guard fails open."""
    guard.failed(failure)
    if not guard.plugin.fails_open:
        raise plugin_failed(guard.name, failure.why)


def refused(guard: RunningGuard, reason: object, code: object) -> PluginError:
    """Count a guard's refusal and return its error."""
    guard.refusals += 1
    text = reason if isinstance(reason, str) else ""
    shown = "".join(each if each.isprintable() else " " for each in text[:LONGEST_REASON])
    return refused_by_plugin(
        guard.name, shown, code if isinstance(code, str) and code in _CODES else "refused_by_plugin"
    )


def request_verdict(about: AboutRequest, plugin: LoadedPlugin, texts: Texts) -> Verdict:
    """Return a plugin's verdict on the texts of a request."""
    verdict: Verdict = plugin.made.check_request(RequestTexts(about, texts))
    return verdict


def response_verdict(about: AboutRequest, choice: int, plugin: LoadedPlugin, texts: Texts) -> Verdict:
    """Return a plugin's verdict on the texts of a choice of a response."""
    verdict: Verdict = plugin.made.check_answer(AnswerTexts(about, choice, texts))
    return verdict


def fault_of(texts: Texts, verdict: object) -> str | None:
    """Return the fault of a plugin's return value; `None` if it is valid."""
    if isinstance(verdict, Allow | Refuse):
        return None
    if not isinstance(verdict, Rewrite):
        return f"returned {type(verdict).__name__}, which is not a verdict"
    new: object = verdict.texts
    if not isinstance(new, tuple | list) or not all([isinstance(each, str) for each in new]):
        return "rewrote texts into something else"
    return _fault_of_texts(texts, new)


def _fault_of_texts(texts: Texts, new: Sequence[str]) -> str | None:
    if len(new) != len(texts):
        return f"rewrote {len(texts)} texts into {len(new)}"
    if sum(map(len, new)) > sum([len(each.text) for each in texts]) + MAX_ADDED:
        return f"rewrote texts into ones that are longer by more than {MAX_ADDED} characters"
    for old, text in zip(texts, new, strict=True):
        if text != old.text and (fault := _fault_of_text(old, text)) is not None:
            return fault
    return None


def _fault_of_text(old: GuardedText, text: str) -> str | None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "rewrote a text into one that is not valid Unicode"
    if old.kind == "tool_arguments" and _is_json(old.text) and not _is_json(text):
        return "rewrote the arguments of a tool call, which are JSON, into a text that is not JSON"
    return None


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
