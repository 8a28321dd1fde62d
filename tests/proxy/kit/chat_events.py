"""Events of the OpenAI family's streams, as vendors send them and as no vendor should."""

import itertools
from collections.abc import Sequence


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the data in chunks that end at these positions."""
    ends = sorted({place % len(data) for place in places} - {0}) if data else []
    return [data[start:end] for start, end in itertools.pairwise([0, *ends, len(data)]) if start < end]


HEAD = b'{"id":"c-1","object":"chat.completion.chunk","created":1795000000,"model":"tiny"'
DONE = b"data: [DONE]\n\n"
USAGE = b'data: %b,"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}\n\n' % HEAD


def event(choice: bytes, after: bytes = b"", head: bytes = HEAD) -> bytes:
    return b'data: %b,"choices":[%b]%b}\n\n' % (head, choice, after)


def chat(text: bytes, after: bytes = b"", head: bytes = HEAD) -> bytes:
    """Return an event of a chat with this literal as its text."""
    return event(b'{"index":0,"delta":{"content":%b},"logprobs":null,"finish_reason":null}' % text, after, head)


def completion(text: bytes, after: bytes = b"", head: bytes = HEAD) -> bytes:
    return event(b'{"index":0,"text":%b,"logprobs":null,"finish_reason":null}' % text, after, head)


def beside(members: bytes, text: bytes = b'"a"', after: bytes = b"") -> bytes:
    """Return an event of a chat whose delta has further fields."""
    choice = b'{"index":0,"delta":{%b,"content":%b},"logprobs":null,"finish_reason":null}' % (members, text)
    return event(choice, after)


OWN = b',"x_groq":{"id":"r"}'
BESIDE = b"refusal reasoning reasoning_content tool_calls function_call annotations audio x".split()
"""Fields of a delta that vendors send empty beside the text, and two that are never read."""

CALL_OF_NONE = event(b'{"index":0,"delta":{"tool_calls":[]},"finish_reason":null}')


def thought(text: bytes, name: bytes = b"reasoning_content", more: bytes = b"", after: bytes = b"") -> bytes:
    """Return an event of a chat with this literal as its reasoning."""
    return event(b'{"index":0,"delta":{"%b":%b%b},"logprobs":null,"finish_reason":null}' % (name, text, more), after)


def argued(text: bytes, number: int = 0, call: bytes = b"", function: bytes = b"", more: bytes = b"") -> bytes:
    """Return an event of a chat with this literal as a delta of a call's arguments."""
    made = b'{"index":%d%b,"function":{"arguments":%b%b}}' % (number, call, text, function)
    return event(b'{"index":0,"delta":{"tool_calls":[%b]%b},"logprobs":null,"finish_reason":null}' % (made, more))


CALLED = b',"id":"t%d","type":"function"'
OPENED = argued(b'""', 0, CALLED % 0, b',"name":"f"')
ALSO_OPENED = argued(b'""', 1, CALLED % 1, b',"name":"g"')
OTHERS = (
    *(OPENED, ALSO_OPENED, argued(b'"{}"', 0, CALLED % 2, b',"name":"f"')),
    *(argued(b'"a"', 0, CALLED % 0), argued(b'"a"', 0, b',"id":"","type":null'), argued(b'"a"', 0, b',"x":1')),
    *(argued(b'"a"', 0, b',"custom":null'), argued(b'"a"', 0, function=b',"name":null'), argued(b'"a"', 7)),
    *(argued(b'"a"', 0, function=b',"name":"f"'), argued(b'"a"', 0, function=b',"x":1'), argued(b'{"a":1}')),
    *(
        argued(b'"a"', more=b',"content":null'),
        argued(b'"a"', more=b',"content":"b"'),
        argued(b'"a"', more=b',"x":"y"'),
    ),
    *(argued(b'"a"', more=b',"reasoning":"b"'), argued(b'"a"').replace(b"null,", b'{"content":[]},'), CALL_OF_NONE),
    *(argued(b'"a"', 0, b',"index":0'), argued(b'"a"', 0, function=b',"arguments":"b"'), thought(b'"a"', b"reasoning")),
    *(thought(b'"a"', more=b',"content":%b' % held) for held in (b"null", b'""', b'"b"', b"[]")),
    *(thought(b'"a"', more=b',"reasoning":%b' % held) for held in (b"null", b'""', b'"b"', b'"a"')),
    *(thought(b'"a"', more=b',"role":"assistant"'), thought(b'"a"', more=b',"x":"y"'), thought(b'["a"]')),
    *(thought(b'"a"', more=b',"tool_calls":null,"refusal":null'), thought(b'"a"').replace(b"},", b'},"text":"b",', 1)),
    *(thought(b'"a"', more=b',"reasoning_details":[{"type":"reasoning.text","text":"a"}]'), thought(b'"the mark of"')),
)
"""Reasoning and calls, some beside other fields."""

ROLE = event(b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}')
STOP = event(b'{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}')
STOP_TEXT = event(b'{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}')

