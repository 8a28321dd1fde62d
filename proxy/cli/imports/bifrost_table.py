"""Convert Bifrost's `config.json` to a configuration.

An empty list of models means no model in version 2 of the format, which is the default, and every model in version 1.

Sources: Bifrost's `transports/config.schema.json`, its pages "Provider Setup", "Client Configuration" and "Schema
Reference" and its examples/configs; the migration guide of v1.5.0 for empty lists and `aliases`, November 2026.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from config.reading.yaml_tree import Entry, ListNode, MapNode, Node, ScalarNode
from proxy.cli.imports.accounts import SAMPLE_URL, Accounts, aws_region
from proxy.cli.imports.bifrost_teams import Offer, Teams
from proxy.cli.imports.endpoints import ANY_MODEL, DraftEndpoint, Endpoints, Share
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.table_draft import Block, DraftValue, TableDraft, mapping
from proxy.cli.imports.table_values import attempts, duration, fits, unused, word

PROFILES: Final[Mapping[str, str]] = {
    **{name: name for name in ("openai", "anthropic", "azure", "bedrock", "vertex", "gemini", "cohere", "mistral")},
    **{name: name for name in ("groq", "openrouter", "perplexity", "cerebras", "xai", "huggingface", "nebius")},
    **{name: name for name in ("deepseek", "fireworks", "replicate", "databricks", "vllm")},
    **{"sgl": "sglang", "ollama": "ollama_native"},
}
"""Profiles by Bifrost's name of the provider."""

OWN_PATHS: Final = frozenset(
    {"anthropic", "azure", "bedrock", "cohere", "gemini", "ollama_native", "replicate", "vertex"}
)
"""Profiles whose base_url ends before the API's version, as Bifrost's base_url does. For the other profiles it ends in
/v1."""

KEY_CONFIGS: Final = frozenset(f"{name}_key_config" for name in ("azure", "bedrock", "vertex", "ollama", "sgl", "vllm"))
"""The sections of a key of which everything is read. Of other sections, only `deployments` is read."""

KEYLESS: Final = frozenset({"bedrock", "vertex", "ollama_native", "sglang", "vllm"})

REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("retry_backoff_initial", "retry_backoff_max"), "the waits before retries are built in"),
    "concurrency_and_buffer_size": "has no exact counterpart: `concurrent` of the vendor is the nearest",
    "proxy_config": "calls go out directly",
    "insecure_skip_verify": "no certificate is taken unchecked: name its authority in ca_file",
    "ca_cert_pem": "is not copied: put it into a file and name that in ca_file",
    "blacklisted_models": "models are not excluded from VENDOR/*: give teams the models they may use",
    "use_for_batch_api": "there is no batch API",
    "plugins": "plugins are guards and sinks in Python (plugins): for you to write",
    "mcp": "there are no MCP servers",
    **dict.fromkeys(
        ("config_store", "logs_store", "vector_store"),
        "this database is not read: what only it holds is lost; usage is kept in server.ledger",
    ),
    "framework": "list prices ship with the gateway (`dragoman prices`); others are written at models",
    "encryption_key": "nothing is stored that is to be encrypted",
    "auth_config": "no web interface changes the configuration",
    "customers": "teams are not grouped: limits and budgets are those of virtual keys",
    "model_configs": "limits of a model are written at the model (limits)",
    "routing_rules": "routes have no rules (CEL)",
    "pricing_overrides": "prices are written at models",
    "enforce_auth_on_inference": "a key is required if the configuration has teams",
    "enforce_governance_header": "a key is required if the configuration has teams",
    "drop_excess_requests": "what is too much gets 503 at once (server.limits)",
    **dict.fromkeys(
        ("enable_logging", "disable_content_logging", "log_retention_days"),
        "the log never holds content: server.payload_log does",
    ),
    "allowed_headers": "web pages may send any header",
    "$schema": "the config file has its own schema",
}


def without_wrappers(node: Node) -> Node:
    """Return a tree in which each `{value, env_var, from_env}`, the form in which Bifrost itself writes values, is
    replaced by its text. The tree's depth limit bounds the recursion."""
    if isinstance(node, ListNode):
        return replace(node, items=tuple(map(without_wrappers, node.items)))
    if not isinstance(node, MapNode):
        return node
    if node.entries and node.entries.keys() <= {"value", "env_var", "from_env"} and "env_var" in node.entries:
        name, value = (node.entries.get(key) for key in ("env_var", "value"))
        variable, literal = map(_scalar_text, (name, value))
        text = f"env.{variable.removeprefix('env.')}" if variable else literal
        return ScalarNode(node.at, text, "text", plain=False)
    entries = {key: replace(entry, node=without_wrappers(entry.node)) for key, entry in node.entries.items()}
    return replace(node, entries=entries)


def _scalar_text(entry: Entry | None) -> str:
    return entry.node.text if entry is not None and isinstance(entry.node, ScalarNode) else ""


