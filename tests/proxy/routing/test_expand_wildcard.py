"""A `vendor/*` entry becomes the model that a client names, once."""

from proxy.routing.expand_wildcard import expand
from tests.proxy.kit.tables import snapshot

TEXT = "vendors: {fw: {profile: openai, api_key: k}}\nmodels: {fw/*: {}}\n"
TABLE = snapshot(TEXT)


def test_a_wildcard_row_becomes_a_model_that_is_made_once() -> None:
    row = TABLE.wildcards["fw"]
    model = expand(row, "accounts/x")
    assert (model.name, model.policy) == ("fw/accounts/x", "priority")
    assert [target.name for target in model.targets] == ["fw/accounts/x/default"]
    assert [target.upstream_model for target in model.targets] == ["accounts/x"]
    assert expand(row, "accounts/x") is model
    assert expand(snapshot(TEXT).wildcards["fw"], "accounts/x") is not model


def test_names_that_clients_make_up_are_not_kept_for_ever() -> None:
    row = TABLE.wildcards["fw"]
    for number in range(5000):
        expand(row, f"made-up-{number}")
    assert expand.cache_info().currsize < 5000
