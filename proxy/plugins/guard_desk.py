"""The guards of each team, and how a request and its answer pass them.

A table has its own guards: requests that began under the one before keep theirs, which are closed when the last of
these requests has let go of them.
"""

import logging
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from config.load_config import Loaded
from providers.completion import Choice
from proxy.dispatch.attempt_loop import ClientRequest
from proxy.off_loop.request_threads import RequestThreads
from proxy.plugins.answer_texts import texts_of_choice, with_texts
from proxy.plugins.api import AboutRequest
from proxy.plugins.foreign_code import attempted
from proxy.plugins.load_plugins import Plugins, guards_of
from proxy.plugins.request_texts import rewritten, texts_of
from proxy.plugins.running_guard import RunningGuard
from proxy.plugins.verdicts import ask_answer, ask_request, passed
from proxy.request_record import NO_TEAM, GuardMarks, RequestRecord


class GuardedRequest(ClientRequest, Protocol):
    """A request of a kind whose texts are known. See request_texts.texts_of."""

    @property
    def model(self) -> str:
        """The client's model string."""


Q = TypeVar("Q", bound=GuardedRequest)

LONG: Final = 256 * 1024
"""Characters of an answer that no guard looks at on the event loop."""


@dataclass(frozen=True, slots=True, eq=False)
class GuardChain:
    """The guards of one team, in order. `desk` is kept alive by the requests that use it."""

    desk: "GuardDesk"
    tags: Mapping[str, str]
    request: tuple[RunningGuard, ...]
    answer: tuple[RunningGuard, ...]
    streams: bool
    """Whether all guards of answers take streams as they come."""

    def about(self, record: RequestRecord, model: str) -> AboutRequest:
        """Return what guards may know of a request."""
        return AboutRequest(record.request_id, record.team, model, record.surface, record.user, self.tags)

    async def request_passed(self, request: Q, record: RequestRecord, threads: RequestThreads, *, heavy: bool) -> Q:
        """Return a request as its guards leave it. Raises GatewayError where one refuses it, or fails and has to
        work."""
        record.guarded = marks = GuardMarks()
        if not self.request:
            return request
        texts = await threads.run(record.owner, partial(texts_of, request)) if heavy else texts_of(request)
        left = await passed(self.request, texts, partial(ask_request, self.about(record, request.model)), heavy=heavy)
        if not left.names:
            return request
        work = partial(rewritten, request, [each.text for each in left.texts])
        request, dropped = await threads.run(record.owner, work) if heavy else work()
        marks.note(left.names, dropped)
        return request

    async def choice_passed(self, choice: Choice, record: RequestRecord) -> Choice:
        """Return a choice as the guards of answers leave it; the same one where none changed it. Raises GatewayError
        as `request_passed` does."""
        texts = texts_of_choice(choice)
        heavy = sum([len(each.text) for each in texts]) > LONG
        about = self.about(record, record.asked)
        left = await passed(self.answer, texts, partial(ask_answer, about, choice.index), heavy=heavy)
        if not left.names:
            return choice
        choice, dropped = with_texts(choice, [each.text for each in left.texts])
        if record.guarded is not None:
            record.guarded.note(left.names, dropped)
        return choice


class GuardDesk:
    """The guards that one table names. `of` has the chain of each team that has any, by its name."""

    def __init__(self, loaded: Loaded, plugins: Plugins, log: logging.Logger) -> None:
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


def _close(guards: Iterable[RunningGuard], log: logging.Logger) -> None:
    for guard in guards:
        guard.close()
        if guard.plugin.has("close"):
            outcome = attempted(guard.plugin.made.close)
            if not hasattr(outcome, "value"):
                log.warning("plugin %s could not be closed: %s", guard.name, outcome)
