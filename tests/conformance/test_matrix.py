"""Every cell of the capability matrix is what happens: sent through the running gateway to a fake of the vendor.

What goes out is compared with the committed record and, apart from it, with rules and expectations that are written by
hand (`evidence`, `effects`), so that a record of something wrong does not pass.
"""

from collections.abc import Callable, Iterable

import orjson
import pytest

from providers.capabilities import FEATURES
from providers.matrix import rows, summary
from providers.profiles import load_profiles
from providers.unified import JsonObject, Operation
from tests.conformance import golden
from tests.conformance.conftest import WALKED
from tests.conformance.effects import check_effect
from tests.conformance.evidence import WANTED, answered, fits, found
from tests.conformance.fake import spoken
from tests.conformance.samples import CODES, params_of, sample
from tests.conformance.shown import named
from tests.conformance.walk import STREAM, Exchange, Sent, Walked, every, walked
from tests.support.facts import facts

each_profile = pytest.mark.parametrize("profile", load_profiles())


def hold(cells: Iterable[Walked], check: Callable[[Walked], None]) -> None:
    """Check every cell and tell all that is wrong at once."""
    said: list[str] = []
    for cell in cells:
        try:
            check(cell)
        except AssertionError as wrong:
            said.append(f"{cell}: {str(wrong).splitlines()[0]}")
    if said:
        pytest.fail("\n".join(said), pytrace=False)


def test_every_cell_is_walked(pytestconfig: pytest.Config) -> None:
    matrix = list(rows(load_profiles().values()))
    claimed = {(row.profile, row.model, row.operation, name) for row in matrix for name in row.cells}
    seen = [(cell.row.profile, cell.row.model, cell.row.operation, cell.feature) for cell in every() if not cell.window]
    assert len(seen) == len(set(seen))
    assert set(seen) == claimed
    facts(pytestconfig)[WALKED, summary(matrix)] += 1


def test_the_matrix_has_a_row_for_each_endpoint_and_a_cell_for_each_feature() -> None:
    for row in rows(load_profiles().values()):
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


def native(cell: Walked) -> None:
    """One call, which carries the value; nothing is said to be emulated but a prompt that became a chat."""
    if cell.cell.native:
        assert set(named(cell.whole.answer)) <= {"prompt"}, named(cell.whole.answer)
        assert len(cell.whole.calls(cell.row.profile)) == 1, cell.whole.sent
        assert found(cell, sample(cell.feature, cell.row, refused=False)), cell.whole.sent


@each_profile
def test_a_native_field_is_on_the_wire(profile: str) -> None:
    hold(walked(profile), native)


def emulated(cell: Walked) -> None:
    """The field is named, unless its emulation is to refuse what does not fit; what was made to fit does."""
    if not cell.cell.emulated or cell.feature == "context_length_exceeded_behavior.error":
        return
    for exchange in filter(None, (cell.whole, cell.streamed)):
        assert FEATURES[cell.feature].field in named(exchange.answer), named(exchange.answer)
    if cell.feature == "context_length_exceeded_behavior.truncate":
        assert fits(cell), cell.whole.sent


@each_profile
def test_an_emulated_field_is_named_in_the_header(profile: str) -> None:
    hold(walked(profile), emulated)


def refused(cell: Walked) -> None:
    """An error that names the field and the deployment, and nothing reached the vendor."""
    if cell.cell.refused:
        answer = cell.whole.answer
        assert cell.whole.sent == ()
        assert answer.status == 400, answer.body
        assert answer.code in CODES, answer.code
        assert answer.error()["param"] in params_of(cell.row, cell.feature), answer.error()
        if answer.code == "unsupported_parameter":
            assert f"{cell.row.profile}/{cell.row.model}/default" in answer.message
            assert cell.cell.how in answer.message


@each_profile
def test_a_refused_field_never_leaves(profile: str) -> None:
    hold(walked(profile), refused)


def effect(cell: Walked) -> None:
    """The client sees what it asked for, whole and streamed."""
    if not cell.cell.refused:
        for exchange in filter(None, (cell.whole, cell.streamed)):
            check_effect(cell.row.profile, cell.feature, cell.row.operation, exchange.answer)


@each_profile
def test_the_client_sees_what_it_asked_for(profile: str) -> None:
    hold(walked(profile), effect)


def asks_once(cell: Walked) -> None:
    """Each prompt is answered as often as the client wants, not less and not more."""
    if not cell.cell.refused and cell.feature in WANTED:
        for exchange in filter(None, (cell.whole, cell.streamed)):
            assert answered(cell, exchange) == WANTED[cell.feature]


@each_profile
def test_each_prompt_is_answered_as_often_as_the_client_wants(profile: str) -> None:
    hold(walked(profile), asks_once)


def _asked(cell: Walked, exchange: Exchange) -> list[bytes]:
    """The requests without the switches of a stream, in any order."""
    requests = [[_kind(cell, sent), _without_switches(sent)] for sent in exchange.sent]
    return sorted(orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in requests)


def _kind(cell: Walked, sent: Sent) -> list[str]:
    """The path, where it does not say itself that a stream is wanted."""
    wire = spoken(cell.row.profile).call(sent.endpoint)
    return [sent.path] if wire is None else [*wire.ends]


def _without_switches(sent: Sent) -> JsonObject:
    return {name: value for name, value in (sent.body or {}).items() if name not in STREAM}


ANSWERED_WHOLE = frozenset({("tgi_native", "echo.logprobs"), ("sagemaker_tgi", "echo.logprobs")})
"""What a vendor has in whole answers only, to a client that streams too."""


def streams_alike(cell: Walked) -> None:
    """Streaming changes the switches of a stream and nothing else of a call."""
    if cell.streamed is not None:
        assert _asked(cell, cell.streamed) == _asked(cell, cell.whole)
        for call in cell.streamed.calls(cell.row.profile):
            wire = spoken(cell.row.profile).call(call.endpoint)
            assert wire is not None
            whole = (cell.row.profile, cell.feature) in ANSWERED_WHOLE
            assert wire.streams(call.endpoint, call.body or {}) is not whole


@each_profile
def test_a_stream_asks_the_vendor_for_the_same(profile: str) -> None:
    hold(walked(profile), streams_alike)


def test_a_walk_that_finds_something_says_where() -> None:
    (cell,) = (each for each in walked("mock") if each.feature == "top_k" and each.row.operation is Operation.CHAT)

    def never(_: Walked) -> None:
        raise AssertionError("no")

    with pytest.raises(pytest.fail.Exception, match=r"^mock/model chat top_k \(native\): no$"):
        hold([cell], never)
