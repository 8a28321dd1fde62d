"""Responses, as bytes, that HTTP clients read differently, and responses that vendors really send.

Written after RFC 9110 and 9112 (June 2022) and after the cases of the request smuggling corpus, turned into responses.
"""

from pathlib import Path

from tests.proxy.kit.smuggled_requests import READ, REFUSED

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "tests" / "providers" / "dialects"

OK = b"HTTP/1.1 200 OK\r\n"
FIVE = b"Content-Length: 5\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
HELLO = b"5\r\nhello\r\n"
LAST = b"0\r\n\r\n"


def _chunked(chunks: bytes, fields: bytes = b"") -> bytes:
    return OK + CHUNKED + fields + b"\r\n" + chunks


def _five(fields: bytes) -> bytes:
    return OK + FIVE + fields + b"\r\nhello"


def _status(status: bytes, rest: bytes = b"") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + rest


PLAIN: dict[str, bytes] = {
    "length": _five(b""),
    "chunks": _chunked(HELLO + LAST),
    "many chunks": _chunked(b"1\r\nh\r\n" * 50 + LAST),
    "capital coding": OK + b"TRANSFER-ENCODING: CHUNKED\r\n\r\n" + HELLO + LAST,
    "no framing": OK + b"\r\nhello",
    "no body": OK + b"Content-Length: 0\r\n\r\n",
    "connection close": _five(b"Connection: close\r\n"),
    "connection close among others": _five(b"Connection: x, close\r\n"),
    "connection close in a second field": _five(b"Connection: x\r\nConnection: close\r\n"),
    "connection close in capitals": _five(b"Connection: CLOSE\r\n"),
    "connection close and chunks": _chunked(HELLO + LAST, b"Connection: close\r\n"),
    "proxy-connection close": _five(b"Proxy-Connection: close\r\n"),
    "keep-alive": _five(b"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"),
    "an event stream": _chunked(b"e\r\ndata: [DONE]\n\n\r\n" + LAST, b"Content-Type: text/event-stream\r\n"),
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "HTTP/1.0 with a length": b"HTTP/1.0 200 OK\r\n" + FIVE + b"\r\nhello",
    "HTTP/1.0 that stays": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + FIVE + b"\r\nhello",
    "HTTP/1.0 that stays without a length": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
    "HTTP/1.0 with chunks": b"HTTP/1.0 200 OK\r\n" + CHUNKED + b"\r\n" + HELLO + LAST,
    "HTTP/1.0 with chunks that stays": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
    + CHUNKED
    + b"\r\n"
    + HELLO
    + LAST,
    "more than the answer": _five(b"") + b"more",
    "two answers": _five(b"") * 2,
    "two answers in chunks": _chunked(HELLO + LAST) * 2,
    "two answers, the second of one byte's head": _five(b"") + b"H",
    "line end behind the answer": _five(b"") + b"\r\n",
    "line end behind the chunks": _chunked(HELLO + LAST) + b"\r\n",
    "line end before the answer": b"\r\n" + _five(b""),
    "two line ends before the answer": b"\r\n\r\n" + _five(b""),
    "nothing": b"",
    "half a status line": b"HTTP/1.1 2",
    "half a head": OK + b"Content-Le",
    "half a body": OK + FIVE + b"\r\nhe",
    "half a chunk": _chunked(b"5\r\nhel"),
    "half a chunk size": _chunked(b"5\r\nhello\r\n1"),
    "no last chunk": _chunked(HELLO),
    "half of the last chunk": _chunked(HELLO + b"0\r\n"),
    "all but the last byte": _chunked(HELLO + b"0\r\n\r"),
}

