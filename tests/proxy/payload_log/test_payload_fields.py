"""The list of fields has every field of an entry, and no other."""

from collections.abc import Mapping

import orjson

from providers.completion import Chunk
from proxy.payload_log.payload_entry import entry_line
from proxy.payload_log.payload_fields import PAYLOAD_FIELDS
from proxy.payload_log.payload_log import entry_of
from proxy.payload_log.request_content import Allowance, LoggedContent
from proxy.telemetry.line_fields import ALWAYS
from proxy.trace_context import Trace
from tests.proxy.telemetry.test_line_fields import KINDS, full_record


def lines() -> list[Mapping[str, object]]:
    record = full_record()
    record.trace = Trace(f"{1:032x}", "", "POST")
    whole, stream = (LoggedContent(Allowance(10**6), b'{"a":"%b"}' % (b"x" * 2000), 1024) for _ in range(2))
    whole.answer = b'{"a":1}'
    stream.add_chunk(Chunk(0, "x"))
    entries = [entry_of(record, whole), entry_of(record, stream)]
    record.key, record.code, record.usage, record.trace = "", None, None, None
    entries += [entries[0].withheld("too long"), entry_of(record, whole)]
    return [orjson.loads(entry_line(entry, [], 1024)) for entry in entries]


def test_the_table_has_every_field_that_is_written_and_no_other() -> None:
    written = lines()
    assert set().union(*written) == {field.name for field in PAYLOAD_FIELDS}
    always = set(written[0]).intersection(*written)
    assert always == {field.name for field in PAYLOAD_FIELDS if field.when == ALWAYS}


def test_values_and_examples_are_of_the_kind_that_the_table_says() -> None:
    for field in PAYLOAD_FIELDS:
        for value in (*(line[field.name] for line in lines() if field.name in line), orjson.loads(field.example)):
            assert isinstance(value, KINDS[field.kind]), field