LITERALS = (
    *(b'"a"', b'" sky"', b'"\\n\\n"', b'"\\""', b'"\\\\"', b'"ends in \\\\"', b'"\\u0041"', b'"\\u0000"', b'"\\/"'),
    *(b'"\\ud83d\\ude00"', b'"\\ud83d"', b'"\\ude00\\ud83d"', b'"\\u2028"', b'"\\x"', b'"\\u12"', b'"\x7f"', b'"\t"'),
    *('"天空"'.encode(), '"é😀\u2028"'.encode(), b'"\xff"', b'"\xe5\xa4"', b'"\xed\xa0\xbd"', b'""', b"null", b"7"),
    *(b'"a\\', b'"a', b'"a"b"', b'"a\nb"', b'"a\n\nb"', b'"a\rb"', b'"a","content":"b"', b'"a"},"x":{"y":"z"'),
    *(b'"data: {"', b'"[DONE]"', b'"%b"' % (b"x" * 9000), b'"%b"' % (b"{[" * 300), b'["a"]', b'{"a":"b"}'),
    *(b'"\\"},\\"finish_reason\\":\\"stop\\"', b'"the mark of a hole"', b'" a "', b' "a" ', b'"a" ', b'"\x00"'),
)
"""JSON literals of texts. Some end at another position or are no valid literal."""

ODD = (
    *(ROLE, STOP, USAGE, DONE, b": comment\n\n", b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b"event: x\n", b"data:\n\n"),
    *(chat(b'"a"').replace(b"data: ", b"data:"), chat(b'"a"').replace(b"\n", b"\r\n"), chat(b'"a"')[:-1]),
    *(chat(b'"a"').replace(b"\n", b"\r"), chat(b'"a"').replace(b"data: ", b"data:  "), chat(b'"a"')[:-2]),
    *(chat(b'"a"').replace(b"data: ", b"event: message\ndata: "), chat(b'"a"').replace(b'"a"', b'"a",\ndata: "x":1')),
    *(chat(b'"a"').replace(b'"index":0', b'"index":1'), chat(b'"a"').replace(b'"index":0', b'"index": 0')),
    *(chat(b'"a"').replace(b'"finish_reason":null', b'"finish_reason":"length"'), chat(b'"a"', b',"error":"x"')),
    *(chat(b'"a"', b',"usage":null'), chat(b'"a"', b',"usage":{"prompt_tokens":1,"completion_tokens":2}')),
    *(chat(b'"a"', b',"system_fingerprint":"f1"'), chat(b'"b"', b',"system_fingerprint":"f2"')),
    *(chat(b'"a"', b',"service_tier":"flex"'), chat(b'"b"', b',"service_tier":"default"'), chat(b'"b"', b',"x":"y"')),
    *(chat(b'"a"', b',"obfuscation":"p"'), chat(b'"bc"', b',"obfuscation":"pqr"'), chat(b'"d"', b',"obfuscation":""')),
    *(chat(b'"a"', b',"obfuscation":"\\u0041"'), chat(b'"a"', b',"obfuscation":"\xff"'), chat(b'"a"', b',"id":"two"')),
    *(chat(b'"a"', b',"obfuscation":%b' % held) for held in (b'"x\\"', b"7", b'"\x01"', b'"\\x"', b'"a\\"}"')),
    *(chat(b'"a"', head=HEAD.replace(b"c-1", b"c-%d" % number)) for number in (2, 3, 4)),
    *(chat(b'"a"', head=HEAD.replace(b"1795", stamp)) for stamp in (b"1796", b"01797", b"-1797", b"1.5e", b"9" * 400)),
    *(chat(b'"a"', head=HEAD.replace(b'"c-1"', name)) for name in (b"null", b"7", b'"c-1","id":"c-2"', b'"\\ud83d"')),
    event(b'{"index":0,"delta":{"content":"a","content":"b"},"logprobs":null,"finish_reason":null}'),
    *(beside(b'"role":"assistant"'), beside(b'"role":null,"tool_calls":null'), beside(b'"role":{"content":"b"}')),
    *(beside(b'"%b":%b' % (name, held)) for name in BESIDE for held in (b"null", b'""', b"[]", b"{}", b"0", b'"b"')),
    *(beside(b'"%b":%b' % (name, held)) for name in (b"tool_calls", b"content") for held in (b"[{}]", b"{7:7}", b"7")),
    *(beside(b'"x%d":null,' % number * 20 + b'"role":"assistant"') for number in (1, 2)),
    event(b'{"index":0,"delta":{"reasoning_content":"a"},"logprobs":null,"finish_reason":null}'),
    event(b'{"index":0,"delta":{"content":[{"type":"tool_reference","url":"u"}]},"finish_reason":null}'),
    event(b'{"index":0,"delta":{"content":"a"},"logprobs":{"content":[]},"finish_reason":null}'),
    event(b'{"index":0,"delta":{"content":"a"},"text":"b","logprobs":null,"finish_reason":null}'),
    event(b'{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":""}}]}}'),
    *OTHERS,
    *(completion(b'"a"'), completion(b'" b"'), STOP_TEXT, b'data: {"error":{"message":"no"}}\n\n'),
    event(b'{"index":0,"delta":null,"text":"a","finish_reason":null}'),
    event(b'{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}'),
)

BEGIN = ROLE + chat(b'"He"') + chat(b'"llo"')
LONG = BEGIN + chat(b'" sky"') * 20
PADDED = BEGIN + b"".join([chat(b'" sky"', b',"obfuscation":"%b"' % (b"x" * number)) for number in range(1, 5)])
RENAMED = BEGIN + b"".join([chat(b'"x"', head=HEAD.replace(b"c-1", b"c-%d" % number)) for number in range(4)])
THINKING = ROLE + thought(b'"Hm"') * 4
CALLING = ROLE + OPENED + argued(b'"{"') * 3
BEGUN = (ROLE, BEGIN, LONG, PADDED, RENAMED, THINKING, CALLING)
END = STOP + USAGE + DONE
