"""The keys by which another gateway's configuration is recognized."""

from config.reading.other_gateways import foreign_key, import_hint
from tests.support.looped import looped


@looped(
    ("keys", "key", "gateway"),
    [
        (["general_settings", "model_list"], "general_settings", "litellm"),
        (["version", "model_list"], "model_list", "litellm"),
        (["$schema", "providers"], "providers", "bifrost"),
        (["strategy", "targets"], "strategy", "portkey"),
    ],
)
def test_a_key_names_the_gateway(keys: list[str], key: str, gateway: str) -> None:
    found = foreign_key(keys)
    assert found == key
    assert f"`dragoman import {gateway} FILE`" in import_hint(found)


@looped("keys", [[], ["version", "providers"], ["vendors", "targets"], ["x"]])
def test_a_table_is_none(keys: list[str]) -> None:
    assert foreign_key(keys) is None
