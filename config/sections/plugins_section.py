"""The `plugins` section: the operator's own code that checks requests and responses, or receives the usage of
requests."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, WithJsonSchema

from config.sections.section import Section
from config.sections.value_types import Duration, Referable, key_matching, value_matching

_WORD: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_DOTTED: Final = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
_WORDS: Final = "1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit"

PluginName = Annotated[str, key_matching(_WORD, f"a plugin's name must be {_WORDS}")]
NamedPlugin = Annotated[str, value_matching(_WORD, f"a plugin's name must be {_WORDS}")]
PluginUse = Annotated[
    str,
    value_matching(
        rf"{_DOTTED}:{_DOTTED}|{_WORD}",
        "must be module:Class, as in acme_guards:Redactor, or an entry point of the group dragoman.plugins",
    ),
]
PluginFail = Annotated[Literal["open", "closed"], Referable()]
PluginOptions = Annotated[dict[str, Any], WithJsonSchema({"title": "Options", "type": "object"})]
"""JSON whose meaning only the plugin knows."""

PLUGIN_DEADLINE: Final = 1.0


class PluginSection(Section):
    """A plugin: a guard of requests or responses, or a sink of their usage. See proxy/plugins/README.md."""

    use: PluginUse = Field(
        description="The class: module:Class, importable where the gateway runs, or the name of an entry point of the "
        "group dragoman.plugins."
    )
    options: PluginOptions = Field(
        default_factory=dict, repr=False, description="The arguments of the class, which documents them itself."
    )
    fail: PluginFail = Field(
        default="closed",
        description="The action for a request whose guard raises, or exceeds its deadline: closed refuses it with "
        "503, open accepts it unchecked. It has no effect for a sink, whose rows are dropped then.",
    )
    deadline: Annotated[Duration, Field(gt=0, le=60)] = Field(
        default=PLUGIN_DEADLINE,
        description="How long one check, or the delivery of one batch, may take; 60 s at most.",
    )
