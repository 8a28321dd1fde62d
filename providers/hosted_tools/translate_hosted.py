"""Writes hosted tools in the target's own form, from the form of any API.

A tool is binding: a tool that the target does not have is refused, and so are domains of a search that the target
cannot honour. Any other setting that the target does not have is left out, and reported to the client.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from providers.capabilities import NATIVE, Cell, emulated, refused
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.hosted_tools.hosted_forms import FORMS, HostedForm
from providers.hosted_tools.hosted_tool import (
    ALLOWED,
    BLOCKED,
    CONTEXT,
    LOCATION,
    HostedTool,
    hosted_tool,
    search_of_options,
)
from providers.json_types import JsonObject, JsonValue, merged
from providers.profile import HostedKind, HostedStyle, Profile
from providers.request_fields import SEARCH
from providers.target import Target
from providers.unified_request import Params, UnifiedRequest

_WORDS: Final = {"web_search": "web search", "web_fetch": "fetching of pages", "code_execution": "running of code"}
_DOMAINS: Final = (ALLOWED, BLOCKED)
_CHOICE: Final = "tool_choice"
_TIMEZONE: Final = "timezone"
"""A part of the user's location that vendors with the location form `bare` do not have."""

_OPENAI_FIELDS: Final = frozenset(
    {"type", "filters", "user_location", "search_context_size", "external_web_access", "search_content_types"}
    | {"container"}
)
"""Fields of OpenAI's own search and code interpreter."""

_FILTERS: Final = frozenset({ALLOWED, BLOCKED, "excluded_domains"})
"""Filters of a search that several vendors have."""

_SAME_API: Final[dict[HostedStyle, frozenset[str]]] = {
    "anthropic": frozenset({"anthropic"}),
    "gemini": frozenset({"gemini"}),
    "vertex": frozenset({"gemini"}),
    "responses": frozenset({"openai"}),
    "openrouter": frozenset({"openrouter"}),
    "groq": frozenset({"groq"}),
    "nova": frozenset({"nova"}),
    "perplexity_agent": frozenset({"perplexity"}),
}
"""By style: the APIs whose forms the vendor accepts unchanged."""


@frozen
class HostedTranslation:
    """A request in the target's form, the names of the emulated fields, and the names of the settings that were left
    out."""

    request: UnifiedRequest
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def asks_hosted(params: Params) -> bool:
    """Return whether a request may have a hosted tool. Nearly all requests have only functions."""
    if SEARCH in params:
        return True
    return "tools" in params and any([tool.get("type") != "function" for tool in params["tools"]])


def translate_hosted(request: UnifiedRequest, target: Target) -> HostedTranslation:
    """Return a request for which `asks_hosted` is true, in the target's form. Raises Refusal for a tool that the target
    does not have, and for a setting or a choice that it cannot honour."""
    profile = target.model_profile
    params = request.params
    writer = HostedWriter(target, profile)
    for tool in params.get("tools", ()):
        writer.add(tool)
    if (options := params.get(SEARCH)) is not None:
        if "web_search" not in profile.hosted:
            why = target.dialect.capabilities(request, target)[SEARCH].how or search_cell(profile).how
            raise Refusal(SEARCH, f"'{SEARCH}' is not supported by {target.name}: {why}.")
        writer.add_options(options)
    if not writer.found:
        return HostedTranslation(request)
    remaining_params = {name: value for name, value in params.items() if name not in ("tools", SEARCH)}
    if writer.tools:
        remaining_params["tools"] = writer.tools
    _put_choice(remaining_params, writer)
    body = writer.body
    if SEARCH in body:
        remaining_params[SEARCH] = body.pop(SEARCH)
    unknown = merged(body, dict(request.unknown or {})) or None
    translated = replace(request, params=cast(Params, remaining_params), unknown=unknown)
    emulated_fields = (SEARCH,) if options is not None and SEARCH not in remaining_params else ()
    return HostedTranslation(translated, emulated_fields, tuple(dict.fromkeys(writer.dropped)))


