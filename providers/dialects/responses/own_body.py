"""Fits a client's own body of the Responses API to the target's model: settings that the model does not have, ids and
metadata that are too long, tools and schemas that strict mode refuses.

A field with a neutral value is left out. An advisory field is cut and named as dropped. Any other field is refused by
name before the call. Some fields need the gateway's help: a schema that the vendor cannot enforce, function names that
it refuses, one call per turn. They are reported, so that the request is translated instead.

Sources: `openai` 3.54.0 type `ResponseCreateParams`; OpenAI "Structured outputs"; enricoros/big-AGI issue 947 for the
models with a verbosity; anomalyco/opencode pull request 48857 for choices without tools, November 2026.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from providers.constraints.adapt_schema import fit_schema
from providers.constraints.object_root import fitting_name, with_root_type
from providers.constraints.schema_rules import TOOL_RULES, SchemaRules
from providers.dialects.shared.field_writers import (
    LONGEST_IDS,
    LONGEST_KEY,
    LONGEST_VALUE,
    MOST_PAIRS,
    fitting_id,
    fitting_pairs,
)
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import has_properties, with_properties
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.request_fields import is_neutral
from providers.unified_request import Operation

LOGPROBS: Final = "message.output_text.logprobs"
"""The value of `include` that requests log probabilities."""

_SAMPLING: Final = ("temperature", "top_p")
_FUNCTION_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PARALLEL: Final = "parallel_tool_calls"
_NO_DEMAND_CHOICES: Final = ("auto", "none")


def fit_settings(draft: RequestBody, profile: Profile) -> None:
    """Fit the settings of a body to the model. Raises Refusal for a setting that the model does not have."""
    accepts = profile.wires[Operation.CHAT].accepts
    _fit_sampling(draft, profile)
    if not draft.body.get("top_logprobs"):
        draft.body.pop("top_logprobs", None)
    if "logprobs" not in accepts:
        _refuse_logprobs(draft)
    if "verbosity" not in accepts:
        _leave_out_verbosity(draft)
    _fit_labels(draft)
    _leave_out_idle_choice(draft.body)
    tier = draft.body.get("service_tier")
    if isinstance(tier, str) and tier in (words := profile.words.get("service_tier", {})):
        draft.put("service_tier", words[tier])


def _fit_sampling(draft: RequestBody, profile: Profile) -> None:
    """Leave out neutral sampling settings that the model does not have. Raises Refusal for other values of such
    settings, and for other values of a setting that has a single value, as in chats."""
    for name in _SAMPLING:
        value, (low, high) = draft.body.get(name), profile.bounds.get(name, (None, None))
        if value is None or draft.params.get(name) is None:
            continue
        if name not in profile.wires[Operation.CHAT].accepts:
            if not is_neutral(name, value):
                raise draft.unsupported(name)
            del draft.body[name]
        elif low is not None and low == high and value != low:
            raise draft.unsupported(name, f"it must be {low:g}")


def _refuse_logprobs(draft: RequestBody) -> None:
    include = draft.body.get("include")
    if draft.body.get("top_logprobs") or (isinstance(include, list) and LOGPROBS in include):
        raise draft.unsupported("logprobs")


def _leave_out_verbosity(draft: RequestBody) -> None:
    """Leave out the verbosity of the response. Raises Refusal if the client requests another than the usual length."""
    text = draft.body.get("text")
    if not isinstance(text, dict) or (given := text.get("verbosity")) is None:
        return
    usual = is_neutral("verbosity", given)
    if not usual and draft.params.get("verbosity") is not None:
        raise draft.unsupported("verbosity", "the model's responses have one length")
    rest = {name: value for name, value in text.items() if name != "verbosity"}
    if rest:
        draft.body["text"] = rest
    else:
        del draft.body["text"]
    if not usual:
        draft.dropped.append("verbosity")


def _fit_labels(draft: RequestBody) -> None:
    """Shorten ids and metadata to the lengths that the vendor accepts. They do not change the response."""
    body = draft.body
    for name, longest in LONGEST_IDS.items():
        if isinstance(given := body.get(name), str) and len(given) > longest:
            body[name] = fitting_id(given, longest)
    if isinstance(pairs := body.get("metadata"), dict) and pairs:
        fitting = fitting_pairs(pairs, MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE)
        if len(fitting) < len(pairs):
            body["metadata"] = fitting
            draft.dropped.append("metadata")


def _leave_out_idle_choice(body: JsonObject) -> None:
    """Leave out an empty list of tools, and, if there are no tools, a tool choice that requires no call: "'tool_choice'
    is only allowed when 'tools' are specified"."""
    if body.get("tools") == []:
        del body["tools"]
    if "tools" not in body and "prompt" not in body and body.get("tool_choice") in _NO_DEMAND_CHOICES:
        del body["tool_choice"]


