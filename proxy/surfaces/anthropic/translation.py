"""A request of the Messages API while it is translated into OpenAI's chat shape, and its fields that have no
counterpart in this shape."""

from dataclasses import dataclass, field

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import TranslationLosses
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.surfaces.thinking_envelope import EnvelopeOpener


@dataclass(slots=True)
class Translation:
    """One request during translation.

    `chat` holds its fields in OpenAI's chat shape; `system` and `turns` are the messages of its conversation. `binding`
    maps a field that only Anthropic's own API supports to its description in an error message. `left_out` names dropped
    fields that have no effect on the response. `native_left_out` names the fields that go to no vendor. `instead` maps
    a field to the fields that may replace it. A field that maps to no fields may be dropped. `display` is the requested
    display of reasoning. `unsaid` names fields whose value the client left to the model, so that the translation chose
    a default value. `instructs_later` is true if there are instructions within the conversation, which not every vendor
    accepts. `lacks_address` is true if the address of an image is empty.
    """

    chat: JsonObject = field(default_factory=dict)
    system: list[JsonObject] = field(default_factory=list)
    turns: list[JsonObject] = field(default_factory=list)
    instructs_later: bool = False
    lacks_address: bool = False
    binding: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)
    native_left_out: dict[str, None] = field(default_factory=dict)
    instead: dict[str, JsonObject] = field(default_factory=dict)
    display: str | None = None
    unsaid: set[str] = field(default_factory=set)
    envelopes: EnvelopeOpener = field(default_factory=EnvelopeOpener)

    def bind(self, name: str, part: str = "") -> None:
        """Note a field that only Anthropic's own API supports, or the part of it that `part` names. Only the first such
        part of a field is reported."""
        self.binding.setdefault(name, f"'{name}' with {part}" if part else f"'{name}'")

    def leave_out(self, name: str) -> None:
        """Note a field that is dropped and has no effect on the response."""
        self.left_out[name] = None

    def leave_out_everywhere(self, name: str) -> None:
        """Note a field that goes to no vendor. It is removed even from a body that Anthropic gets without
        translation."""
        self.left_out[name] = self.native_left_out[name] = None

    def losses(self) -> TranslationLosses | None:
        """Return the parts that the translation cannot express; `None` if it expresses everything."""
        if not (self.binding or self.left_out or self.instead or self.instructs_later):
            return None
        return TranslationLosses(
            self.binding,
            tuple(self.left_out),
            self.instead,
            tuple(self.native_left_out),
            self.display,
            frozenset(self.unsaid),
        )


def with_path(bad: Invalid, *loc: str | int) -> Invalid:
    """Return a problem with `loc` before its own path."""
    return Invalid(bad.message, *loc, *bad.loc, code=bad.code)


def kind_of(block: JsonObject, default: str = "") -> str:
    """Return the type of a block or tool, shortened for an error message."""
    kind: JsonValue = block.get("type")
    return kind[:64] if isinstance(kind, str) else default
