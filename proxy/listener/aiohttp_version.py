"""Checks that the installed aiohttp is safe to use on a network.

Source: aiohttp's advisories up to November 2026, which `deploy/floors.yaml` lists. Its parser in Python has accepted
more than the compiled one, which request smuggling exploited (CVE-2023-47627, CVE-2024-23829).
"""

import re
from typing import Final

import aiohttp
from aiohttp import http_parser

LEAST_AIOHTTP: Final = (3, 14, 3)


def installed_fault() -> str | None:
    """Return why the installed aiohttp must not be used; `None` if it may be used."""
    compiled = http_parser.HttpRequestParser is not http_parser.HttpRequestParserPy
    return http_fault(aiohttp.__version__, compiled)


def http_fault(version: str, compiled: bool) -> str | None:
    """Return why aiohttp of this version, with or without its `compiled` parser, must not be used; `None` if it may be
    used."""
    least = ".".join(map(str, LEAST_AIOHTTP))
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < LEAST_AIOHTTP:
        return f"aiohttp {version} has known holes; {least} or newer is needed"
    if not compiled:
        return "aiohttp runs without its compiled parser (AIOHTTP_NO_EXTENSIONS, or a build without a compiler)"
    return None
