"""Settings of the C library's allocator. They do not affect Python's own small objects."""

import ctypes
from typing import Final

LARGE_BUFFER: Final = 2**22
"""Buffers of this many bytes or more are mapped separately, so that they leave the process when they are freed. The
value is above the size of most bodies, the 256 KiB that asyncio allocates for every read, and the 12 bytes that orjson
takes for each byte of a text of 320 KiB. Each newly mapped page of 4 KiB costs 0.5 to 2.6 us in a virtual machine, as
much as parsing the JSON in this page."""

SPARE_HEAP: Final = 2**24
"""Free bytes that may stay at the end of the heap. They hold the buffers of a request of 3 MB, and are reused for the
next request."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""The numbers of the parameters in glibc's malloc.h."""


def return_large_buffers() -> bool:
    """Return buffers of LARGE_BUFFER bytes and more to the system as soon as they are freed. Return False if the C
    library has no such setting.

    glibc raises its limit (128 KiB) to the size of each larger buffer that is freed, up to 32 MiB. After one request
    body of 24 MiB, all bodies lie among small objects, and 160 MB stay allocated (measured in November 2026 with glibc
    2.36).

    All threads share one heap. If each thread had its own heap, the memory of a request that passes through two threads
    would be in three heaps, and none of it would be in the processor's caches for the next request.

    Up to SPARE_HEAP bytes stay free at the end of the heap; the default is 128 KiB. If the 256 KiB for a read are at
    the end of the heap, the default makes each read extend and shrink the heap again, and take 10 us in place of 3.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        return False
    settings = (_M_MMAP_THRESHOLD, LARGE_BUFFER), (_M_TRIM_THRESHOLD, SPARE_HEAP), (_M_ARENA_MAX, 1)
    return all(libc.mallopt(*setting) == 1 for setting in settings)
