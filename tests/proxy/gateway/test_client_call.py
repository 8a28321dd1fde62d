"""One call of a client: its owner and its response."""

import pytest

from proxy.errors import OverloadReason
from proxy.gateway.client_call import BUFFERED_BYTES, ClientCalls
from proxy.request_record import RequestRecord
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from tests.proxy.kit.gateway_rig import Rig, ask
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import completion

pytestmark = pytest.mark.smoke


def calls() -> ClientCalls:
    metrics = Metrics()
    return ClientCalls(metrics, lambda: 0.0, ObserverGuard(metrics.observer_failed))


def record() -> RequestRecord:
    return RequestRecord("r1", 0.0, "openai", "/v1/completions")


@pytest.mark.parametrize("draining", [False, True])
async def test_an_answer_closes_its_connection_only_where_the_process_is_to_end(draining: bool) -> None:
    shared, noted = calls(), record()
    shared.draining = draining
    response = shared.response(404, b"{}", noted, {"x-more": "1"})
    assert (response.status, noted.status) == (404, 404)
    assert response.keep_alive is (False if draining else None)


async def test_a_refusal_for_the_gateway_s_own_sake_is_no_failure_of_the_client() -> None:
    noted = record()
    assert calls().overloaded(noted, OverloadReason.MEMORY).facts.status == 503
    assert noted.outcome == "shed"


@pytest.mark.parametrize("size", [10, BUFFERED_BYTES + 1])
async def test_an_answer_of_any_size_reaches_the_client_whole(served: Rig, size: int) -> None:
    served.vendor.default = json_answer(200, completion("x" * size, "m"))
    answer = await served.post("/v1/completions", ask())
    assert answer.whole
    assert b'"%b"' % (b"x" * size) in answer.body
