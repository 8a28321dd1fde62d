"""The form of log lines: JSON that is one line for every reader, and times in UTC."""

import json
import re

from proxy.telemetry.log_format import json_line, timestamp
from tests.proxy.kit.odd_texts import ODD
from tests.support.looped import looped


@looped("odd", ODD)
def test_json_is_one_line_of_printable_ascii_whatever_it_holds(odd: str) -> None:
    line = json_line({"key": odd}).decode("ascii")
    assert line.isprintable()
    assert json.loads(line) == {"key": odd}


def test_times_are_utc_with_milliseconds() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", timestamp())
    assert timestamp(1.5) == "1970-01-01T00:00:01.500Z"
