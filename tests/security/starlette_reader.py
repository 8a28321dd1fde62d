"""Reads forms as FastAPI does, with Starlette and python-multipart. It reads JSON lines of a Content-Type and a body,
and writes JSON lines of the parts or the error. It runs in an environment that has both; see `form_readers`."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator

from starlette.datastructures import Headers, UploadFile  # type: ignore[import-not-found]
from starlette.formparsers import MultiPartException, MultiPartParser  # type: ignore[import-not-found]


async def parts(order: dict[str, str]) -> dict[str, object]:
    async def pieces() -> AsyncIterator[bytes]:
        yield base64.b64decode(order["body"])

    found = []
    try:
        form = await MultiPartParser(Headers({"content-type": order["type"]}), pieces()).parse()
    except (MultiPartException, KeyError) as error:
        return {"error": repr(error)}
    for name, value in form.multi_items():
        is_file = isinstance(value, UploadFile)
        content = await value.read() if is_file else value.encode()
        filename = value.filename if is_file else None
        found.append({"name": name, "filename": filename, "content": base64.b64encode(content).decode()})
    return {"parts": found}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(asyncio.run(parts(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