@dataclass(slots=True)
class HostedWriter:
    """The tools of one request so far, in the target's form.

    `tools` and `body` are the entries and the fields to send. `found` are the hosted tools, each with the target's form
    of it, `None` if the form is not known. `unchanged` are the hosted tools that are sent unchanged.
    """

    target: Target
    profile: Profile
    tools: list[JsonObject] = field(default_factory=list)
    body: JsonObject = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    found: list[tuple[HostedTool, HostedForm | None]] = field(default_factory=list)
    unchanged: list[HostedTool] = field(default_factory=list)

    def add(self, tool: JsonObject) -> None:
        """Add an entry of `tools`. Raises Refusal."""
        read = hosted_tool(tool)
        if read is None:
            self.tools.append(tool)
            return
        style = self.profile.hosted.get(read.kind)
        form = None if style is None else FORMS[read.kind][style]
        self.found.append((read, form))
        if form is None or self._takes(read, tool, style):
            self._add_unchanged(read, tool)
        else:
            self._write(read, form, "tools")

    def add_options(self, options: JsonObject) -> None:
        """Add the web search that `web_search_options` requests. Raises Refusal."""
        if any([read.kind == "web_search" for read, _ in self.found]):
            message = f"'{SEARCH}' and a web search among the 'tools' request the same; send only one of them."
            raise Refusal(SEARCH, message, "conflicting_parameters")
        read = search_of_options(options)
        form = FORMS["web_search"][self.profile.hosted["web_search"]]
        self.found.append((read, form))
        self._write(read, form, SEARCH)

    def _takes(self, read: HostedTool, tool: JsonObject, style: HostedStyle | None) -> bool:
        """Return whether the target accepts a tool unchanged."""
        if style is not None and read.api in _SAME_API.get(style, ()):
            return True
        return self.profile.takes_tool(read.given) and _is_vendors_own(tool)

    def _add_unchanged(self, read: HostedTool, tool: JsonObject) -> None:
        """Add a tool unchanged. Raises Refusal if the target has no tool of its kind."""
        if read.kind not in self.profile.hosted and not self.profile.takes_tool(read.given):
            why = self.profile.not_hosted.get(read.kind, f"it has no {_WORDS[read.kind]} of its own")
            raise Refusal("tools", f"A tool of type '{read.given}' is not supported by {self.target.name}: {why}.")
        self.unchanged.append(read)
        self.tools.append(tool)

    def _write(self, read: HostedTool, form: HostedForm, param: str) -> None:
        if read.bound:
            raise Refusal(param, f"A tool of type '{read.given}' with {read.bound} cannot go to {self.target.name}.")
        settings: JsonObject = {}
        for name, value in read.options.items():
            if name in form.setting_paths and _has_word(name, value, form):
                self._check_number(param, name, value, form)
                settings = merged(settings, _nested_at(form.setting_paths[name], _vendor_value(name, value, form)))
                if name == LOCATION and form.location_form == "bare" and isinstance(value, dict) and _TIMEZONE in value:
                    self.dropped.append(f"{param}.{name}.{_TIMEZONE}")
            elif name in _DOMAINS:
                raise self._domains_refusal(param, name)
            else:
                self.dropped.append(f"{param}.{name}")
        if all([name in read.options for name in _DOMAINS]):
            raise Refusal(param, f"{self.target.name} takes either {ALLOWED} or {BLOCKED} of a search, not both.")
        self.dropped += [f"{param}.{name}" for name in read.others]
        if form.tool is None:
            self.body = merged(self.body, merged(form.body or {}, settings))
        elif (tool := merged(form.tool, settings)) not in self.tools:
            self.tools.append(tool)

    def _check_number(self, param: str, name: str, value: JsonValue, form: HostedForm) -> None:
        """Raise Refusal if a search has more domains than the vendor accepts."""
        most = form.most_domains
        if name in _DOMAINS and most is not None and isinstance(value, list) and len(value) > most:
            raise Refusal(param, f"{self.target.name} takes at most {most} of '{name}' of a search, not {len(value)}.")

    def _domains_refusal(self, param: str, name: str) -> Refusal:
        problem = f"'{name}' of a search is not supported by {self.target.name}: it cannot limit domains in this way."
        return Refusal(param, problem)


def _is_vendors_own(tool: JsonObject) -> bool:
    """Return whether a tool of a type that OpenAI also has contains fields that OpenAI does not have."""
    filters = tool.get("filters")
    return not _OPENAI_FIELDS.issuperset(tool) or (isinstance(filters, dict) and not _FILTERS.issuperset(filters))


def _nested_at(path: str, value: JsonValue) -> JsonObject:
    """Return a nested object with a value at a dotted path."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return cast(JsonObject, value)


def _has_word(name: str, value: JsonValue, form: HostedForm) -> bool:
    """Return whether the vendor can express a setting's value."""
    return name != CONTEXT or form.contexts is None or value in form.contexts


