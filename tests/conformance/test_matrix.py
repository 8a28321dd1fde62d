"""Every cell of the capability matrix matches the actual behaviour: each is sent through the running gateway to a
fake of the vendor.

The sent requests are compared with the committed record. They are also compared with rules and expectations written by
hand (`sent_values`, `expected_answers`), so that a wrong record does not pass.
"""

from collections.abc import Callable, Iterable

import orjson
import pytest

from providers.capabilities import FEATURES
from providers.dialects.capability_matrix import matrix_entries, summarize
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.telemetry.access_log import request_line
from tests.conformance import golden
from tests.conformance.conftest import WALKED
from tests.conformance.expected_answers import check_effect
from tests.conformance.fake_engine import fake_dialect_of
from tests.conformance.feature_requests import CODES, fields_for, params_of
from tests.conformance.read_answer import dropped_fields, emulated_fields
from tests.conformance.run_matrix import STREAM, CellRun, Exchange, Sent, all_cell_runs, run_profile
from tests.conformance.sent_values import ADAPTIVE, WANTED_PROMPTS, answered_prompts, fits_window, is_sent
from tests.support.looped import looped
from tests.support.summary_counts import counts

pytestmark = pytest.mark.timeout(600)  # the first test sends every cell, also on a busy machine

each_profile = looped("profile", load_profiles())


def hold(cells: Iterable[CellRun], check: Callable[[CellRun], None]) -> None:
    said: list[str] = []
    for cell in cells:
        try:
            check(cell)
        except AssertionError as wrong:
            said.append(f"{cell}: {next(iter(str(wrong).splitlines()), 'another answer')}")
    if said:
        pytest.fail("\n".join(said), pytrace=False)


def test_every_cell_is_walked(pytestconfig: pytest.Config) -> None:
    matrix = list(matrix_entries(load_profiles().values()))
    claimed = {(row.profile, row.model, row.operation, name) for row in matrix for name in row.cells}
    seen = [
        (cell.row.profile, cell.row.model, cell.row.operation, cell.feature)
        for cell in all_cell_runs()
        if not cell.window
    ]
    assert len(seen) == len(set(seen))
    assert set(seen) == claimed
    counts(pytestconfig)[WALKED, summarize(matrix)] += 1


def test_the_matrix_has_a_row_for_each_endpoint_and_a_cell_for_each_feature() -> None:
    for row in matrix_entries(load_profiles().values()):
        assert set(row.cells) == {name for name, feature in FEATURES.items() if row.operation in feature.operations}
    assert {feature for feature in FEATURES if FEATURES[feature].operations} == set(FEATURES)


@each_profile
def test_what_goes_out_is_what_the_record_says(profile: str) -> None:
    record = (golden.FOLDER / f"{profile}.json").read_text(encoding="utf-8").splitlines()
    now = golden.text(profile).splitlines()
    changed = [f"- {line}" for line in record if line not in now] + [f"+ {line}" for line in now if line not in record]
    assert changed == [], "if this is meant: python -m tests.conformance.golden"
    assert record == now


def test_no_record_is_of_a_profile_that_is_gone() -> None:
    assert {path.stem for path in golden.FOLDER.glob("*.json")} == set(load_profiles())


def native(cell: CellRun) -> None:
    """Assert one call that carries the value, and that nothing is reported as emulated except a prompt that became a
    chat."""
    if cell.cell.native:
        named = {"prompt", "thinking"} if cell.row.model in ADAPTIVE and cell.feature == "thinking" else {"prompt"}
        assert set(emulated_fields(cell.whole.answer)) <= named, emulated_fields(cell.whole.answer)
        assert len(cell.whole.calls(cell.row.profile)) == 1, cell.whole.sent
        assert is_sent(cell, fields_for(cell.feature, cell.row, refused=False)), cell.whole.sent


def emulated(cell: CellRun) -> None:
    """Assert that the field is reported as emulated, unless its emulation refuses a request that does not fit; a
    request that was made to fit does fit."""
    if not cell.cell.emulated or cell.feature == "context_length_exceeded_behavior.error":
        return
    for exchange in filter(None, (cell.whole, cell.streamed)):
        assert FEATURES[cell.feature].field in emulated_fields(exchange.answer), emulated_fields(exchange.answer)
    if cell.feature == "context_length_exceeded_behavior.truncate":
        assert fits_window(cell), cell.whole.sent


def left_out(cell: CellRun) -> None:
    """Assert that the vendor gets the smallest request, and that the omitted field is reported to the client and in
    the log."""
    if cell.cell.left_out:
        field = FEATURES[cell.feature].field
        assert [sent.body for sent in cell.whole.sent] == [sent.body for sent in cell.base.sent], cell.whole.sent
        for exchange in filter(None, (cell.whole, cell.streamed)):
            assert exchange.answer.status == 200, exchange.answer.body
            assert dropped_fields(exchange.answer) == (field,), dropped_fields(exchange.answer)
            assert orjson.loads(request_line(exchange.record, exchange.record.cost))["dropped"] == [field]


