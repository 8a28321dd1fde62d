"""The types of unquoted scalars."""

from hypothesis import given
from hypothesis import strategies as st

from config.reading.yaml_scalars import Kind, Scalar, plain_kind, reread, scalar_value, tagged_kind
from tests.support.looped import looped


@looped(
    ("word", "kind", "value"),
    [
        ("hello", "text", "hello"),
        ("", "null", None),
        ("~", "null", None),
        ("null", "null", None),
        ("true", "bool", True),
        ("no", "bool", False),
        ("NO", "bool", False),
        ("Off", "bool", False),
        ("y", "text", "y"),
        ("8080", "int", 8080),
        ("-3", "int", -3),
        ("0", "int", 0),
        ("1.5", "float", 1.5),
        (".5", "float", 0.5),
        ("1.0e+3", "float", 1000.0),
        ("1e3", "text", "1e3"),
        ("017", "odd", "017"),
        ("0o17", "text", "0o17"),
        ("0x1f", "odd", "0x1f"),
        ("0b11", "odd", "0b11"),
        ("1_000", "odd", "1_000"),
        ("12:30", "odd", "12:30"),
        ("12:30:45.5", "odd", "12:30:45.5"),
        (".inf", "odd", ".inf"),
        (".nan", "odd", ".nan"),
        ("9" * 5000, "odd", "9" * 5000),
        ("2024-10-21", "text", "2024-10-21"),
        ("2001-12-14t21:59:43.10-05:00", "text", "2001-12-14t21:59:43.10-05:00"),
        ("<<", "text", "<<"),
        ("=", "text", "="),
    ],
)
def test_an_unquoted_word_reads_as_yaml_reads_it_or_as_odd(word: str, kind: Kind, value: Scalar) -> None:
    assert plain_kind(word) == kind
    read = scalar_value(plain_kind(word), word)
    assert (read, type(read)) == (value, type(value))


def test_a_tag_says_how_a_word_reads() -> None:
    assert tagged_kind("tag:yaml.org,2002:str", "017") == "text"
    assert tagged_kind("tag:yaml.org,2002:int", "12") == "int"
    assert tagged_kind("tag:yaml.org,2002:int", "twelve") == "odd"
    assert tagged_kind("tag:yaml.org,2002:bool", "perhaps") == "odd"
    assert tagged_kind("!python/object", "x") is None


@given(st.text())
def test_any_text_reads_as_something(text: str) -> None:
    assert isinstance(reread(text), str | int | float | bool | None)


@given(st.integers(-(10**17), 10**17))
def test_a_decimal_number_reads_as_itself(number: int) -> None:
    assert reread(f" {number}\n") == number