def _vendor_value(name: str, value: JsonValue, form: HostedForm) -> JsonValue:
    """Return a setting's value in the vendor's form."""
    if name == CONTEXT and form.contexts is not None and isinstance(value, str):
        return form.contexts[value]
    if name == ALLOWED and form.most_domains == 1 and isinstance(value, list):
        return value[0]
    if name == LOCATION and isinstance(value, dict) and form.location_form != "typed":
        bare: JsonObject = {key: location_part for key, location_part in value.items() if key != "type"}
        if form.location_form == "bare":
            bare.pop(_TIMEZONE, None)
        return {"type": "approximate", "approximate": bare} if form.location_form == "nested" else bare
    if name == BLOCKED and form.setting_paths[BLOCKED] == form.setting_paths.get(ALLOWED) and isinstance(value, list):
        # The vendor has one list for both kinds; blocked domains have a minus sign.
        return [f"-{domain}" for domain in value]
    return value


# The choice -----------------------------------------------------------------------------------------------------------


def _put_choice(params: dict[str, object], writer: HostedWriter) -> None:
    """Write the tool choice in the target's form. Raises Refusal for a choice that the target cannot honour."""
    choice = params.get(_CHOICE)
    if choice == "none":
        for _, form in writer.found:
            if form is not None and form.tool is None:
                writer.body = dict(form.off or {})
    elif choice == "required":
        _require(params, writer)
    elif isinstance(choice, dict) and (chosen := _chosen_tool(choice, writer.found, writer.tools)) is not None:
        params.pop(_CHOICE)
        read, form = chosen
        if form is None:
            params[_CHOICE] = choice
        elif form.forced_use == "never":
            raise Refusal(_CHOICE, f"{writer.target.name} cannot be made to use its {_WORDS[read.kind]}.")
        elif form.tool is None:
            writer.body = merged(writer.body, form.choice or {})
        else:
            typed = read in writer.unchanged and form.choice is not None and form.choice["type"] != "function"
            params[_CHOICE] = {"type": read.given} if typed else form.choice
    if not writer.tools:
        params.pop(_CHOICE, None)
        params.pop("parallel_tool_calls", None)


def _require(params: dict[str, object], writer: HostedWriter) -> None:
    """Write the choice that some tool must be used. Raises Refusal if no remaining tool can be forced."""
    forms = [form for _, form in writer.found if form is not None]
    always_used = next((form for form in forms if form.forced_use == "always"), None)
    if always_used is not None:
        params.pop(_CHOICE)
    elif not writer.tools:
        form = forms[0]
        if form.forced_use == "never":
            raise Refusal(_CHOICE, f"{writer.target.name} cannot be made to use a tool that it runs itself.")
        writer.body = merged(writer.body, form.choice or {})


def _chosen_tool(
    choice: JsonObject, found: Sequence[tuple[HostedTool, HostedForm | None]], tools: Iterable[JsonObject]
) -> tuple[HostedTool, HostedForm | None] | None:
    """Return the hosted tool that a choice names, by its type or, as Anthropic does, by its name; `None` if the choice
    names no hosted tool. Raises Refusal if the tool is not offered."""
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if isinstance(name, str):
        if any([_name(tool) == name for tool in tools]):
            return None
        return next((each for each in found if each[0].kind == name), None)
    read = hosted_tool(choice)
    if read is None:
        return None
    for each in found:
        if each[0].kind == read.kind:
            return each
    raise Refusal(
        _CHOICE, f"'{_CHOICE}' names a tool of type '{read.given}', which is not among 'tools'.", "invalid_value"
    )


def _name(tool: JsonObject) -> JsonValue:
    held = tool.get("function") or tool.get("custom")
    return held.get("name") if isinstance(held, dict) else None


# The matrix -----------------------------------------------------------------------------------------------------------


def search_cell(profile: Profile, *names: str) -> Cell:
    """Return the cell of `web_search_options` for the model with these names."""
    fitted = profile.for_model(*names)
    style = fitted.hosted.get("web_search")
    if style is None:
        return refused(fitted.not_hosted.get("web_search", "it has no web search of its own"))
    return NATIVE if style == "options" else emulated("the vendor's own web search")


def is_tool(target: Target, kind: HostedKind) -> bool:
    """Return whether the target's hosted tool of this kind is an entry of `tools`."""
    style = target.model_profile.hosted.get(kind)
    return style is not None and FORMS[kind][style].tool is not None
