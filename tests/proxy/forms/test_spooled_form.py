"""Spooled forms: read, rewritten without one field, held in memory or on disk, and sent as often as needed."""

import pytest

from proxy.errors import GatewayError
from proxy.forms.spooled_form import (
    IN_MEMORY,
    MAX_FIELD,
    MAX_FILE,
    MAX_READ,
    FormUpload,
    SpooledForm,
    read_form,
    with_field,
)
from tests.proxy.kit.arriving_forms import arriving
from tests.support.looped import looped

HEAD = b"--b\r\nContent-Disposition: form-data; name=%b\r\n\r\n%b\r\n"


async def spooled(*parts: tuple[bytes, bytes]) -> SpooledForm:
    body = b"".join([HEAD % part for part in parts]) + b"--b--"
    return await read_form(arriving([body]), "b", "model", lambda _received, _in_memory: None)


async def whole(upload: FormUpload) -> bytes:
    return b"".join([piece async for piece in upload.pieces()])


@looped("size", [0, 10, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY + 7])
async def test_a_form_of_any_size_is_given_out_whole_each_time(size: int) -> None:
    form = SpooledForm("b")
    content = bytes(range(256)) * (size // 256 + 1)
    for start in range(0, size, 60_000):
        await form.append(content[start : min(size, start + 60_000)])
    upload = with_field(form, "model", "m1")
    expected = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm1\r\n' + content[:size]
    assert [await whole(upload), await whole(with_field(form, "model", "m1"))] == [expected, expected]
    assert upload.length == len(expected)
    form.close()


async def test_a_large_form_stays_out_of_memory_and_leaves_no_file_behind() -> None:
    form = SpooledForm("b")
    for _ in range(20):
        await form.append(bytes(IN_MEMORY // 2))
        assert form.in_memory <= IN_MEMORY
    form.close()
    form.close()
    assert form.in_memory == 0
    with pytest.raises(RuntimeError, match="closed"):
        await whole(with_field(form, "model", "m"))


async def test_every_text_of_a_name_is_kept_and_so_are_the_names_of_files() -> None:
    form = await spooled(
        (b"a", b"1"), (b"x;filename=f", b"RIFF\xff"), (b"a", "ü".encode()), (b"model", b"m"), (b"a", b"")
    )
    assert form.fields == {"a": ["1", "ü", ""], "x": "RIFF\ufffd", "model": "m"}
    assert (form.files, form.cut) == ({"x"}, set())
    assert form.content_type == f"multipart/form-data; boundary={form.boundary}"


async def test_each_form_has_a_boundary_of_its_own_that_no_client_knows() -> None:
    first, second = await spooled((b"a", b"1")), await spooled((b"a", b"1"))
    assert first.boundary != second.boundary
    head = b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    own = first.boundary.encode()
    assert await whole(with_field(first, "model", "m")) == head % (own, b"model", b"m") + head % (
        *(own, b"a", b"1"),
    ) + b"--%b--\r\n" % (own)


async def test_what_is_read_of_long_fields_and_files_has_its_limits() -> None:
    long, longer = b"x" * MAX_FIELD, b"x" * (MAX_FIELD + 1)
    form = await spooled((b"a", long), (b"b", longer), (b"f;filename=f", long))
    assert [len(str(form.fields[name])) for name in "abf"] == [MAX_FIELD, MAX_FIELD, MAX_FILE]
    assert form.cut == {"b"}
    many = await spooled(*[(b"a%d" % number, long) for number in range(100)])
    assert sum([len(str(each)) for each in many.fields.values()]) < MAX_READ + 100 * (MAX_FILE + 1)
    assert many.in_memory < IN_MEMORY + MAX_READ + 100 * (MAX_FILE + 1)
    assert len(many.cut) > 90
    many.close()
    assert many.in_memory == 0


@looped(
    ("name", "value", "reason"),
    [
        (b"a", b"\xff", "'a' that is not UTF-8"),
        (b"a", "ü".encode()[:1], "'a' that is not UTF-8"),
        (b"a\r\nContent-Type: text/plain; charset=iso-8859-1", b"\xfc", "'a' that is not UTF-8"),
        (b"a\r\nContent-Type: text/plain; charset=iso-8859-1", "ü".encode(), "'a' that is not UTF-8"),
        (b"_charset_", b"iso-8859-1", "'_charset_' other than"),
        (b"a; name=b", b"", "part 1 has the parameter 'name' twice"),
    ],
)
async def test_what_readers_would_make_other_texts_of_is_refused(name: bytes, value: bytes, reason: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await spooled((name, value))
    assert caught.value.facts.status == 400
    assert reason in caught.value.facts.message


@looped(("name", "value"), [(b"a\r\nContent-Type: text/plain; charset=iso-8859-1", b"u"), (b"_charset_", b"UTF-8")])
async def test_charsets_that_change_nothing_are_taken(name: bytes, value: bytes) -> None:
    assert list((await spooled((name, value))).fields.values()) == [value.decode()]