STATUS_LINES: dict[str, bytes] = {
    "100 before": _status(b"100 Continue") + b"\r\n" + _five(b""),
    "103 before": _status(b"103 Early Hints", b"Link: </x>\r\n") + b"\r\n" + _five(b""),
    "three interim": (_status(b"102 Processing") + b"\r\n") * 3 + _five(b""),
    "40 interim": (_status(b"102 Processing") + b"\r\n") * 40 + _five(b""),
    "interim only": _status(b"100 Continue") + b"\r\n",
    "interim with a length": _status(b"103 Early Hints", FIVE) + b"\r\n" + _five(b""),
    "interim in chunks": _status(b"103 Early Hints", CHUNKED) + b"\r\n" + _five(b""),
    "interim that closes": _status(b"103 Early Hints", b"Connection: close\r\n") + b"\r\n" + _five(b""),
    "interim of HTTP/1.0": b"HTTP/1.0 100 Continue\r\n\r\n" + _five(b""),
    "101": _status(b"101 Switching Protocols", b"Connection: upgrade\r\nUpgrade: websocket\r\n") + b"\r\nhello",
    "101 without upgrade": _status(b"101 Switching Protocols") + b"\r\n" + _five(b""),
    "200 that offers an upgrade": _five(b"Connection: upgrade\r\nUpgrade: h2c\r\n"),
    "204": _status(b"204 No Content") + b"\r\n",
    "204 with a length": _status(b"204 No Content", FIVE) + b"\r\n",
    "204 with a body": _status(b"204 No Content", FIVE) + b"\r\nhello",
    "204 with chunks": _status(b"204 No Content", CHUNKED) + b"\r\n" + HELLO + LAST,
    "304": _status(b"304 Not Modified", FIVE) + b"\r\n",
    "304 with a body": _status(b"304 Not Modified", FIVE) + b"\r\nhello",
    "205": _status(b"205 Reset Content", b"Content-Length: 0\r\n") + b"\r\n",
    "error": _status(b"429 Too Many Requests", FIVE + b"Retry-After: 1\r\n") + b"\r\nhello",
    "redirect": _status(b"307 Temporary Redirect", b"Location: http://127.0.0.1:1/\r\n" + FIVE) + b"\r\nhello",
    "status 999": _status(b"999 Odd", FIVE) + b"\r\nhello",
    "status 600": _status(b"600 Odd", FIVE) + b"\r\nhello",
    "status 000": _status(b"000 Odd", FIVE) + b"\r\nhello",
    "status 099": _status(b"099 Odd", FIVE) + b"\r\nhello",
    "two digits": _status(b"20 OK", FIVE) + b"\r\nhello",
    "four digits": _status(b"2000 OK", FIVE) + b"\r\nhello",
    "no status": _status(b" OK", FIVE) + b"\r\nhello",
    "letters for a status": _status(b"2x0 OK", FIVE) + b"\r\nhello",
    "plus before the status": _status(b"+20 OK", FIVE) + b"\r\nhello",
    "no reason": _status(b"200 ", FIVE) + b"\r\nhello",
    "no reason and no space": _status(b"200", FIVE) + b"\r\nhello",
    "two spaces before the status": _status(b" 200 OK", FIVE) + b"\r\nhello",
    "tab before the status": b"HTTP/1.1\t200 OK\r\n" + FIVE + b"\r\nhello",
    "reason in UTF-8": _status("200 Schön".encode(), FIVE) + b"\r\nhello",
    "reason with a NUL": _status(b"200 O\0K", FIVE) + b"\r\nhello",
    "reason with a bare CR": _status(b"200 O\rK", FIVE) + b"\r\nhello",
    "long reason": _status(b"200 " + b"a" * 9_000, FIVE) + b"\r\nhello",
    "HTTP/0.9": b"hello",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\n" + FIVE + b"\r\nhello",
    "HTTP/1.2": b"HTTP/1.2 200 OK\r\n" + FIVE + b"\r\nhello",
    "HTTP/1.10": b"HTTP/1.10 200 OK\r\n" + FIVE + b"\r\nhello",
    "HTTP/0.9 by name": b"HTTP/0.9 200 OK\r\n" + FIVE + b"\r\nhello",
    "small http": b"http/1.1 200 OK\r\n" + FIVE + b"\r\nhello",
    "another protocol": b"ICY 200 OK\r\n" + FIVE + b"\r\nhello",
    "a request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x28",
    "HTTP/2 frames": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
    "JSON": b'{"error": "no http"}\n',
}

