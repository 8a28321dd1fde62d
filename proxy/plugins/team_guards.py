"""The guards of each team, and how a request and its answer pass them.

A table has its own guards: requests that began under the one before keep theirs, which are closed when the last of
these requests has let go of them.
"""

import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from config.load_config import Loaded
from providers.completion import Choice, Completion
from providers.json_types import JsonObject
from proxy.errors import PluginError
from proxy.hooks.request_hook import Q
from proxy.loop_clock import loop_clock
from proxy.off_loop.request_threads import RequestThreads
from proxy.plugins.answer_texts import size_beside, size_of_choice, texts_beside, texts_of_choice, with_texts
from proxy.plugins.api import AboutRequest
from proxy.plugins.load_plugins import Plugins, guards_of
from proxy.plugins.plugin_threads import begin_close
from proxy.plugins.request_texts import rewritten, texts_of
from proxy.plugins.run_guards import Ask, Passed, Texts, ask_answer, ask_request, passed, stopped
from proxy.plugins.running_guard import RunningGuard
from proxy.plugins.transcript_texts import texts_of_transcript, with_transcript
from proxy.request_outcomes import GuardMarks
from proxy.request_record import NO_TEAM, RequestRecord

T = TypeVar("T")

LONG: Final = 64 * 1024
"""Characters of an answer that nobody looks at on the event loop: unescaping them may take 8 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class GuardChain:
    """The guards of one team, in order. `desk` is kept alive by the requests that use it."""

    desk: "TeamGuards"
    tags: Mapping[str, str]
    request: tuple[RunningGuard, ...]
    answer: tuple[RunningGuard, ...]
    streams: bool
    """Whether all guards of answers take streams as they come."""

    def about(self, record: RequestRecord, model: str) -> AboutRequest:
        """Return what guards may know of a request."""
        return AboutRequest(record.request_id, record.team, model, record.surface, record.user, self.tags)

    async def request_passed(self, request: Q, record: RequestRecord, *, heavy: bool) -> Q:
        """Return a request of a kind that `texts_of` knows as its guards leave it. Raises GatewayError if one refuses
        it, or if one fails that has to work; the record has which."""
        record.guarded = marks = GuardMarks()
        if not self.request:
            return request
        ask = partial(ask_request, self.about(record, request.model))
        texts = await self._done(partial(texts_of, request), record, heavy=heavy)
        left = await _passed(self.request, texts, ask, record, heavy=heavy)
        if not left.names:
            return request
        work = partial(rewritten, request, [each.text for each in left.texts])
        request, dropped = await self._done(work, record, heavy=heavy)
        marks.note(left.names, dropped)
        return request

    async def choice_passed(self, choice: Choice, record: RequestRecord) -> Choice:
        """Return a choice as the guards of answers leave it; the same one where none changed it. Raises GatewayError
        as `request_passed` does."""
        heavy = size_of_choice(choice) > LONG
        texts = await self._done(partial(texts_of_choice, choice), record, heavy=heavy)
        left = await self._judged(texts, choice.index, record, heavy=heavy)
        if not left.names:
            return choice
        work = partial(with_texts, choice, [each.text for each in left.texts])
        choice, dropped = await self._done(work, record, heavy=heavy)
        if record.guarded is not None:
            record.guarded.note(left.names, dropped)
        return choice

    async def beside_passed(self, completion: Completion, sent: JsonObject | None, record: RequestRecord) -> bool:
        """Return whether the guards of answers leave the texts beside a response's choices unchanged; see
        `texts_beside`. Raises GatewayError as `request_passed` does."""
        heavy = size_beside(completion) > LONG
        texts = await self._done(partial(texts_beside, completion, sent), record, heavy=heavy)
        return not texts or await self.unchanged(texts, record, heavy=heavy)

    async def unchanged(self, texts: Texts, record: RequestRecord, *, heavy: bool) -> bool:
        """Return whether the guards of answers leave texts unchanged. Raises GatewayError as `request_passed` does."""
        left = await self._judged(texts, 0, record, heavy=heavy)
        if left.names and record.guarded is not None:
            record.guarded.note(left.names)
        return not left.names

    async def transcript_passed(self, kind: str, body: bytes, record: RequestRecord) -> bytes:
        """Return a transcription of a content type as the guards of answers leave it. Raises UpstreamError for a body
        that is none, and otherwise as `choice_passed` does."""
        heavy = len(body) > LONG
        texts = await self._done(partial(texts_of_transcript, kind, body), record, heavy=heavy)
        left = await self._judged(texts, 0, record, heavy=heavy)
        if not left.names:
            return body
        if record.guarded is not None:
            record.guarded.note(left.names)
        new = [each.text for each in left.texts]
        return await self._done(partial(with_transcript, kind, body, new), record, heavy=heavy)

    async def _judged(self, texts: Texts, choice: int, record: RequestRecord, *, heavy: bool) -> Passed:
        """Return the texts of a choice as the guards of answers leave them."""
        ask = partial(ask_answer, self.about(record, record.asked), choice)
        return await _passed(self.answer, texts, ask, record, heavy=heavy)

    async def _done(self, work: Callable[[], T], record: RequestRecord, *, heavy: bool) -> T:
        """Return what `work` returns, which takes long where it is `heavy`."""
        return await self.desk.threads.run(record.owner, work) if heavy else work()


async def _passed(
    guards: Sequence[RunningGuard], texts: Texts, ask: Ask, record: RequestRecord, *, heavy: bool
) -> Passed:
    now = loop_clock()
    began = now()
    try:
        return await passed(guards, texts, ask, heavy=heavy)
    except PluginError as error:
        raise stopped(record, error) from None
    finally:
        if record.receipt is not None and record.first_content is None:
            record.waits().guarded += now() - began


class TeamGuards:
    """The guards that one table names. `of` has the chain of each team that has any, by its name; `threads` are those
    in which the texts of large requests and answers are read and changed."""

    def __init__(self, loaded: Loaded, plugins: Plugins, log: logging.Logger, threads: RequestThreads) -> None:
        self.threads = threads
        self.running: dict[str, RunningGuard] = {}
        self._log = log
        teams = loaded.config.teams
        self._guards = {name: guards_of(loaded, plugins, name) for name in (teams or (NO_TEAM,))}
        for guards in self._guards.values():
            for each in guards:
                if each.name not in self.running:
                    self.running[each.name] = RunningGuard(each, log)
        self._tags = {name: dict(team.tags) for name, team in teams.items()}
        self.close = weakref.finalize(self, _close, tuple(self.running.values()), log)

    def of(self, team: str) -> GuardChain | None:
        """Return the chain of a team, None without guards."""
        guards = self._guards.get(team)
        if not guards:
            return None
        running = [self.running[each.name] for each in guards]
        answer = tuple(each for each in running if each.plugin.has("check_answer"))
        return GuardChain(
            self,
            self._tags.get(team, {}),
            tuple(each for each in running if each.plugin.has("check_request")),
            answer,
            all([each.plugin.has("open_stream") for each in answer]),
        )


def _close(guards: Sequence[RunningGuard], log: logging.Logger) -> list[threading.Thread]:
    """Begin to close guards, and return the threads that end when they are closed or given up."""
    for guard in guards:
        guard.close()
    return [closing for guard in guards if (closing := begin_close(guard.plugin, log)) is not None]