def variable_of(text: str) -> str | None:
    """Return the environment variable to which a text of Bifrost refers; `None` for a literal text."""
    return text.removeprefix("env.") if text.startswith("env.") else None


def bifrost_table(root: ForeignSection, name: str) -> TableDraft:
    """Return the configuration that corresponds to one of Bifrost."""
    draft = TableDraft()
    plain = without_wrappers(root.node)
    root = replace(root, node=plain if isinstance(plain, MapNode) else root.node, comments=draft.root.comments)
    root.taken.add("$schema")
    reader = _Providers(Endpoints(draft), Accounts(draft, variable_of), all_when_empty=root.number("version") == 1)
    providers = root.section("providers")
    for provider in providers.written():
        reader.provider(provider, providers.section(provider))
    reader.endpoints.write()
    for group, shares in reader.groups.items():
        if reader.endpoints.whole_model(group, shares):
            reader.endpoints.balance(shares, "weighted")
    governance = root.section("governance")
    Teams(draft, reader.endpoints, reader.offers, reader.all_when_empty, variable_of).read(governance)
    _client(draft, root.section("client").apart(draft.section("server").comments))
    governance.report_unread(REASONS)
    root.report_unread(REASONS)
    return draft


@dataclass(slots=True)
class _Key:
    """One key of a provider. `models` are its models (ANY_MODEL for all). `upstream` has the models' names at the
    vendor if these differ."""

    section: ForeignSection
    name: str
    id: str
    models: Mapping[str, None]
    upstream: Mapping[str, str]
    weight: float
    account: Mapping[str, DraftValue]


