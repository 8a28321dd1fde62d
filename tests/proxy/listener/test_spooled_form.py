"""Forms in store: kept byte for byte without one field, in memory or on disk, and given out as often as needed."""

import pytest

from proxy.listener.spooled_form import IN_MEMORY, FormUpload, SpooledForm, with_field
from tests.support.looped import looped


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
