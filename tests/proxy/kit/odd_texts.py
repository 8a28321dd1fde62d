"""Texts that could break a log line: line ends of all kinds, controls, quotes and lone surrogates."""

ODD = ["\udcff", "a\nb", "a\x1b[31mb", 'quote"', "\u2028", "\u2029", "\x85", "\x7f", "ü", "\0", "\u202e",
       '\r\n{"level":"error"}', "\v", "\x1c"]  # fmt: skip
