"""Checks that the installed aiohttp is fit to face a network.

Source: aiohttp's advisories up to November 2026, which `deploy/floors.yaml` lists. Its parser in Python has been laxer
than the compiled one in ways that request smuggling used (CVE-2023-47627, CVE-2024-23829).
"""

import re
from typing import Final

import aiohttp
from aiohttp import http_parser

LEAST_AIOHTTP: Final = (3, 14, 3)


def installed_fault() -> str | None:
    """Return why the installed aiohttp may not serve; None when it may."""
    compiled = http_parser.HttpRequestParser is not http_parser.HttpRequestParserPy
    return http_fault(aiohttp.__version__, compiled)


def http_fault(version: str, compiled: bool) -> str | None:
    """Return why aiohttp of this version, with its compiled parser or without, may not serve; None when it may."""
    least = ".".join(map(str, LEAST_AIOHTTP))
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < LEAST_AIOHTTP:
        return f"aiohttp {version} has known holes; {least} or newer is needed"
    if not compiled:
        return "aiohttp runs without its compiled parser (AIOHTTP_NO_EXTENSIONS, or a build without a compiler)"
    return None
