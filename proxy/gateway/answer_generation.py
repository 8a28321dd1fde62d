"""Answers the calls that generate text: parsed by their surface, planned, dispatched, and rendered."""

from functools import partial

from aiohttp import web

from providers.unified_request import Operation, UnifiedRequest
from proxy.dispatch.prefer_honouring import honouring_first
from proxy.dispatch.single_attempt import Dispatcher
from proxy.gateway.answer_request import Exchange, make_job
from proxy.gateway.client_call import ClientCall
from proxy.gateway.restore_thinking import TurnMemory
from proxy.overload.admission_limits import Admission
from proxy.request_record import RequestRecord
from proxy.routing.resolve_model import plan
from proxy.surfaces.request.parse_json import is_heavy
from proxy.surfaces.surface import NO_CONTEXT, RequestContext
from proxy.teams.client_keys import permit_extras


class TextGeneration:
    """Answers calls that generate text. `turns` is the memory of what models thought."""

    def __init__(self, dispatcher: Dispatcher, admission: Admission, turns: TurnMemory) -> None:
        self._dispatcher = dispatcher
        self._admission = admission
        self._turns = turns

    async def answer(self, call: ClientCall, operation: Operation) -> web.StreamResponse:
        """Answer a call, whole or as a stream. Raises GatewayError while nothing has been written."""
        http, record, snapshot, team, surface = call.http, call.record, call.snapshot, call.team, call.surface
        body = await call.read_body()
        heavy = is_heavy(body)
        default_model = snapshot.default_models.get(surface.name)
        context = RequestContext(http.headers) if surface.reads_context else NO_CONTEXT
        parse = partial(surface.parse, operation, body, default_model, context)
        request = await self._dispatcher.off_loop.threads.run(record.owner, parse) if heavy else parse()
        self._admit(call, request, record)
        planned = plan(snapshot, team, request.model, surface.name, self._dispatcher.load)
        record.model = planned.label
        keeper = None
        if self._turns.concerns(planned, request):
            request, keeper = await self._turns.recall(planned, request, call.stored_for)
        permit_extras(team, request)
        planned = honouring_first(planned, request, team)
        job = make_job(planned, team, request, http.headers, record, heavy=heavy)
        exchange = Exchange(self._dispatcher, call.shared.metrics, job, surface, http, call.begin_stream, keeper)
        deadlines = call.shared.deadlines
        deadlines.add(job.deadlines)
        try:
            if request.stream:
                return await exchange.streamed()
            answer, headers = await exchange.whole()
        finally:
            deadlines.discard(job.deadlines)
        return await call.respond(answer, headers)

    def _admit(self, call: ClientCall, request: UnifiedRequest, record: RequestRecord) -> None:
        """Admit a team's parsed request, once, before it is planned; limits and budgets of teams belong here. Raises
        GatewayError where it is refused: today only a stream above the limit of streams."""
        record.asked, record.stream = request.model, request.stream
        if request.stream and (reason := self._admission.refuses_streams()) is not None:
            raise call.shared.overloaded(record, reason)
