"""A reader of the grammars that the gateway writes. It raises AssertionError for any other form, and does not use the
code under test."""

import re

_TOKEN = re.compile(
    r'"(?P<literal>(?:[^"\\\n]|\\.)*)"|\[(?P<class>(?:[^\[\]\\\n]|\\.)+)\]'
    r"|(?P<name>[a-z][a-z0-9-]*)|(?P<mark>[()|?+])| "
)
_ESCAPE = re.compile(r"\\(?:(?P<letter>[nrt\"\\])|x(?P<x>[0-9A-F]{2})|u(?P<u>[0-9A-F]{4})|U(?P<U>[0-9A-F]{8}))")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def rules_of(grammar: str) -> dict[str, str]:
    """Return the bodies of the rules by name. Assert one rule a line, no duplicates, and `root` first."""
    lines = [re.fullmatch(r"([a-z][a-z0-9-]*) ::= (.+)", line) for line in grammar.split("\n")]
    found = [(line[1], line[2]) for line in lines if line is not None]
    assert len(found) == len(lines) == len(dict(found)), grammar
    assert found[0][0] == "root"
    return dict(found)


def unescaped(text: str) -> str:
    """Return the characters of a literal or a class. Assert that every backslash begins an escape that both engines
    know."""
    assert "\\" not in _ESCAPE.sub("", text), text
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    if match["letter"]:
        return _LETTERS.get(match["letter"], match["letter"])
    return chr(int(match["x"] or match["u"] or match["U"], 16))


def as_expression(grammar: str) -> re.Pattern[str]:
    """Return the same language as a Python regular expression. Assert that no rule leads back to itself."""
    rules = rules_of(grammar)
    return re.compile(_body(rules, "root", frozenset()))


def _body(rules: dict[str, str], name: str, above: frozenset[str]) -> str:
    assert name not in above, f"{name} leads back to itself"
    body, at, out = rules[name], 0, []
    while at < len(body):
        token = _TOKEN.match(body, at)
        assert token is not None, body[at:]
        at = token.end()
        if token["literal"] is not None:
            out.append(f"(?:{re.escape(unescaped(token['literal']))})")
        elif token["class"]:
            out.append(f"[{_ESCAPE.sub(_in_class, token['class'])}]")
        elif token["name"]:
            out.append(f"(?:{_body(rules, token['name'], above | {name})})")
        else:
            out.append("(?:" if token["mark"] == "(" else token["mark"] or "")
    return "".join(out)


def _in_class(match: re.Match[str]) -> str:
    return f"\\U{ord(_character(match)):08X}"