@dataclass(slots=True)
class _Providers:
    """Reads the providers. `groups` has the deployments of each model with their weights. `offers` has all deployments
    by provider."""

    endpoints: Endpoints
    accounts: Accounts
    all_when_empty: bool
    groups: dict[str, list[Share]] = field(default_factory=dict)
    offers: dict[str, Offer] = field(default_factory=dict)

    def provider(self, provider: str, section: ForeignSection) -> None:
        """Read one provider with its keys."""
        vendors = self.accounts.draft.section("vendors")
        own = section.section("custom_provider_config")
        profile = PROFILES.get(own.text("base_provider_type") or provider)
        if profile is None:
            section.apart(vendors.comments).report_section("its API is not known here: not taken")
            return
        keyless = own.flag("is_key_less") is True
        if keyless and profile == "openai":
            profile = "openai_compatible"
        vendor = self.endpoints.vendor(provider, profile)
        block = vendors.block(vendor)
        section = section.apart(block.comments)
        network = section.section("network_config")
        common = self._network(vendor, profile, network)
        keys = self._keys(vendor, profile, section)
        if keyless and not keys:
            keys = [_Key(section, "default", "", {ANY_MODEL: None}, {}, 1.0, {})]
        self.offers[provider] = Offer(vendor)
        for model in dict.fromkeys(each for key in keys for each in key.models):
            for key in keys:
                if model in key.models or ANY_MODEL in key.models:
                    self._endpoint(provider, vendor, profile, model, key, common)
        if not keys:
            section.report_section("has no key with a model, and so nothing to serve")
        for each in (own, network, *(key.section for key in keys), section):
            each.apart(block.comments).report_unread(REASONS)

    def _network(self, vendor: str, profile: str, network: ForeignSection) -> dict[str, DraftValue]:
        values = {
            **self.accounts.address(network, "base_url", vendor, "" if profile in OWN_PATHS else "/v1"),
            "headers": mapping(self.accounts.headers(network.section("extra_headers"), vendor)),
            "timeouts": mapping(
                {
                    "idle": duration(network, "stream_idle_timeout_in_seconds"),
                    "total": duration(network, "default_request_timeout_in_seconds"),
                }
            ),
            "retries": mapping({"attempts": attempts(network, "max_retries")}),
        }
        return {key: value for key, value in values.items() if value is not None}

    def _keys(self, vendor: str, profile: str, section: ForeignSection) -> list[_Key]:
        found: list[_Key] = []
        names: set[str] = set()
        for index, item in enumerate(section.sections("keys")):
            each = item.apart(section.comments)
            if each.flag("enabled") is False:
                each.report_section("is not enabled: not taken")
                continue
            upstream = self._upstream(each)
            written = each.texts("models")
            models = dict.fromkeys(written or ([ANY_MODEL] if self.all_when_empty else []))
            if ANY_MODEL in models:
                models = dict.fromkeys((*models, *upstream))
            if not models:
                each.report_section("lists no models, which means none in version 2: not taken")
                continue
            name = unused(word(each.text("name") or "", f"key-{index + 1}"), names)
            names.add(name)
            weight = each.number("weight")
            account = self._account(vendor, profile, each)
            share = 1.0 if weight is None else weight
            found.append(_Key(each, name, each.text("id") or "", models, upstream, share, account))
        return found

    def _upstream(self, key: ForeignSection) -> dict[str, str]:
        """Return the models' names at the vendor, from `aliases`, or from `deployments` of older files."""
        found = {}
        configs = {each: key.section(each) for each in key.written() if each.endswith("_key_config")}
        for place, name in ((key, "aliases"), *((config, "deployments") for config in configs.values())):
            names = place.section(name)
            for alias in names.written():
                if names.holds_text(alias):
                    found[alias] = names.text(alias) or alias
                else:
                    inner = names.section(alias)
                    found[alias] = inner.text("model_id") or inner.text("model_name") or alias
                    inner.report_unread({})
        for name, config in configs.items():
            if name not in KEY_CONFIGS:
                config.report_unread({})
        return found

    def _endpoint(
        self, provider: str, vendor: str, profile: str, model: str, key: _Key, common: Mapping[str, DraftValue]
    ) -> None:
        name = key.upstream.get(model, model)
        claude = profile == "vertex" and "claude" in name
        endpoint = DraftEndpoint(
            f"{vendor}-anthropic" if claude else vendor, "vertex_anthropic" if claude else profile, model, key.name
        )
        endpoint.settings = {**common, **key.account}
        plain = name.removeprefix("google/").removeprefix("anthropic/") if profile == "vertex" else name
        if plain != model:
            endpoint.settings["upstream_model"] = plain
        group = f"{provider}/{model}"
        self.endpoints.add(endpoint, group, key.section)
        self.groups.setdefault(group, []).append(Share(endpoint, key.weight))
        names = {key.name, key.id, key.section.text("name") or ""}
        self.offers[provider].add(model, names, endpoint, key.weight)

    def _account(self, vendor: str, profile: str, key: ForeignSection) -> dict[str, DraftValue]:
        """Return the settings of one key's account."""
        accounts, settings = self.accounts, dict[str, DraftValue]()
        azure, bedrock, vertex = (key.section(f"{each}_key_config") for each in ("azure", "bedrock", "vertex"))
        secret = accounts.secret(key, "value", vendor)
        if profile == "azure":
            endpoint = accounts.address(azure, "endpoint", vendor)
            settings.update(endpoint or {"base_url": accounts.draft.refer("AZURE_ENDPOINT", SAMPLE_URL)})
            version = accounts.text(azure, "api_version", "2024-10-21")
            settings.update({"api_version": version} if version is not None else {})
        if profile == "bedrock":
            region = aws_region(accounts.url_param(bedrock, "region", "us-east-1"))
            accounts.aws_keys(bedrock, "access_key", "secret_key", "session_token")
            settings.update(accounts.aws(region, role_arn=accounts.role(bedrock, "role_arn")))
        if profile == "vertex":
            project = accounts.url_param(vertex, "project_id") or accounts.draft.refer("VERTEX_PROJECT_ID", "sample")
            region = accounts.url_param(vertex, "region", "us-central1")
            region = region or accounts.draft.refer("VERTEX_REGION", "us-central1")
            settings["url_params"] = Block({"project": project, "location": region})
            settings.update(accounts.google_file(vertex, "auth_credentials"))
        for product, path in (("ollama", ""), ("sgl", "/v1"), ("vllm", "/v1")):
            own = key.section(f"{product}_key_config")
            settings.update(accounts.address(own, "url", vendor, path))
            if (name := own.text("model_name")) is not None:
                settings["upstream_model"] = name
            own.taken.add("deployments")
            own.report_unread({})
        if secret is not None:
            settings["api_key"] = secret
        elif profile == "azure":
            settings["credentials"] = "entra"
        elif profile not in KEYLESS:
            settings["api_key"] = accounts.draft.refer(f"{vendor.upper().replace('-', '_')}_API_KEY", "sample-key")
        for section in (azure, bedrock, vertex):
            section.taken.add("deployments")
            section.report_unread({})
        return settings


def _client(draft: TableDraft, client: ForeignSection) -> None:
    server = draft.section("server")
    origins = client.texts("allowed_origins")
    if ANY_MODEL in origins and not draft.section("teams").entries:
        client.report_key("allowed_origins", "any web page could use a gateway without teams: not taken")
    elif origins:
        if not all(fits("origin", origin) for origin in origins):
            client.report_key("allowed_origins", "has some that are no origin of a web page: those are not taken")
        known: list[DraftValue] = [origin for origin in origins if fits("origin", origin)]
        server.put("cors", Block({"origins": known}) if known else None)
    if (most := client.number("max_request_body_size_mb")) is not None:
        if 1 <= most <= 1024:
            server.put("max_body", f"{int(most)}MB")
        else:
            client.report_key("max_request_body_size_mb", "is not a size between 1MB and 1GiB: not taken")
    compat = client.section("compat")
    if compat.flag("should_drop_params"):
        draft.section("defaults").put("on_unsupported", "drop")
    compat.report_unread({})
    client.report_unread(REASONS)