def refused(cell: CellRun) -> None:
    """Assert an error that names the field and the deployment, and that no request reached the vendor."""
    if cell.cell.refused:
        answer = cell.whole.answer
        assert cell.whole.sent == ()
        assert answer.status == 400, answer.body
        assert answer.code in CODES, answer.code
        assert answer.error()["param"] in params_of(cell.row, cell.feature), answer.error()
        if answer.code == "unsupported_parameter":
            assert f"{cell.row.profile}/{cell.row.model}/default" in answer.message
            assert cell.cell.how in answer.message


def effect(cell: CellRun) -> None:
    """Assert that the client sees the feature's effect, non-streaming and streamed."""
    if not cell.cell.refused:
        for exchange in filter(None, (cell.whole, cell.streamed)):
            check_effect(cell.row.profile, cell.feature, cell.row.operation, exchange.answer)


def asks_once(cell: CellRun) -> None:
    """Assert that each prompt is answered exactly as often as the client wants."""
    if not cell.cell.refused and cell.feature in WANTED_PROMPTS:
        for exchange in filter(None, (cell.whole, cell.streamed)):
            assert answered_prompts(cell, exchange) == WANTED_PROMPTS[cell.feature]


def _comparable_requests(cell: CellRun, exchange: Exchange) -> list[bytes]:
    """Return the requests without the fields that select streaming, sorted."""
    requests = [[_comparable_path(cell, sent), _without_switches(cell, sent)] for sent in exchange.sent]
    return sorted(orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in requests)


def _comparable_path(cell: CellRun, sent: Sent) -> list[str]:
    """Return the path ends of the call's endpoint, so that a path that selects streaming compares equal."""
    wire = fake_dialect_of(cell.row.profile).call(sent.endpoint)
    return [sent.path] if wire is None else [*wire.ends]


STRICT_WHOLE = frozenset({"groq"})
"""Vendors whose schemas are strict only in non-streaming responses."""


def _without_switches(cell: CellRun, sent: Sent) -> JsonObject:
    body = {name: value for name, value in (sent.body or {}).items() if name not in STREAM}
    match body.get("response_format"):
        case {"json_schema": dict(named)} if cell.row.profile in STRICT_WHOLE:
            return {**body, "response_format": {name: value for name, value in named.items() if name != "strict"}}
        case _:
            return body


LLAMA = "meta.llama3-3-70b-instruct-v1:0"
ANSWERED_WHOLE = frozenset(
    {
        ("tgi_native", "model", "echo.logprobs"),
        ("sagemaker_tgi", "model", "echo.logprobs"),
        ("bedrock", LLAMA, "tools"),
        ("bedrock", LLAMA, "parallel_tool_calls"),
    }
)
"""Features that a vendor's model has only in non-streaming responses; a streaming client gets them too."""


def streams_alike(cell: CellRun) -> None:
    """Assert that streaming changes only the fields that select streaming."""
    if cell.streamed is not None:
        assert _comparable_requests(cell, cell.streamed) == _comparable_requests(cell, cell.whole)
        for call in cell.streamed.calls(cell.row.profile):
            wire = fake_dialect_of(cell.row.profile).call(call.endpoint)
            assert wire is not None
            whole = (cell.row.profile, cell.row.model, cell.feature) in ANSWERED_WHOLE
            assert wire.streams(call.endpoint, call.body or {}) is not whole


@each_profile
@looped(
    "check",
    [
        pytest.param(native, id="a native field is on the wire"),
        pytest.param(emulated, id="an emulated field is named in the header"),
        pytest.param(left_out, id="a field that is left out is named and not on the wire"),
        pytest.param(refused, id="a refused field never leaves"),
        pytest.param(effect, id="the client sees what it asked for"),
        pytest.param(asks_once, id="each prompt is answered as often as the client wants"),
        pytest.param(streams_alike, id="a stream asks the vendor for the same"),
    ],
)
def test_each_cell_is_what_the_matrix_says(profile: str, check: Callable[[CellRun], None]) -> None:
    hold(run_profile(profile), check)


def test_a_walk_that_finds_something_says_where() -> None:
    (cell,) = (each for each in run_profile("mock") if each.feature == "top_k" and each.row.operation is Operation.CHAT)

    def never(_: CellRun) -> None:
        raise AssertionError("no")

    with pytest.raises(pytest.fail.Exception, match=r"^mock/model chat top_k \(native\): no$"):
        hold([cell], never)
