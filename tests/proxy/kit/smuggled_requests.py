"""Requests, as bytes, that servers read differently: the refused ones, and the accepted ones with their reading.

Written after RFC 9112 (June 2022) and the known cases of request smuggling. Each is one request, behind which another
one is sent on the same connection.
"""

POST = b"POST /x HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /x HTTP/1.1\r\nHost: x\r\n"
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"

REFUSED: dict[str, bytes] = {
    # Versions and request lines.
    "HTTP/0.9 by name": b"GET /x HTTP/0.9\r\nHost: x\r\n\r\n",
    "HTTP/0.9 by form": b"GET /x\r\n\r\n",
    "HTTP/1.2": b"GET /x HTTP/1.2\r\nHost: x\r\n\r\n",
    "HTTP/1.10": b"GET /x HTTP/1.10\r\nHost: x\r\n\r\n",
    "HTTP/2.0": b"GET /x HTTP/2.0\r\nHost: x\r\n\r\n",
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "small http": b"GET /x http/1.1\r\nHost: x\r\n\r\n",
    "odd method": b"G@T /x HTTP/1.1\r\nHost: x\r\n\r\n",
    "small method": b"get /x HTTP/1.1\r\nHost: x\r\n\r\n",
    "tab in the target": b"GET /x\ty HTTP/1.1\r\nHost: x\r\n\r\n",
    "Latin-1 in the target": b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "fragment": b"GET /x#y HTTP/1.1\r\nHost: x\r\n\r\n",
    "target without a slash": b"GET x HTTP/1.1\r\nHost: x\r\n\r\n",
    # Targets and hosts.
    "another host in the target": b"GET http://evil/x HTTP/1.1\r\nHost: x\r\n\r\n",
    "another port in the target": b"GET http://x:81/x HTTP/1.1\r\nHost: x\r\n\r\n",
    "user in the target": b"GET http://x@evil/x HTTP/1.1\r\nHost: x\r\n\r\n",
    "another scheme in the target": b"GET ftp://x/x HTTP/1.1\r\nHost: x\r\n\r\n",
    "tunnel": b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "no host": b"GET /x HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: y\r\n\r\n",
    "one host twice": GET + b"Host: x\r\n\r\n",
    # Header lines.
    "folded line": POST + b"A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n",
    "folded framing": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + END,
    "space before the colon": POST + b"Content-Length : 0\r\n\r\n",
    "space before the name": b"GET /x HTTP/1.1\r\n Host: x\r\n\r\n",
    "no name": GET + b": 1\r\n\r\n",
    "no colon": GET + b"abc\r\n\r\n",
    "Latin-1 in a name": GET + b"A\xe9: b\r\n\r\n",
    "vertical tab in a value": GET + b"A: b\x0b\r\n\r\n",
    "NUL in a value": GET + b"A: \x00\r\n\r\n",
    "line feeds only": b"GET /x HTTP/1.1\nHost: x\n\n",
    "one line feed": b"GET /x HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "carriage return in a value": b"GET /x HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
    # Lengths.
    "length with a plus": POST + b"Content-Length: +2\r\n\r\nab",
    "negative length": POST + b"Content-Length: -1\r\n\r\n",
    "hexadecimal length": POST + b"Content-Length: 0x2\r\n\r\nab",
    "length with an underscore": POST + b"Content-Length: 1_0\r\n\r\nab",
    "length with a space": POST + b"Content-Length: 1 2\r\n\r\nab",
    "no length": POST + b"Content-Length: \r\n\r\n",
    "length beyond 64 bits": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "list of lengths": POST + b"Content-Length: 2, 2\r\n\r\nab",
    "two equal lengths": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nab",
    # Codings.
    "length before chunks": POST + b"Content-Length: 4\r\n" + CHUNKS + END,
    "chunks before length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + END,
    "length and no coding": POST + b"Content-Length: 4\r\nTransfer-Encoding: identity\r\n\r\nabcd",
    "gzip": POST + b"Transfer-Encoding: gzip\r\n\r\n",
    "gzip in chunks": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + END,
    "chunks in gzip": POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n" + END,
    "chunks in chunks": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + END,
    "chunks twice": POST + b"Transfer-Encoding: chunked\r\n" + CHUNKS + END,
    "no coding": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n",
    "coding with a parameter": POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n" + END,
    "vertical tab before a coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + END,
    "quoted coding": POST + b'Transfer-Encoding: "chunked"\r\n\r\n' + END,
    "chunks in HTTP/1.0": b"POST /x HTTP/1.0\r\nHost: x\r\n" + CHUNKS + END,
    # Chunks.
    "negative chunk": POST + CHUNKS + b"-1\r\nx\r\n" + END,
    "chunk with a prefix": POST + CHUNKS + b"0x1\r\nx\r\n" + END,
    "chunk with an underscore": POST + CHUNKS + b"1_0\r\nx\r\n" + END,
    "chunk beyond 64 bits": POST + CHUNKS + b"10000000000000000\r\nx\r\n" + END,
    "chunk with a space": POST + CHUNKS + b"1 \r\nx\r\n" + END,
    "chunk longer than it says": POST + CHUNKS + b"1\r\nxx" + END,
    "chunks between line feeds": POST + CHUNKS + b"1\nx\n0\n\n",
    "line feed in an extension": POST + CHUNKS + b"1;a\nb\r\nx\r\n" + END,
    "framing in a trailer": POST + CHUNKS + b"0\r\nContent-Length: 5\r\n\r\n",
    "trailer without a colon": POST + CHUNKS + b"0\r\nbad trailer\r\n\r\n",
}
"""Each gets a 400 or no response at all, and the bytes behind it are not read."""

READ: dict[str, tuple[bytes, str, bytes]] = {
    "its own host in the target": (b"GET http://X/x HTTP/1.1\r\nHost: x\r\n\r\n", "/x", b""),
    "the server itself": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "*", b""),
    "lines before the request": (b"\r\n\r\n" + GET + b"\r\n", "/x", b""),
    "two spaces": (b"GET  /x HTTP/1.1\r\nHost: x\r\n\r\n", "/x", b""),
    "two slashes": (b"GET //evil/x HTTP/1.1\r\nHost: x\r\n\r\n", "//evil/x", b""),
    "dots": (b"GET /%2e%2e/x HTTP/1.1\r\nHost: x\r\n\r\n", "/../x", b""),
    "tab before a value": (POST + b"Content-Length:\t2\r\n\r\nab", "/x", b"ab"),
    "length with a zero before": (POST + b"Content-Length: 02\r\n\r\nab", "/x", b"ab"),
    "a body where none is usual": (GET + b"Content-Length: 3\r\n\r\nabc", "/x", b"abc"),
    "capital coding": (POST + b"Transfer-Encoding: CHUNKED\r\n\r\n" + END, "/x", b""),
    "long extension": (POST + CHUNKS + b"1;" + b"a" * 10_000 + b"\r\nx\r\n" + END, "/x", b"x"),
    "unknown expectation": (POST + b"Expect: 200-ok\r\nContent-Length: 0\r\n\r\n", "/x", b""),
}
"""Each with the path and the body that are read; the bytes behind it are a request of their own."""

OFFERS: dict[str, bytes] = {
    "h2c": POST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
    "websocket": POST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
}
"""Each lacks a body `abc` in either framing; it is read, and its connection closed."""
