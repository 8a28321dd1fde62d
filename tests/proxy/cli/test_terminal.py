"""Colours are used on terminals unless they are switched off."""

import io
from typing import TextIO

from proxy.cli.terminal import FAILED, CommandError, Style, paint, shows_colour
from tests.support.looped import looped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@looped(
    ("stream", "env", "colourful"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_need_a_terminal_and_no_refusal(stream: TextIO, env: dict[str, str], colourful: bool) -> None:
    assert shows_colour(stream, env) is colourful


def test_painted_text_ends_in_the_plain_style_and_unpainted_is_the_text() -> None:
    assert paint("ok", Style.GREEN, Terminal(), {}) == "\x1b[32mok\x1b[0m"
    assert paint("ok", Style.GREEN, io.StringIO(), {}) == "ok"


def test_a_command_error_means_no_unless_it_says_otherwise() -> None:
    assert CommandError("no").status == FAILED