# Tools and schemas ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class OwnSchemas:
    """The tools and the format of a body, in the form that the vendor's strict mode accepts. `unenforced` names the
    fields that promise more than the vendor can enforce. In the changed body they no longer promise it."""

    profile: Profile
    unenforced: list[str] = field(default_factory=list)

    def fit(self, body: JsonObject) -> None:
        """Fit a body in place. Raises Refusal for parameters that are not objects."""
        if isinstance(tools := body.get("tools"), list):
            body["tools"] = tools if self._are_fitting(tools) else [*self._tools(tools)]
            self._fit_parallel(body)
        text = body.get("text")
        form = text.get("format") if isinstance(text, dict) else None
        if isinstance(text, dict) and isinstance(form, dict) and form.get("type") == "json_schema":
            fitted = self._format(form)
            body["text"] = text if fitted is form else {**text, "format": fitted}

    @property
    def _rules(self) -> SchemaRules | None:
        return TOOL_RULES.get(self.profile.structured)

    def _fit_parallel(self, body: JsonObject) -> None:
        accepted = _PARALLEL in self.profile.wires[Operation.CHAT].accepts
        if not accepted and body.pop(_PARALLEL, None) is False:
            self.unenforced.append(_PARALLEL)

    def _are_fitting(self, tools: list[JsonValue]) -> bool:
        """Return whether a short check of each tool shows that the vendor accepts all tools. This is the usual case."""
        bare, matches = self.profile.bare_parameters, _FUNCTION_NAME.fullmatch
        for tool in tools:
            if type(tool) is not dict or tool.get("type") != "function" or "tools" in tool:
                return False
            name = tool.get("name")
            if tool.get("strict") is True or type(name) is not str or not matches(name):
                return False
            if not (bare or has_properties(tool.get("parameters"))):
                return False
        return True

    def _tools(self, tools: list[JsonValue]) -> Iterator[JsonValue]:
        """Yield tools, and the tools of namespaces, with parameters that the vendor accepts."""
        for tool in tools:
            if not isinstance(tool, dict):
                yield tool
                continue
            if isinstance(inner_tools := tool.get("tools"), list):
                tool = {**tool, "tools": [*self._tools(inner_tools)]}
            yield self._function(tool) if tool.get("type") == "function" else tool

    def _function(self, tool: JsonObject) -> JsonObject:
        name = tool.get("name")
        if isinstance(name, str) and not _FUNCTION_NAME.fullmatch(name):
            self.unenforced.append("tools")
        if tool.get("strict") is True:
            tool = self._strict_function(tool)
        return tool if self.profile.bare_parameters else with_properties(tool)

    def _strict_function(self, tool: JsonObject) -> JsonObject:
        given = tool.get("parameters")
        if self._rules is None or not isinstance(given, dict):
            return tool
        parameters: JsonObject = given if "type" in given else {"type": "object", **given}
        if parameters == {"type": "object"}:
            parameters = {"type": "object", "properties": {}}
        fitted = self._fitted(parameters, self._rules, "tools.strict")
        if fitted is None:
            return {**tool, "strict": False}
        return tool if fitted is given else {**tool, "parameters": fitted}

    def _format(self, form: JsonObject) -> JsonObject:
        if (name := fitting_name(form.get("name"))) != form.get("name"):
            form = {**form, "name": name}
        schema = form.get("schema")
        if not isinstance(schema, dict) or self._rules is None:
            return form
        if (typed := with_root_type(schema)) is not schema:
            form, schema = {**form, "schema": typed}, typed
        if schema.get("type") != "object" and "$ref" not in schema:
            self.unenforced.append("response_format")
            return form
        if form.get("strict") is not True:
            return form
        fitted = self._fitted(schema, self._rules, "response_format")
        if fitted is None:
            return {**form, "strict": False}
        return form if fitted is schema else {**form, "schema": fitted}

    def _fitted(self, schema: JsonObject, rules: SchemaRules, name: str) -> JsonObject | None:
        """Return a strict schema in the form that the vendor accepts, or `None` if there is no such form. `name` is
        added to `unenforced` if the vendor cannot enforce the whole schema."""
        fitted = fit_schema(schema, rules)
        if fitted.schema is None or fitted.weakened:
            self.unenforced.append(name)
        return fitted.schema