FIELDS: dict[str, bytes] = {
    "folded field": _five(b"A: 1\r\n 2\r\n"),
    "folded by a tab": _five(b"A: 1\r\n\t2\r\n"),
    "folded to nothing": _five(b"A:\r\n 2\r\n"),
    "folded length": OK + b"Content-Length:\r\n 5\r\n\r\nhello",
    "folded coding": OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + HELLO + LAST,
    "folded first": OK + b" A: 1\r\n" + FIVE + b"\r\nhello",
    "line feeds only": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "one line feed": _five(b"A: 1\nB: 2\r\n"),
    "line feed at the end of the head": OK + b"Content-Length: 5\r\n\nhello",
    "line feed behind the status line": b"HTTP/1.1 200 OK\n" + FIVE + b"\r\nhello",
    "bare CR in a value": _five(b"A: 1\rB: 2\r\n"),
    "CR twice": _five(b"A: 1\r\r\n"),
    "space before the colon": _five(b"A : 1\r\n"),
    "tab before the colon": _five(b"A\t: 1\r\n"),
    "space before the colon of the length": OK + b"Content-Length : 5\r\n\r\nhello",
    "space before the colon of the coding": OK + b"Transfer-Encoding : chunked\r\n\r\n" + HELLO + LAST,
    "space before a name": OK + FIVE + b" A: 1\r\n\r\nhello",
    "space in a name": _five(b"A B: 1\r\n"),
    "no name": _five(b": 1\r\n"),
    "no colon": _five(b"abc\r\n"),
    "NUL in a value": _five(b"A: 1\x002\r\n"),
    "NUL in a name": _five(b"A\0: 1\r\n"),
    "control character in a value": _five(b"A: 1\x012\r\n"),
    "vertical tab in a value": _five(b"A: 1\x0b2\r\n"),
    "delete in a value": _five(b"A: 1\x7f2\r\n"),
    "tab in a value": _five(b"A: 1\t2\r\n"),
    "UTF-8 in a value": _five("A: schön\r\n".encode()),
    "Latin-1 in a value": _five(b"A: sch\xf6n\r\n"),
    "Latin-1 in a name": _five(b"sch\xf6n: 1\r\n"),
    "brackets in a name": _five(b"a(b): 1\r\n"),
    "empty value": _five(b"A:\r\n"),
    "spaces around a value": _five(b"A: \t 1 \t \r\n"),
    "repeated field": _five(b"A: 1\r\na: 2\r\nA: 3\r\n"),
    "set-cookie twice": _five(b"Set-Cookie: a=b\r\nSet-Cookie: c=d; Path=/\r\n"),
    "two dates": _five(b"Date: Mon, 23 Nov 2026 06:00:00 GMT\r\nDate: x\r\n"),
    "two content types": _five(b"Content-Type: text/plain\r\nContent-Type: text/html\r\n"),
    "two locations": _five(b"Location: /a\r\nLocation: /b\r\n"),
    "two servers": _five(b"Server: a\r\nServer: b\r\n"),
    "two etags": _five(b"ETag: a\r\nETag: b\r\n"),
    "two upgrades": _five(b"Upgrade: a\r\nUpgrade: b\r\n"),
    "two hosts": _five(b"Host: a\r\nHost: b\r\n"),
    "long value": _five(b"A: " + b"a" * 8_000 + b"\r\n"),
    "longer value": _five(b"A: " + b"a" * 8_300 + b"\r\n"),
    "value of 100 KB": _five(b"A: " + b"a" * 100_000 + b"\r\n"),
    "long name": _five(b"a" * 9_000 + b": 1\r\n"),
    "100 fields": _five(b"A: 1\r\n" * 100),
    "127 fields more": _five(b"A: 1\r\n" * 127),
    "128 fields more": _five(b"A: 1\r\n" * 128),
    "1,000 fields": _five(b"A: 1\r\n" * 1_000),
    "a head of 70 KB": _five((b"A: " + b"a" * 7_000 + b"\r\n") * 10),
    "a head without an end": OK + b"A: 1\r\n" * 20_000,
}

