"""Converts the tools of a Responses request, and the choice among them, to the form of a chat.

A tool that only this API has is noted as such. A tool of another type, such as a web search, is unchanged: it becomes
the target's own tool, or is refused for a target without such a tool. A tool that the client runs itself becomes a
function, as `typed_tools` describes. The grammar of a custom tool is added to its description, because only OpenAI's
own API is known to enforce it.

Sources: OpenAI OpenAPI 2.3.0 `Tool`, `ToolChoiceParam`; openai 3.54.0 `types/responses`; bodies of Codex CLI 0.169.0,
November 2026.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from providers.hosted_tools.hosted_tool import is_hosted
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, json_object, one_of, string, text
from proxy.surfaces.request.tools import CHOICES, MAX_TOOLS
from proxy.surfaces.responses.request_draft import NamespaceNames, ResponsesDraft
from proxy.surfaces.tool_items.typed_tools import TYPED, loads_at_openai, needs_openai

_HOSTED: Final = frozenset(
    {"file_search", "computer", "computer_use_preview", "mcp", "image_generation", "programmatic_tool_calling"}
)
"""Types of tools that no other API has, or that no other API has in the same form."""

_SCHEMA: Final = (dict, type(None))
_SWITCH: Final = (bool, type(None))
_CALLED: Final = ("function", "custom")
"""Types of tools that clients run."""


def read_tools(draft: ResponsesDraft, loaded: Sequence[JsonObject] = ()) -> None:
    """Set `tools` and `tool_choice`; `loaded` are tools that items of the conversation add."""
    given, choice = draft.data.get("tools"), draft.data.get("tool_choice")
    tools: list[JsonObject] = []
    try:
        offered = [*_listed(given), *loaded]
        draft.names = NamespaceNames(frozenset(_own_names(offered)))
        reader = _Reader(draft)
        # Nearly all tools are functions, which are tested first: checks that report the path of a problem would cost
        # more than the rest of this function.
        read = [
            [simple] if (simple := _function(item)) is not None else reader.at(item, index)
            for index, item in enumerate(offered)
        ]
        tools = [tool for entry in read for tool in entry]
        tools = _distinct(tools) if loaded else tools
        if len(tools) > MAX_TOOLS:
            raise Invalid(f"may hold at most {MAX_TOOLS} tools, including the tools of namespaces")
    except Invalid as bad:
        draft.parsed.refuse("tools", bad)
    try:
        tools = _choose(draft, tools, choice)
    except Invalid as bad:
        draft.parsed.refuse("tool_choice", bad)
    if tools:
        draft.parsed.values["tools"] = tools


def _listed(given: JsonValue) -> list[JsonObject]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise Invalid("must be a list of tools")
    return [item if type(item) is dict else check_at(json_object, item, index) for index, item in enumerate(given)]


def _function(tool: JsonObject) -> JsonObject | None:
    """Return a valid function in the form in which `_Reader` returns it; `None` for any other tool."""
    if tool.get("type") != "function" or "systemTool" in tool:
        return None
    name, description = tool.get("name"), tool.get("description")
    parameters, strict = tool.get("parameters"), tool.get("strict")
    function: JsonObject = {"name": name}
    if description:
        function["description"] = description
    if parameters is not None:
        function["parameters"] = parameters
    if strict:
        function["strict"] = True
    if type(name) is str and name and (description is None or type(description) is str) and type(parameters) in _SCHEMA:
        return {"type": "function", "function": function} if type(strict) in _SWITCH else None
    return None


def _distinct(tools: list[JsonObject]) -> list[JsonObject]:
    """Return each tool only once, because a search may load the same tool again in a later turn."""
    kept: dict[tuple[str, str], JsonObject] = {}
    for tool in tools:
        kept.setdefault(_identity(tool), tool)
    return [*kept.values()]


def _identity(tool: JsonObject) -> tuple[str, str]:
    kind = str(tool.get("type"))
    inner = tool.get(kind)
    return kind, str(inner.get("name")) if isinstance(inner, dict) else ""


def _own_names(tools: list[JsonObject]) -> Iterator[str]:
    for tool in tools:
        name = tool.get("name")
        if tool.get("type") in _CALLED and isinstance(name, str):
            yield name


class _Reader:
    """Reads one entry of the list of tools."""

    __slots__ = ("_draft",)

    def __init__(self, draft: ResponsesDraft) -> None:
        self._draft = draft

    def at(self, tool: JsonObject, index: int) -> list[JsonObject]:
        """Return the entry at an index as tools of a chat. Raises Invalid."""
        try:
            return self._read(tool)
        except Invalid as bad:
            raise Invalid(bad.message, index, *bad.loc, code=bad.code) from None

    def _read(self, tool: JsonObject) -> list[JsonObject]:
        if is_hosted(tool):
            return [tool]
        kind = check_at(text, tool.get("type"), "type")
        if kind in _CALLED:
            return [self._called(tool, None)]
        if kind == "namespace":
            return self._namespace(tool)
        if kind in TYPED:
            return self._typed(kind, tool)
        if kind in _HOSTED:
            self._draft.only.setdefault("tools", f"a tool of type '{kind}'")
        return [tool]

    def _typed(self, kind: str, tool: JsonObject) -> list[JsonObject]:
        """Return a tool with its own type as a function."""
        if loads_at_openai(kind, tool):
            self._draft.left_out["tools.tool_search"] = None
            return []
        if needs_openai(tool):
            self._draft.only.setdefault("tools", f"a tool of type '{kind}' in a container of OpenAI's")
            return [tool]
        name = self._draft.typed_name(kind)
        self._draft.typed[name] = kind
        return [TYPED[kind].function(name, tool)]

    def _namespace(self, tool: JsonObject) -> list[JsonObject]:
        namespace = check_at(text, tool.get("name"), "name")
        listed = tool.get("tools")
        if not isinstance(listed, list):
            raise Invalid("must be a list of tools", "tools")
        description = tool.get("description")
        tools = [self._of_namespace(entry, namespace, index) for index, entry in enumerate(listed)]
        if tools and isinstance(description, str) and description:
            # Only the name of the namespace remains in the names of its tools. So its description is added to the
            # description of its first tool.
            inner = tools[0].get("function") or tools[0].get("custom")
            if isinstance(inner, dict):
                inner["description"] = f"[{namespace}: {description}]\n{inner.get('description') or ''}".rstrip()
        return tools

    def _of_namespace(self, entry: JsonValue, namespace: str, index: int) -> JsonObject:
        tool = check_at(json_object, entry, "tools", index)
        if tool.get("type") not in _CALLED:
            raise Invalid("must be 'function' or 'custom'", "tools", index, "type")
        try:
            return self._called(tool, namespace)
        except Invalid as bad:
            raise Invalid(bad.message, "tools", index, *bad.loc) from None

    def _called(self, tool: JsonObject, namespace: str | None) -> JsonObject:
        name = check_at(text, tool.get("name"), "name")
        wire = name if namespace is None else self._draft.names.joined(namespace, name)
        description = tool.get("description")
        if description is not None:
            check_at(string, description, "description")
        if tool["type"] == "custom":
            return {"type": "custom", "custom": {"name": wire, **_described(self._about_custom(tool))}}
        function: JsonObject = {"name": wire, **_described(description)}
        if (parameters := tool.get("parameters")) is not None:
            function["parameters"] = check_at(json_object, parameters, "parameters")
        if (strict := tool.get("strict")) is not None and check_at(boolean, strict, "strict"):
            function["strict"] = True
        return {"type": "function", "function": function}

    def _about_custom(self, tool: JsonObject) -> str:
        """Return the description of a custom tool, with its grammar."""
        description = str(tool.get("description") or "")
        if (form := tool.get("format")) is None:
            return description
        inner = check_at(json_object, form, "format")
        if check_at(text, inner.get("type"), "format", "type") != "grammar":
            return description
        syntax = check_at(one_of("lark", "regex"), inner.get("syntax"), "format", "syntax")
        definition = check_at(text, inner.get("definition"), "format", "definition")
        self._draft.left_out["tools.format"] = None
        syntax_name = "Lark grammar" if syntax == "lark" else "regular expression"
        return f"{description}\n\nThe input must match this {syntax_name}:\n{definition}".lstrip()


def _described(description: JsonValue) -> JsonObject:
    return {"description": description} if description else {}


# The choice -----------------------------------------------------------------------------------------------------------


def _choose(draft: ResponsesDraft, tools: list[JsonObject], choice: JsonValue) -> list[JsonObject]:
    """Set the choice, and return the tools that it allows. Raises Invalid."""
    if choice is None:
        return tools
    if isinstance(choice, str):
        if choice not in CHOICES:
            raise Invalid("must be 'none', 'auto', 'required' or an object")
        _put_mode(draft, tools, choice)
        return tools
    inner = json_object(choice)
    kind = check_at(text, inner.get("type"), "type")
    if kind == "allowed_tools":
        return _allow(draft, tools, inner)
    if kind in _CALLED:
        name = _named(draft, inner)
        draft.parsed.values["tool_choice"] = {"type": kind, kind: {"name": name}}
    elif kind in TYPED:
        draft.parsed.values["tool_choice"] = {"type": "function", "function": {"name": draft.typed_name(kind)}}
    else:
        draft.parsed.values["tool_choice"] = inner
    return tools


def _put_mode(draft: ResponsesDraft, tools: list[JsonObject], mode: str) -> None:
    if mode == "required" and not tools:
        if not draft.data.get("tools"):
            raise Invalid("needs 'tools' to choose from")
        draft.only["tool_choice"] = "'required' with no tools but OpenAI's own"
    elif tools:
        draft.parsed.values["tool_choice"] = mode


def _allow(draft: ResponsesDraft, tools: list[JsonObject], choice: JsonObject) -> list[JsonObject]:
    """Offer only the tools that a choice allows."""
    mode = check_at(one_of("auto", "required"), choice.get("mode"), "mode")
    listed = choice.get("tools")
    if not isinstance(listed, list) or not listed:
        raise Invalid("must be a non-empty list of tools", "tools")
    allowed: set[tuple[str, str]] = set()
    for index, item in enumerate(listed):
        entry = check_at(json_object, item, "tools", index)
        kind = check_at(text, entry.get("type"), "tools", index, "type")
        if kind in TYPED:
            allowed.add(("function", draft.typed_name(kind)))
        else:
            allowed.add((kind, _named(draft, entry) if kind in _CALLED else ""))
    kept = [tool for tool in tools if _identity(tool) in allowed]
    if not kept and not draft.parsed.refused("tools"):
        raise Invalid("must allow one of the 'tools'")
    _put_mode(draft, kept, str(mode))
    return kept


def _named(draft: ResponsesDraft, entry: JsonObject) -> str:
    name, namespace = check_at(text, entry.get("name"), "name"), entry.get("namespace")
    if namespace is None:
        return name
    return draft.names.joined(check_at(text, namespace, "namespace"), name)
