"""The layers of each package, and the layers that each may import. Pure data, for `tests/test_architecture.py`.

A layer is a folder. Every layer may import the files at a package's top, and these import no layer. Each entry names
the other imports of its files: layers, or single files of a layer. An entry names only layers above it, so there are no
cycles of imports between layers.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

Rooms: TypeAlias = Mapping[str, tuple[str, ...]]

CONFIG: Final[Rooms] = {
    ".": (),
    "reading": (),
    "sections": ("reading",),
    "table": ("sections",),
    "checks": ("reading", "sections", "table"),
}

PROVIDERS: Final[Rooms] = {
    ".": (),
    "framing": (),
    "constraints": (),
    "client_extras": (),
    "vendor_text": (),
    "list_prices": (),
    "models": (),
    "hosted_tools": (),
    "adaptation": ("client_extras", "models", "constraints", "hosted_tools"),
    "profiles": ("constraints",),
    "mock": ("constraints",),
    "emulation": ("constraints", "client_extras", "hosted_tools", "adaptation"),
    "dialects/shared": (
        *("framing", "client_extras", "vendor_text", "constraints", "models", "adaptation", "profiles", "emulation"),
    ),
    "dialects/platforms": ("framing", "vendor_text", "dialects/shared"),
    "dialects/*": (
        *("framing", "vendor_text", "constraints", "models", "adaptation", "profiles", "emulation", "dialects/shared"),
        "dialects/platforms",
    ),
    "model_lists": ("dialects/shared",),
    "tasks": ("client_extras", "dialects/shared", "dialects/platforms"),
    "tasks/forms": ("dialects/shared", "dialects/platforms", "tasks"),
    "dialects": ("hosted_tools", "tasks", "models", "profiles", "dialects/shared", "dialects/platforms", "dialects/*"),
}

DIALECTS: Final[Rooms] = {
    "dialects/bedrock": ("dialects/anthropic",),
    "dialects/openai": ("dialects/responses",),
    "dialects/sagemaker": ("dialects/openai", "dialects/tgi"),
    "dialects/watsonx": ("dialects/openai",),
}
"""Dialects that carry another dialect's wire format inside their own addresses, frames and errors."""

PROXY: Final[Rooms] = {
    ".": (),
    "surfaces/request": (),
    "surfaces/response": ("surfaces/surface",),
    "surfaces/tasks": ("surfaces/request", "surfaces/response", "surfaces/surface"),
    "surfaces/tool_items": ("surfaces/response",),
    "surfaces/anthropic": (
        *("surfaces/request", "surfaces/response", "surfaces/surface", "surfaces/thinking_envelope"),
        "surfaces/tool_items",
    ),
    "surfaces/responses": (
        *("surfaces/request", "surfaces/response", "surfaces/surface", "surfaces/thinking_envelope"),
        "surfaces/tool_items",
    ),
    "surfaces": ("surfaces/request", "surfaces/response", "surfaces/anthropic", "surfaces/responses"),
    "off_loop": (),
    "shared_state": (),
    "deployment_health": ("shared_state",),
    "limits": ("shared_state",),
    "ledger": ("limits",),
    "receipt": (),
    "telemetry": ("deployment_health", "limits", "ledger", "receipt"),
    "listener": (),
    "forms": ("listener",),
    "upstream": ("off_loop", "surfaces/request"),
    "http_client": ("upstream",),
    "vendor_credentials": ("upstream",),
    "overload": ("listener", "surfaces"),
    "hedging": (),
    "routing": ("surfaces", "deployment_health", "vendor_credentials", "limits", "hedging"),
    "teams": ("routing", "limits"),
    "accounting": ("off_loop", "limits", "ledger", "telemetry", "shared_state", "routing", "teams"),
    "discovery": ("deployment_health", "upstream", "routing"),
    "dispatch": ("off_loop", "deployment_health", "telemetry", "upstream", "limits", "hedging", "routing", "teams"),
    "hooks": ("surfaces", "upstream", "routing", "dispatch"),
    "conversations": ("off_loop", "surfaces", "surfaces/request", "hooks"),
    "reasoning_memory": (
        *("off_loop", "surfaces/response", "upstream", "routing", "dispatch", "conversations", "hooks"),
    ),
    "tracing": ("surfaces", "receipt", "telemetry", "upstream", "routing", "hooks"),
    "payload_log": ("off_loop", "surfaces", "telemetry", "tracing", "hooks"),
    "response_cache": (
        "off_loop",
        "telemetry",
        "upstream",
        "routing",
        "conversations",
        "dispatch",
        "hooks",
        "surfaces",
    ),
    "relay": ("surfaces", "listener", "upstream"),
    "plugins/request_strings": (),
    "plugins": ("off_loop", "telemetry", "upstream", "http_client", "dispatch", "hooks", "plugins/request_strings"),
    "plugins/shipped": ("plugins/api",),
    "gateway": (
        *("surfaces", "surfaces/request", "surfaces/anthropic", "surfaces/tasks", "off_loop", "deployment_health"),
        *("receipt", "telemetry", "listener", "forms", "upstream", "overload", "relay"),
        *("limits", "ledger", "hedging", "routing", "teams", "conversations", "discovery", "dispatch"),
        "hooks",
    ),
    "admin/markup": (),
    "admin/last_hour": ("telemetry", "admin/recent_requests"),
    "admin": (
        *("admin/markup", "admin/last_hour"),
        *("deployment_health", "telemetry", "listener", "limits", "ledger", "accounting", "routing"),
        *("discovery", "dispatch", "gateway"),
    ),
    "process/table_checks": ("hedging", "routing", "shared_state"),
    "process": (
        *(
            "process/table_checks",
            "surfaces",
            "off_loop",
            "deployment_health",
            "telemetry",
            "listener",
            "upstream",
            "http_client",
        ),
        *(
            "vendor_credentials",
            "shared_state",
            "limits",
            "ledger",
            "accounting",
            "payload_log",
            "overload",
            "routing",
            "teams",
            "conversations",
            "discovery",
            "dispatch",
            "reasoning_memory",
            "response_cache",
            "plugins",
            "hooks",
            "gateway",
            "admin",
            "admin/last_hour",
            "tracing",
        ),
    ),
    "workers": (
        "off_loop",
        "telemetry",
        "listener",
        "shared_state",
        "limits",
        "ledger",
        "routing",
        "accounting",
        "admin",
        "process",
    ),
    "cli/imports/litellm": (
        *("cli/imports/accounts", "cli/imports/endpoints", "cli/imports/foreign_section", "cli/imports/remarks"),
        *("cli/imports/table_draft", "cli/imports/table_values"),
    ),
    "cli/imports": ("cli/imports/litellm", "cli/terminal", "cli/check_command", "routing", "process"),
    "cli/logs": ("cli/terminal",),
    "cli/prices": ("cli/terminal", "routing", "process"),
    "cli/usage": ("cli/terminal", "ledger", "process"),
    "cli": (
        *(
            "cli/imports",
            "cli/imports/litellm",
            "cli/logs",
            "cli/prices",
            "cli/usage",
            "deployment_health",
            "telemetry",
            "listener",
            "hedging",
            "routing",
            "dispatch",
            "gateway",
            "process",
            "process/table_checks",
        ),
        *("limits", "ledger", "plugins", "response_cache", "teams", "workers"),
    ),
}

ROOMS: Final[Mapping[str, Rooms]] = {"config": CONFIG, "providers": PROVIDERS, "proxy": PROXY}

STARTS: Final = frozenset({"config/load_config.py", "proxy/__main__.py"})
"""Files at a package's top that may import every layer of their package, because other programs start them."""