FRAMING: dict[str, bytes] = {
    "two lengths": OK + FIVE + b"Content-Length: 4\r\n\r\nhello",
    "two equal lengths": OK + FIVE + FIVE + b"\r\nhello",
    "list of lengths": OK + b"Content-Length: 5, 5\r\n\r\nhello",
    "list of other lengths": OK + b"Content-Length: 5, 4\r\n\r\nhello",
    "negative length": OK + b"Content-Length: -5\r\n\r\nhello",
    "length with a plus": OK + b"Content-Length: +5\r\n\r\nhello",
    "length with zeros": OK + b"Content-Length: 0005\r\n\r\nhello",
    "length with an underscore": OK + b"Content-Length: 1_0\r\n\r\nhellohello",
    "hexadecimal length": OK + b"Content-Length: 0x5\r\n\r\nhello",
    "length in Arabic digits": OK + b"Content-Length: \xd9\xa5\r\n\r\nhello",
    "length with a space": OK + b"Content-Length: 5 5\r\n\r\nhello",
    "length with a space behind": OK + b"Content-Length: 5 \r\n\r\nhello",
    "length with a tab before": OK + b"Content-Length:\t5\r\n\r\nhello",
    "length without space": OK + b"Content-Length:5\r\n\r\nhello",
    "length with a fraction": OK + b"Content-Length: 5.0\r\n\r\nhello",
    "length of no number": OK + b"Content-Length: five\r\n\r\nhello",
    "empty length": OK + b"Content-Length:\r\n\r\nhello",
    "length of 2**63": OK + b"Content-Length: 9223372036854775808\r\n\r\nhello",
    "length of 2**64 - 1": OK + b"Content-Length: 18446744073709551615\r\n\r\nhello",
    "length of 2**64 + 5": OK + b"Content-Length: 18446744073709551621\r\n\r\nhello",
    "length of 100 digits": OK + b"Content-Length: " + b"9" * 100 + b"\r\n\r\nhello",
    "length that is too small": OK + b"Content-Length: 3\r\n\r\nhello",
    "length before chunks": OK + FIVE + CHUNKED + b"\r\n" + HELLO + LAST,
    "chunks before length": OK + CHUNKED + FIVE + b"\r\n" + HELLO + LAST,
    "length and identity": OK + FIVE + b"Transfer-Encoding: identity\r\n\r\nhello",
    "identity": OK + b"Transfer-Encoding: identity\r\n\r\nhello",
    "identity and chunks": OK + b"Transfer-Encoding: identity, chunked\r\n\r\n" + HELLO + LAST,
    "gzip coding": OK + b"Transfer-Encoding: gzip\r\n\r\nhello",
    "gzip in chunks": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + HELLO + LAST,
    "chunks in gzip": OK + b"Transfer-Encoding: chunked, gzip\r\n\r\n" + HELLO + LAST,
    "chunks in chunks": OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + HELLO + LAST,
    "chunks twice": OK + CHUNKED + CHUNKED + b"\r\n" + HELLO + LAST,
    "unknown coding": OK + b"Transfer-Encoding: xchunked\r\n\r\n" + HELLO + LAST,
    "chunkedx": OK + b"Transfer-Encoding: chunkedx\r\n\r\n" + HELLO + LAST,
    "coding with a parameter": OK + b"Transfer-Encoding: chunked;q=1\r\n\r\n" + HELLO + LAST,
    "quoted coding": OK + b'Transfer-Encoding: "chunked"\r\n\r\n' + HELLO + LAST,
    "empty coding": OK + b"Transfer-Encoding:\r\n\r\nhello",
    "comma before chunked": OK + b"Transfer-Encoding: ,chunked\r\n\r\n" + HELLO + LAST,
    "comma behind chunked": OK + b"Transfer-Encoding: chunked,\r\n\r\n" + HELLO + LAST,
    "vertical tab before chunked": OK + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + HELLO + LAST,
    "tab before chunked": OK + b"Transfer-Encoding:\tchunked\r\n\r\n" + HELLO + LAST,
    "space behind chunked": OK + b"Transfer-Encoding: chunked \r\n\r\n" + HELLO + LAST,
    "coding with an underscore": OK + b"Transfer_Encoding: chunked\r\n" + FIVE + b"\r\nhello",
}

