"""R24: the properties of the parsers, the limits and the state machines, with many more examples than with every
change."""

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.support.gateway import ROOT
from tests.trust.figure_types import Result
from tests.trust.many_examples import EXAMPLES
from tests.trust.pytest_results import PYTEST, cases_of

PROPERTIES: Final = (
    "tests/config/reading/test_expand_references.py::test_any_text_is_expanded_or_refused_without_showing_a_value",
    "tests/config/reading/test_yaml_tree.py::test_any_text_is_parsed_or_refused_and_never_raises",
    "tests/providers/dialects/platforms/test_google_events.py::test_the_events_are_the_same_whatever_the_pieces",
    "tests/providers/dialects/shared/test_errors.py::test_no_body_raises",
    "tests/providers/dialects/openai/test_read.py::test_no_answer_raises_anything_but_an_upstream_error",
    "tests/providers/framing/test_parse_aws_eventstream.py::test_no_bytes_raise_anything_else",
    "tests/providers/framing/test_parse_aws_eventstream.py::test_what_is_written_is_read_whatever_the_cuts",
    "tests/providers/vendor_text/test_vet_message.py::test_every_message_comes_out_short_and_on_one_line",
    "tests/providers/vendor_text/test_read_retry_after.py::test_no_spelling_of_a_wait_breaks_anything",
    "tests/providers/framing/test_parse_ndjson.py::test_the_same_lines_come_whatever_the_cuts",
    "tests/providers/vendor_text/test_read_retry_after.py::test_no_spelling_raises",
    "tests/providers/framing/test_parse_sse.py::test_no_bytes_make_it_fail",
    "tests/providers/framing/test_parse_sse.py::test_the_same_events_come_whatever_the_cuts",
    "tests/providers/emulation/test_stop_strings.py::test_the_answer_is_that_of_the_whole_text_however_it_is_cut",
    "tests/proxy/surfaces/request/test_parse_json.py::test_no_bytes_raise_anything_but_a_gateway_error",
    "tests/proxy/teams/test_client_keys.py::test_no_header_is_more_than_refused_and_none_is_repeated",
    "tests/proxy/deployment_health/test_deployment_queue.py::test_no_interleaving_takes_too_many_loses_a_place_or_leaves_one_waiting",
    "tests/proxy/deployment_health/test_circuit_breaker_properties.py::test_the_invariants_hold_whatever_happens",
    "tests/proxy/dispatch/test_retry_rules.py::test_a_wait_is_never_shorter_than_asked_for_and_never_much_longer",
    "tests/proxy/teams/test_retry_budget.py::test_no_more_is_ever_spent_than_was_gained",
)

_PASSING: Final = re.compile(r"during generate phase.*?(\d+) passing,", re.DOTALL)


def passing(output: str) -> list[int]:
    """Return the number of passing examples of each property, from the statistics of hypothesis."""
    return [int(found) for found in _PASSING.findall(output)]


def properties(folder: Path) -> Result:
    """Run each property once. Every one must pass, with all of its examples."""
    report = folder / "properties.xml"
    options = ("-p", "tests.trust.many_examples", "-o", "timeout=1200", "--hypothesis-show-statistics")
    command = [*PYTEST, *options, f"--junitxml={report}", *PROPERTIES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    cases, examples = cases_of(report), passing(done.stdout)
    passed = sum(case.state == "passed" for case in cases)
    enough = sum(count >= EXAMPLES for count in examples)
    value = f"{passed} of {len(PROPERTIES)} passed, {enough} of them with {EXAMPLES} examples; {sum(examples)} in all"
    return Result(value, passed == enough == len(PROPERTIES) == len(cases))
