"""Neutral values never cause an error on any endpoint of any vendor, and change nothing for the client."""

from collections.abc import Iterator
from typing import cast

from providers.dialects.capability_matrix import matrix_entries
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.surfaces.request.field_rules import FIELDS
from tests.conformance.expected_answers import plain
from tests.conformance.read_answer import read_answer
from tests.conformance.run_matrix import matrix_client
from tests.providers.neutral import NEUTRAL
from tests.support.looped import looped

REQUIRED = frozenset({"model", "prompt", "messages"})


def _json(value: object) -> JsonValue:
    """Return a canonical value as clients write it."""
    return [_json(item) for item in value] if isinstance(value, tuple) else cast(JsonValue, value)


def requests(operation: Operation) -> Iterator[JsonObject]:
    """Yield a request for each neutral value, and one request in which every field is null."""
    yield {name: None for name in FIELDS[operation].keys() - REQUIRED}
    for name, values in NEUTRAL.items():
        for value in values:
            yield {name: _json(value)}


@looped("profile", load_profiles())
async def test_a_value_that_asks_for_nothing_changes_nothing(profile: str) -> None:
    async with matrix_client(profile) as walking:
        for row in matrix_entries([load_profiles()[profile]]):
            base = await walking.exchange(row, {})
            if base.answer.status == 400:
                # This model does not support chat.
                assert row.operation is Operation.CHAT
                assert row.cells["messages"].refused
                continue
            for fields in requests(row.operation):
                exchange = await walking.exchange(row, fields)
                assert exchange.answer.status == 200, (row.model, row.operation, fields, exchange.answer.body)
                plain(read_answer(exchange.answer))
                assert exchange.answer.headers.get("x-dragoman-dropped") is None