CHUNKS: dict[str, bytes] = {
    "capital size": _chunked(b"A\r\n0123456789\r\n" + LAST),
    "size with zeros": _chunked(b"00005\r\nhello\r\n" + LAST),
    "size with many zeros": _chunked(b"0" * 40 + b"5\r\nhello\r\n" + LAST),
    "last with many zeros": _chunked(HELLO + b"0000\r\n\r\n"),
    "negative size": _chunked(b"-5\r\nhello\r\n" + LAST),
    "size with a plus": _chunked(b"+5\r\nhello\r\n" + LAST),
    "size with a prefix": _chunked(b"0x5\r\nhello\r\n" + LAST),
    "size with an underscore": _chunked(b"1_0\r\n" + b"a" * 16 + b"\r\n" + LAST),
    "space before the size": _chunked(b" 5\r\nhello\r\n" + LAST),
    "space behind the size": _chunked(b"5 \r\nhello\r\n" + LAST),
    "tab behind the size": _chunked(b"5\t\r\nhello\r\n" + LAST),
    "no size": _chunked(b"\r\nhello\r\n" + LAST),
    "size of no number": _chunked(b"g\r\nhello\r\n" + LAST),
    "size beyond 64 bits": _chunked(b"10000000000000005\r\nhello\r\n" + LAST),
    "size of 64 bits": _chunked(b"ffffffffffffffff\r\nhello\r\n" + LAST),
    "size of 2**63": _chunked(b"8000000000000000\r\nhello\r\n" + LAST),
    "extension": _chunked(b"5;a=b\r\nhello\r\n" + LAST),
    "extension without a value": _chunked(b"5;a\r\nhello\r\n" + LAST),
    "empty extension": _chunked(b"5;\r\nhello\r\n" + LAST),
    "space before an extension": _chunked(b"5 ;a=b\r\nhello\r\n" + LAST),
    "space in an extension": _chunked(b"5; a = b\r\nhello\r\n" + LAST),
    "quoted extension": _chunked(b'5;a="b;c\\"d"\r\nhello\r\n' + LAST),
    "open quote in an extension": _chunked(b'5;a="b\r\nhello\r\n' + LAST),
    "line feed in an extension": _chunked(b"5;a\nb\r\nhello\r\n" + LAST),
    "CR in an extension": _chunked(b"5;a\rb\r\nhello\r\n" + LAST),
    "long extension": _chunked(b"5;" + b"a" * 10_000 + b"\r\nhello\r\n" + LAST),
    "extension of 100 KB": _chunked(b"5;" + b"a" * 100_000 + b"\r\nhello\r\n" + LAST),
    "extension of the last": _chunked(HELLO + b"0;a=b\r\n\r\n"),
    "chunk that is longer": _chunked(b"5\r\nhelloo\r\n" + LAST),
    "chunk that is shorter": _chunked(b"5\r\nhell\r\n" + LAST),
    "line feeds only between chunks": _chunked(b"5\nhello\n0\n\n"),
    "line feed behind a size": _chunked(b"5\nhello\r\n" + LAST),
    "line feed behind a chunk": _chunked(b"5\r\nhello\n" + LAST),
    "line feed behind the last": _chunked(HELLO + b"0\r\n\n"),
    "CR behind a size": _chunked(b"5\rhello\r\n" + LAST),
    "no line end behind a chunk": _chunked(b"5\r\nhello0\r\n\r\n"),
    "trailer": _chunked(HELLO + b"0\r\nA: 1\r\n\r\n"),
    "trailer with framing": _chunked(HELLO + b"0\r\nContent-Length: 3\r\n\r\n"),
    "trailer with a coding": _chunked(HELLO + b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "trailer that closes": _chunked(HELLO + b"0\r\nConnection: close\r\n\r\n"),
    "trailer without a colon": _chunked(HELLO + b"0\r\nabc\r\n\r\n"),
    "folded trailer": _chunked(HELLO + b"0\r\nA: 1\r\n 2\r\n\r\n"),
    "NUL in a trailer": _chunked(HELLO + b"0\r\nA: \x00\r\n\r\n"),
    "two trailers with one name": _chunked(HELLO + b"0\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n"),
    "100 trailers": _chunked(HELLO + b"0\r\n" + b"A: 1\r\n" * 100 + b"\r\n"),
    "1,000 trailers": _chunked(HELLO + b"0\r\n" + b"A: 1\r\n" * 1_000 + b"\r\n"),
    "5,000 trailers": _chunked(HELLO + b"0\r\n" + b"A: 1\r\n" * 5_000 + b"\r\n"),
    "long trailer": _chunked(HELLO + b"0\r\nA: " + b"a" * 9_000 + b"\r\n\r\n"),
    "trailers without an end": _chunked(HELLO + b"0\r\n" + b"A: 1\r\n" * 100),
}


def _answer_of(request: bytes) -> bytes:
    """Return the request's fields and body under a status line."""
    _, _, rest = request.partition(b"\n")
    return OK + rest


SMUGGLED: dict[str, bytes] = {
    f"smuggled: {name}": _answer_of(request)
    for name, request in {**REFUSED, **{name: bytes_ for name, (bytes_, _, _) in READ.items()}}.items()
}

HAND_WRITTEN: dict[str, bytes] = {**PLAIN, **STATUS_LINES, **FIELDS, **FRAMING, **CHUNKS, **SMUGGLED}


def recorded() -> dict[str, bytes]:
    """Return every response that the dialects' tests have from a vendor, in each of the framings that vendors use."""
    answers = {}
    files = sorted(path for path in FIXTURES.rglob("fixtures/**/*") if path.is_file())
    for number, path in enumerate(files):
        body = path.read_bytes()
        name = str(path.relative_to(FIXTURES))
        if number % 3 == 0:
            answers[name] = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
        elif number % 3 == 1:
            events = body.split(b"\n\n")
            chunks = [b"%x\r\n%s\n\n\r\n" % (len(event) + 2, event) for event in events]
            answers[name] = _chunked(b"".join(chunks) + LAST, b"Content-Type: text/event-stream\r\n")
        else:
            answers[name] = OK + b"Connection: close\r\n\r\n" + body
    return answers
