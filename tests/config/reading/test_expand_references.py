"""References to variables and files in values."""

import string

from hypothesis import given
from hypothesis import strategies as st

from config.reading.expand_references import Expansion, expand, has_reference
from config.reading.table_files import UnreadableError
from tests.support.looped import looped

ENV = {"A": "alpha", "EMPTY": "", "TRICK": "${A} $${A} #: {[", "BAD": "\udcff"}


def read_file(path: str) -> str:
    if path != "/run/secrets/key":
        raise UnreadableError("No such file or directory")
    return "from file"


def expanded(text: str) -> Expansion:
    return expand(text, ENV, read_file)


@looped(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("$A $ $$ {A} }", "$A $ $$ {A} }"),
        ("${A}", "alpha"),
        ("x-${A}-${A}-y", "x-alpha-alpha-y"),
        ("${EMPTY}", ""),
        ("${A:-other}", "alpha"),
        ("${EMPTY:-other}", "other"),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b:?c d\n}", "a:-b:?c d\n"),
        ("${A:?needed}", "alpha"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${A}${A}", "${A}alpha"),
        ("${file:/run/secrets/key}", "from file"),
        ("${TRICK}", "${A} $${A} #: {["),
    ],
)
def test_a_reference_is_replaced_once(text: str, result: str) -> None:
    assert (expanded(text).text, expanded(text).faults) == (result, ())


FORMS = "a reference is written ${VAR}, ${VAR:-default}, ${VAR:?message} or ${file:PATH}; write $${ for the characters"


@looped(
    ("text", "fault"),
    [
        ("${NONE}", "the environment variable NONE is not set"),
        ("${NONE:?set it}", "the environment variable NONE is not set: set it"),
        ("${EMPTY:?}", "the environment variable EMPTY is not set"),
        ("${BAD}", "the environment variable BAD is not UTF-8"),
        ("${file:/missing}", "cannot read the file /missing: No such file or directory"),
        ("${file:}", "a reference without a path; it is written ${VAR}"),
        ("${A", "a ${ without its }"),
        ("${A:-{}}", "a ${ without its }"),
        ("${}", FORMS),
        ("${A-b}", FORMS),
        ("${1A}", FORMS),
        ("${A B}", FORMS),
        ("${sk-live-1234}", FORMS),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_fault(text: str, fault: str) -> None:
    (told,) = expanded(text).faults
    assert told.startswith(fault)
    assert "1234" not in told


def test_every_fault_of_a_value_is_reported() -> None:
    assert len(expanded("${NONE}/${ALSO_NONE}/${A}").faults) == 2


@looped(
    ("text", "by_reference"),
    [
        ("x", False),
        ("$${A}", False),
        ("${A}", True),
        ("x${A}", True),
        ("${A:-}", True),
        ("${N:-}", True),
        ("${N:-x}", False),
    ],
)
def test_a_default_that_is_used_counts_as_written_in_the_table(text: str, by_reference: bool) -> None:
    assert expanded(text).by_reference is by_reference


@given(st.text())
def test_text_without_a_reference_stays_as_it_is(text: str) -> None:
    if not has_reference(text):
        assert expanded(text) == Expansion(text, (), by_reference=False)


@given(st.text(alphabet=st.sampled_from("${}:-?fileAN $")))
def test_any_text_is_expanded_or_refused_without_showing_a_value(text: str) -> None:
    assert not any(value in fault for fault in expanded(text).faults for value in ("alpha", "from file"))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(alphabet=string.ascii_letters, min_size=1))
def test_what_a_variable_holds_is_taken_as_it_is(value: str, name: str) -> None:
    assert expand(f"<${{{name}}}>", {name: value}, read_file).text == f"<{value}>"


@given(st.lists(st.sampled_from(["a", "$", "{", "}", "$${", ":"])))
def test_escaped_text_comes_back(parts: list[str]) -> None:
    text = "".join(parts).replace("${", "").replace("$$", "")
    assert expanded(text.replace("{", "$${")).text == text.replace("{", "${")
