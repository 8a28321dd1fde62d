"""The endpoints of stored responses, as paths."""

from proxy.surfaces.registry import NAME
from proxy.surfaces.responses.stored_endpoints import stored_endpoints
from proxy.surfaces.surface import Endpoint, StoredAction


def test_each_action_has_one_endpoint_below_each_base() -> None:
    made = stored_endpoints("/v1/responses", "/responses")
    assert sorted(endpoint.action.name for endpoint in made) == sorted([each.name for each in StoredAction] * 2)
    assert Endpoint("GET", "/v1/responses/{id}/input_items", StoredAction.INPUT_ITEMS) in made
    assert Endpoint("DELETE", "/responses/{id}", StoredAction.DELETE) in made
    assert all(endpoint.path.count(NAME) <= 1 for endpoint in made)
