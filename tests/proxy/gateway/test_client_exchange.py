"""The exchange of a client: how long it may take, and how its response is written."""

from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from multidict import CIMultiDict

from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.errors import GatewayError, OverloadReason
from proxy.gateway.client_exchange import BUFFERED_BYTES, ClientExchange, Exchanges
from proxy.gateway.match_path import RequestHead
from proxy.off_loop.request_threads import RequestThreads
from proxy.overload.admission_limits import Admitted
from proxy.request_record import RequestRecord
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import ANYONE
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from tests.proxy.kit.gateway_rig import Rig, ask
from tests.proxy.kit.tables import snapshot
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion

pytestmark = pytest.mark.smoke


TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}}\n"
    "models: {v/m: {deployments: {quick: {timeouts: {total: 10s}}, slow: {timeouts: {total: 5m}}}}}"
)


def exchanges() -> Exchanges:
    metrics = Metrics()
    return Exchanges(metrics, lambda: 0.0, ObserverGuard(metrics.observer_failed), RequestThreads())


def record() -> RequestRecord:
    return RequestRecord("r1", 0.0, "openai", "/v1/completions")


@pytest.mark.parametrize("draining", [False, True])
async def test_an_answer_closes_its_connection_only_where_the_process_is_to_end(draining: bool) -> None:
    shared, noted = exchanges(), record()
    shared.draining = draining
    response = shared.response(404, b"{}", noted, {"x-more": "1"})
    assert (response.status, noted.status) == (404, 404)
    assert response.keep_alive is (False if draining else None)


async def test_a_refusal_for_the_gateway_s_own_sake_is_no_failure_of_the_client() -> None:
    noted = record()
    assert exchanges().overloaded(noted, OverloadReason.MEMORY).facts.status == 503
    assert noted.outcome == "shed"


@pytest.mark.parametrize("size", [10, BUFFERED_BYTES + 1])
async def test_an_answer_of_any_size_reaches_the_client_whole(served: Rig, size: int) -> None:
    served.vendor.default = json_answer(200, completion("x" * size, "m"))
    answer = await served.post("/v1/completions", ask())
    assert answer.whole
    assert b'"%b"' % (b"x" * size) in answer.body


def time_given(seconds: float | None = None, **headers: str) -> tuple[float, bool]:
    """The seconds that a request may take, and whether the client made them fewer."""
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    http = cast(web.BaseRequest, SimpleNamespace(method="POST", headers=named))
    head, admitted = RequestHead(http, "/v1/completions"), cast(Admitted, None)
    made: ClientExchange[UnifiedRequest] = ClientExchange(exchanges(), http, head, record(), admitted)
    made.plan = plan_for(TABLE, ANYONE, "v/m", "openai", IDLE)
    made.request = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {}, timeout=seconds)
    made.set_deadlines()
    return made.total, made.hurried


async def test_a_request_has_as_long_as_the_most_patient_of_its_deployments() -> None:
    assert time_given() == (300.0, False)


@looped(
    ("seconds", "header", "total"),
    [
        (20.0, None, 20.0),
        (None, "7.5", 7.5),
        (20.0, "7", 7.0),
        (5.0, "7", 5.0),
        (None, "301", 300.0),
        (600.0, None, 300.0),
    ],
)
async def test_whoever_sends_it_may_shorten_that(seconds: float | None, header: str | None, total: float) -> None:
    assert time_given(seconds, **({} if header is None else {"x_request_timeout": header})) == (total, total < 300)


@looped("header", ["", "soon", "-1", "0", "0.0", "nan", "inf", "1e9", "0x10", "1_0", "٣", "7 s", "1" * 400])
async def test_what_is_no_time_is_refused_by_name(header: str) -> None:
    with pytest.raises(GatewayError) as caught:
        time_given(x_request_timeout=header)
    assert (caught.value.facts.status, caught.value.facts.param) == (400, "x-request-timeout")
