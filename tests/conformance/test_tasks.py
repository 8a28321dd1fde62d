"""Every cell of the matrix of tasks, sent through the whole gateway to a fake of each vendor."""

import base64
import struct
from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from providers.capabilities import Support
from providers.dialects.task_matrix import TaskMatrixEntry
from providers.json_types import JsonObject, JsonValue
from tests.conformance.task_vendors import EMBEDDING, RANKING, answer, named, table, vector_of
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.raw_client import Answer
from tests.support.looped import looped

TEXTS = ("one", "fifteen")
FIELDS: JsonObject = {
    "input.tokens": [[111, 110], [102]],
    "encoding_format": "base64",
    "input_type": "search_query",
    "truncate": True,
    "user": "u",
    "dimensions": 2,
    "top_n": 1,
    "return_documents": True,
    "max_tokens_per_doc": 9,
    "unknown": 1,
}
IN_ALL_BODIES = frozenset({"encoding_format", "input.tokens"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def walked() -> AsyncIterator[Rig]:
    async with rig(table()) as made:
        made.vendor.default = answer
        yield made


async def ask(walked: Rig, entry: TaskMatrixEntry, **fields: JsonValue) -> Answer:
    path = "/v1/embeddings" if entry in EMBEDDING else "/v1/rerank"
    usual: JsonObject = {"input": [*TEXTS]} if entry in EMBEDDING else {"query": "q", "documents": [*TEXTS]}
    if entry in EMBEDDING and not entry.cells["input_type"].refused:
        usual["input_type"] = "search_document"
    walked.vendor.requests.clear()
    return await walked.post(path, {"model": named(entry), **usual, **fields})


def vectors(found: Answer) -> list[JsonValue]:
    assert found.status == 200, found.body
    return [entry["embedding"] for entry in cast("list[JsonObject]", found.json()["data"])]


def cell_id(case: tuple[TaskMatrixEntry, str]) -> str:
    return f"{named(case[0])} {case[1]}"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@looped("entry", EMBEDDING, ids=named)
async def test_every_vendor_s_vectors_come_back_as_numbers_and_as_base64(walked: Rig, entry: TaskMatrixEntry) -> None:
    assert vectors(await ask(walked, entry)) == [vector_of(text) for text in TEXTS]
    coded = vectors(await ask(walked, entry, encoding_format="base64"))
    assert [[*struct.unpack("<2f", base64.b64decode(str(each)))] for each in coded] == [*map(vector_of, TEXTS)]


@looped("entry", RANKING, ids=named)
async def test_every_vendor_s_ranking_comes_back_best_first(walked: Rig, entry: TaskMatrixEntry) -> None:
    found = await ask(walked, entry)
    assert found.status == 200, found.body
    assert found.json()["results"] == [
        {"index": 1, "relevance_score": 0.125},
        {"index": 0, "relevance_score": 0.0},
    ]


@looped("case", [(entry, name) for entry in (*EMBEDDING, *RANKING) for name in entry.cells], ids=cell_id)
async def test_each_field_does_what_its_cell_says(walked: Rig, case: tuple[TaskMatrixEntry, str]) -> None:
    entry, field = case
    cell = entry.cells[field]
    sent = {"input.tokens": "input", "unknown": "odd"}.get(field, field)
    fields: JsonObject = {sent: FIELDS[field]}
    found = await ask(walked, entry, **fields)
    if cell.support is Support.REFUSED:
        assert found.status == 400
        assert (found.error()["param"], found.code) == (sent, "unsupported_parameter")
        assert named(entry) in found.message
        assert cell.how in found.message
        assert walked.vendor.requests == []
        return
    assert found.status == 200, found.body
    said = {name: found.headers.get(f"x-dragoman-{name}", "").split(", ") for name in ("emulated", "dropped")}
    assert (field in said["emulated"]) is cell.emulated
    assert (field in said["dropped"]) is cell.left_out
    wire = entry.wire.rename.get(field, sent).rpartition(".")[2]
    bodies = b"".join(request.body for request in walked.vendor.requests)
    if cell.native:
        assert f'"{wire}"'.encode() in bodies
    elif field not in IN_ALL_BODIES:
        # A wire format may always send `"return_documents":false`.
        assert f'"{wire}"'.encode() not in bodies.replace(b'"return_documents":false', b"")
