"""The guards of each team. They check the team's requests and responses.

Each loaded configuration has its own guards. Requests that began under an earlier configuration keep its guards, which
are closed when the last of these requests has ended.
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
from proxy.plugins.run_guards import Passed, TextCheck, Texts, passed, request_verdict, response_verdict, stopped
from proxy.plugins.running_guard import RunningGuard
from proxy.plugins.transcript_texts import texts_of_transcript, with_transcript
from proxy.request_outcomes import GuardMarks
from proxy.request_record import NO_TEAM, RequestRecord

T = TypeVar("T")

LARGE_RESPONSE: Final = 64 * 1024
"""The size in characters from which responses are checked off the event loop. Unescaping this many characters may take
8 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class GuardChain:
    """The guards of one team, in order. Requests that use the chain keep its `registry` alive."""

    registry: "TeamGuards"
    tags: Mapping[str, str]
    request: tuple[RunningGuard, ...]
    answer: tuple[RunningGuard, ...]
    streams: bool
    """Whether all response guards support streams."""

    def about(self, record: RequestRecord, model: str) -> AboutRequest:
        """Return the facts about a request that guards may see."""
        return AboutRequest(record.request_id, record.team, model, record.surface, record.user, self.tags)

    async def request_passed(self, request: Q, record: RequestRecord, *, heavy: bool) -> Q:
        """Return a request with the changes that its guards make; `texts_of` must know the type of the request. Raises
        GatewayError if a guard refuses it, or if a guard fails and does not fail open. The record then has the guard's
        name."""
        record.guarded = marks = GuardMarks()
        if not self.request:
            return request
        ask = partial(request_verdict, self.about(record, request.model))
        texts = await self._done(partial(texts_of, request), record, heavy=heavy)
        left = await _passed(self.request, texts, ask, record, heavy=heavy)
        if not left.names:
            return request
        work = partial(rewritten, request, [each.text for each in left.texts])
        request, dropped = await self._done(work, record, heavy=heavy)
        marks.note(left.names, dropped)
        return request

    async def choice_passed(self, choice: Choice, record: RequestRecord) -> Choice:
        """Return a choice with the changes that the response guards make. It is the same object if no guard changed it.
        Raises GatewayError as `request_passed` does."""
        heavy = size_of_choice(choice) > LARGE_RESPONSE
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
        """Return whether the response guards leave the texts of `texts_beside` unchanged. Raises GatewayError as
        `request_passed` does."""
        heavy = size_beside(completion) > LARGE_RESPONSE
        texts = await self._done(partial(texts_beside, completion, sent), record, heavy=heavy)
        return not texts or await self.unchanged(texts, record, heavy=heavy)

    async def unchanged(self, texts: Texts, record: RequestRecord, *, heavy: bool) -> bool:
        """Return whether the response guards leave texts unchanged. Raises GatewayError as `request_passed` does."""
        left = await self._judged(texts, 0, record, heavy=heavy)
        if left.names and record.guarded is not None:
            record.guarded.note(left.names)
        return not left.names

    async def transcript_passed(self, kind: str, body: bytes, record: RequestRecord) -> bytes:
        """Return a transcription with the changes that the response guards make; `kind` is its content type. Raises
        UpstreamError if the body is not a transcription, and otherwise as `choice_passed` does."""
        heavy = len(body) > LARGE_RESPONSE
        texts = await self._done(partial(texts_of_transcript, kind, body), record, heavy=heavy)
        left = await self._judged(texts, 0, record, heavy=heavy)
        if not left.names:
            return body
        if record.guarded is not None:
            record.guarded.note(left.names)
        new = [each.text for each in left.texts]
        return await self._done(partial(with_transcript, kind, body, new), record, heavy=heavy)

    async def _judged(self, texts: Texts, choice: int, record: RequestRecord, *, heavy: bool) -> Passed:
        """Return the texts of a choice with the changes that the response guards make."""
        ask = partial(response_verdict, self.about(record, record.asked), choice)
        return await _passed(self.answer, texts, ask, record, heavy=heavy)

    async def _done(self, work: Callable[[], T], record: RequestRecord, *, heavy: bool) -> T:
        """Return the value of `work`, which runs in a thread if it is `heavy`."""
        return await self.registry.threads.run(record.owner, work) if heavy else work()


async def _passed(
    guards: Sequence[RunningGuard], texts: Texts, ask: TextCheck, record: RequestRecord, *, heavy: bool
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
    """The guards of one configuration. `threads` read and change the texts of large requests and responses."""

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
        """Return the chain of a team; `None` if it has no guards."""
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
    """Begin to close guards. Return the threads, each of which ends when its guard is closed or abandoned."""
    for guard in guards:
        guard.close()
    return [closing for guard in guards if (closing := begin_close(guard.plugin, log)) is not None]
