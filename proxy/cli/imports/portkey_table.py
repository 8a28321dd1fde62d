"""Convert Portkey's config object, which is one route over its targets, to a configuration.

A target without a model leaves the model to the client. If all such targets have the same profile, they become the
deployments of `NAME/*`. Otherwise each becomes a `VENDOR/*` without a route, because a route leads to models.

Sources: Portkey's pages "Gateway Config Object" and "Configs"; `src/middlewares/requestValidator` and `src/globals.ts`
of Portkey-AI/gateway for the fields and the names of providers, November 2026.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from config.problem import Problem
from providers.unified_request import Task
from proxy.cli.imports.accounts import Accounts, aws_region
from proxy.cli.imports.endpoints import (
    ANY_MODEL,
    IS_ONE_SPACE,
    MAX_TARGETS,
    OTHER_SPACE,
    DraftEndpoint,
    Endpoints,
    Share,
    put_route,
    space_of,
    task_of,
)
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.table_draft import Block, DraftValue, TableDraft, mapping
from proxy.cli.imports.table_values import attempts, duration, route_name, unused, variable, word

PROFILES: Final[Mapping[str, str]] = {
    **{name: name for name in ("openai", "anthropic", "bedrock", "cohere", "groq", "deepseek", "openrouter", "ai21")},
    **{
        name: name
        for name in (
            "cerebras",
            "sambanova",
            "deepinfra",
            "voyage",
            "jina",
            "nomic",
            "nebius",
            "hyperbolic",
            "moonshot",
            "dashscope",
        )
    },
    **{name: name for name in ("huggingface", "databricks", "sagemaker", "replicate", "triton")},
    **{"azure-openai": "azure", "azure": "azure", "vertex-ai": "vertex", "vertex": "vertex", "google": "gemini"},
    **{"gemini": "gemini", "mistral-ai": "mistral", "mistral": "mistral", "together-ai": "together"},
    **{"together": "together", "fireworks-ai": "fireworks", "fireworks": "fireworks", "perplexity-ai": "perplexity"},
    **{"perplexity": "perplexity", "ollama": "ollama_native", "x-ai": "xai", "xai": "xai", "novita-ai": "novita"},
    **{"github": "github_models", "zhipu": "zai", "workers-ai": "cloudflare", "aws": "bedrock", "claude": "anthropic"},
}
"""Profiles by Portkey's name of the provider, or by a word in the name of an account."""

KEYLESS: Final = frozenset({"bedrock", "vertex", "vertex_anthropic", "ollama_native", "openai_compatible", "sagemaker"})

REASONS: Final[Mapping[str, str]] = {
    "cache": "responses are cached by `cache` in defaults, at a vendor, a model or a route: for you to write",
    "on_status_codes": "what is tried again is decided for each kind of failure",
    "use_retry_after_headers": "a vendor's Retry-After is always respected",
    "cb_config": "every deployment has a circuit breaker (circuit_breaker)",
    "conditions": "routes have no conditions",
    "override_params": "a deployment changes no members of a request but the model",
    "default_params": "a deployment has no values for what clients leave out",
    "drop_params": "has no counterpart: `on_unsupported: drop` leaves out what a vendor cannot honour",
    "forward_headers": "clients' headers are passed on by allow_headers",
    **dict.fromkeys(
        ("input_guardrails", "output_guardrails", "before_request_hooks", "after_request_hooks", "guardrails"),
        "guardrails are guards: plugins that check requests and responses",
    ),
    "prompt_id": "there are no stored prompts",
    "passthrough": "clients name vendor and model themselves",
    "strict_open_ai_compliance": "responses are always in the client's API",
    "metadata": "the ledger keeps tags of a team (teams.NAME.tags): for you to write",
}

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def portkey_table(root: ForeignSection, name: str) -> TableDraft:
    """Return the configuration that corresponds to Portkey's config object; `name` is the route's."""
    draft = TableDraft()
    reader = _Config(draft, Accounts(draft, lambda text: None), Endpoints(draft), route_name(name))
    section = _snake(root).apart([])
    tree = reader.node(section, reader.name, _Inherited())
    if tree is None:
        draft.root.comments += section.comments
    else:
        reader.write(tree)
    return draft


def _snake(section: ForeignSection) -> ForeignSection:
    """Return the section with its keys in Portkey's older spelling. Remarks use the spelling of the file."""
    entries = {}
    for key, entry in section.node.entries.items():
        name = _CAMEL.sub(r"_\1", key).lower()
        if name in entries:
            reason = "is written in both spellings: the last one counts"
            section.remarks.problems.append(Problem.at(entry.key_at, (*section.path, key), reason))
        entries[name] = entry
    section.node.entries.clear()
    section.node.entries.update(entries)
    return section


@dataclass(frozen=True, slots=True)
class _Inherited:
    """The settings that a config applies to all its targets."""

    timeout: str | None = None
    attempts: int | None = None


@dataclass(slots=True)
class _Choice:
    """A config with targets: a named route."""

    name: str
    policy: str
    parts: "list[tuple[_Choice | _Leaf, float]]"
    comments: list[str]


@dataclass(slots=True)
class _Leaf:
    """A config that calls a provider. It has no model if the client names the model."""

    endpoint: DraftEndpoint
    section: ForeignSection


@dataclass(slots=True)
class _Config:
    """Reads the tree of configs and writes it. The file's reader limits the tree's depth."""

    draft: TableDraft
    accounts: Accounts
    endpoints: Endpoints
    name: str
    _names: set[str] = field(default_factory=set)
    _space: tuple[Task | None, str] = (None, "")

    def node(self, section: ForeignSection, name: str, above: _Inherited) -> _Choice | _Leaf | None:
        """Return the result of one config; `None` if it cannot be converted."""
        retry = _snake(section.section("retry"))
        own = _Inherited(
            duration(section, "request_timeout", 0.001) or above.timeout, attempts(retry, "attempts") or above.attempts
        )
        retry.report_unread(REASONS)
        strategy = _snake(section.section("strategy"))
        leaf = "targets" not in section
        found = self._leaf(section, own) if leaf else self._choice(section, strategy, name, own)
        strategy.report_unread(REASONS)
        section.report_unread(REASONS)
        return found

    def _choice(self, section: ForeignSection, strategy: ForeignSection, name: str, own: _Inherited) -> _Choice:
        mode = strategy.text("mode") or "single"
        policy = "weighted" if mode in ("loadbalance", "ab_test") else "priority"
        wanted = strategy.text("default")
        targets = list(section.sections("targets"))
        if mode == "conditional":
            strategy.report_key("mode", "routes have no conditions: the default target is first, the others follow it")
            targets.sort(key=lambda each: wanted is None or each.text("name") != wanted)
        if mode == "single" and len(targets) > 1:
            section.report_key("targets", "only the first target is used in the mode single")
            targets = targets[:1]
        parts: list[tuple[_Choice | _Leaf, float]] = []
        self._names.add(name)
        for index, each in enumerate(targets):
            each = _snake(each)
            inner = unused(route_name(f"{name}.{each.text('name') or index + 1}"), self._names, 180)
            if index == MAX_TARGETS:
                section.report_key("targets", f"is longer than a route: only the first {MAX_TARGETS} are taken")
            weight = each.number("weight")
            part = self.node(each, inner, own)
            if part is None:
                section.comments += each.comments
            else:
                parts.append((part, 1.0 if weight is None else weight))
        return _Choice(name, policy, parts, section.comments)

    def _leaf(self, section: ForeignSection, own: _Inherited) -> _Leaf | None:
        params = _snake(section.section("override_params"))
        model = params.text("model")
        params.report_unread(dict.fromkeys(params.written(), REASONS["override_params"]))
        slug = None
        provider = section.text("provider") or ""
        if model is not None and not provider and model.startswith("@") and "/" in model:
            slug, _, model = model[1:].partition("/")
        if provider.startswith("@"):
            slug, provider = provider[1:], ""
        slug = section.text("virtual_key") or slug
        section.taken.add("name")
        if not provider and slug is None:
            section.report_section("names no provider and no virtual key: not taken")
            return None
        vendor, profile = self._vendor(section, provider, slug, model or "")
        endpoint = DraftEndpoint(vendor, profile, model or ANY_MODEL, comments=section.comments)
        endpoint.settings = self._account(section, vendor, profile, slug)
        deployment = section.text("azure_deployment_id") or section.text("deployment_id")
        if deployment is not None and profile == "azure":
            endpoint.model = model or section.text("azure_model_name") or deployment
            if deployment != endpoint.model:
                endpoint.settings["upstream_model"] = deployment
        elif deployment is not None:
            section.report_key("deployment_id", "belongs to another provider: not taken")
        timeouts, retries = mapping({"total": own.timeout}), mapping({"attempts": own.attempts})
        endpoint.settings.update({key: value for key, value in (("timeouts", timeouts), ("retries", retries)) if value})
        endpoint.name = slug or vendor
        endpoint.task, endpoint.space = task_of(endpoint.model, profile), space_of(endpoint.model)
        return _Leaf(endpoint, section)

    def _vendor(self, section: ForeignSection, provider: str, slug: str | None, model: str) -> tuple[str, str]:
        """Return the vendor's name and profile. If the config names an account, only the account's name is known."""
        words = [provider] if provider else [slug or "", *re.split(r"[-_.]", slug or "")]
        profile = next((PROFILES[each.lower()] for each in words if each.lower() in PROFILES), None)
        if profile is None and provider and "custom_host" not in section:
            section.comments.append("The provider is not known here: set its base_url.")
        if slug is not None:
            account_note = f"taken for {profile} by its name" if profile else "which vendor it is cannot be known"
            section.comments.append(f"An account of Portkey's, {account_note}: its key and address stand there.")
        if profile == "vertex" and "claude" in model:
            profile = "vertex_anthropic"
        known = profile or "openai_compatible"
        if provider == "openai" and "custom_host" in section:
            known = "openai_compatible"
        return word(slug or (provider if profile is None or known == "openai_compatible" else profile), known), known

    def _account(self, section: ForeignSection, vendor: str, profile: str, slug: str | None) -> dict[str, DraftValue]:
        accounts, draft = self.accounts, self.draft
        settings = dict[str, DraftValue](accounts.address(section, "custom_host", vendor))
        account = accounts.url_param(section, "workers_ai_account_id") if profile == "cloudflare" else None
        if account is not None:
            settings["url_params"] = Block({"account_id": account})
        key = accounts.secret(section, "api_key", vendor)
        if (key is None and profile not in KEYLESS) or slug is not None:
            name = variable(vendor, "api_key")
            key = key or draft.refer(name, f"sample-{name}")
        if profile == "azure":
            settings.update(self._azure(section, vendor, settings))
        elif profile in ("bedrock", "sagemaker"):
            region = aws_region(accounts.url_param(section, "aws_region", "us-east-1"))
            keys = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
            key = None if accounts.aws_keys(section, *keys) or slug is not None else key
            settings.update(accounts.aws(region))
        elif profile in ("vertex", "vertex_anthropic"):
            project = accounts.url_param(section, "vertex_project_id") or draft.refer("VERTEX_PROJECT_ID", "sample")
            region = accounts.url_param(section, "vertex_region") or draft.refer("VERTEX_REGION", "us-central1")
            settings["url_params"] = Block({"project": project, "location": region})
            settings.update(accounts.google_file(section, "vertex_service_account_json"))
            key = None
        organization = accounts.header(section, "openai_organization", "OpenAI-Organization", vendor)
        if organization is not None:
            settings["headers"] = Block({"OpenAI-Organization": organization})
        return settings if key is None else {"api_key": key, **settings}

    def _azure(self, section: ForeignSection, vendor: str, known: Mapping[str, DraftValue]) -> dict[str, DraftValue]:
        accounts = self.accounts
        settings: dict[str, DraftValue] = {}
        resource = accounts.url_param(section, "azure_resource_name") or accounts.url_param(section, "resource_name")
        if "base_url" not in known:
            resource = resource or self.draft.refer(variable(vendor, "resource"), "sample")
            settings["url_params"] = Block({"resource": resource})
        version = section.text("azure_api_version") or section.text("api_version")
        return {**settings, "api_version": version} if version is not None else settings

    def write(self, tree: "_Choice | _Leaf") -> None:
        """Write the vendors, the models and the routes."""
        leaves = list(_leaves(tree))
        free = [leaf for leaf in leaves if leaf.endpoint.model == ANY_MODEL]
        one_kind = len({leaf.endpoint.profile for leaf in free}) == 1 and len(free) == len(leaves) > 1
        flat = isinstance(tree, _Choice) and all(isinstance(part, _Leaf) for part, _ in tree.parts)
        if one_kind and flat and isinstance(tree, _Choice):
            for leaf in free:
                leaf.endpoint.vendor = word(self.name, "portkey")
        for leaf in leaves:
            self.endpoints.add(leaf.endpoint, leaf.endpoint.vendor, leaf.section)
        self.endpoints.write()
        named = (leaf.endpoint for leaf in leaves if leaf.endpoint.model != ANY_MODEL)
        self._space = next(((each.task, each.space) for each in named), self._space)
        if one_kind and flat and isinstance(tree, _Choice):
            self._write_balanced(tree)
        elif isinstance(tree, _Leaf):
            self._write_single(tree)
        else:
            self._write_choice(tree)

    def _write_balanced(self, tree: _Choice) -> None:
        shares = [Share(part.endpoint, weight) for part, weight in tree.parts if isinstance(part, _Leaf)]
        self.endpoints.balance(shares, tree.policy)
        vendor = self.endpoints.key(shares[0].endpoint).partition("/")[0]
        self.draft.section("vendors").block(vendor).comments += tree.comments
        self._default_vendor(vendor)

    def _write_single(self, leaf: _Leaf) -> None:
        key = self.endpoints.key(leaf.endpoint)
        if leaf.endpoint.model == ANY_MODEL:
            self._default_vendor(key.partition("/")[0])
        else:
            self.draft.section("routes").put(self.name, key)

    def _default_vendor(self, vendor: str) -> None:
        self.draft.section("server").block("surfaces").block("openai").put("default_vendor", vendor)

    def _is_comparable(self, endpoint: DraftEndpoint) -> bool:
        """Return whether a target's vectors are comparable with the first target's vectors. Targets without vectors are
        comparable."""
        if Task.EMBEDDINGS not in (self._space[0], endpoint.task):
            return True
        return (endpoint.task, endpoint.space) == self._space

    def _write_choice(self, choice: _Choice) -> str | None:
        """Write a route after the routes that it leads to. Return the route's name; `None` if it has no targets."""
        targets: list[tuple[str, float]] = []
        for part, weight in choice.parts[:MAX_TARGETS]:
            if isinstance(part, _Choice):
                name = self._write_choice(part)
                targets += [] if name is None else [(name, weight)]
            elif part.endpoint.model == ANY_MODEL:
                vendor = self.endpoints.key(part.endpoint).partition("/")[0]
                reason = f"leaves the model to the client, which a route cannot: clients write {vendor}/MODEL"
                part.section.apart(choice.comments).report_part(reason)
            elif not self._is_comparable(part.endpoint):
                part.section.apart(choice.comments).report_part(OTHER_SPACE)
            else:
                targets += self.endpoints.targets(choice.name, [Share(part.endpoint, weight)], lambda _: False)
        if not targets:
            self.draft.section("routes").comments += choice.comments
            return None
        leaves = [
            each for each in _leaves(choice) if each.endpoint.model != ANY_MODEL and self._is_comparable(each.endpoint)
        ]
        settings = self.endpoints.space_settings(leaf.endpoint for leaf in leaves)
        if settings:
            leaves[0].section.apart(choice.comments).remark(IS_ONE_SPACE)
        put_route(self.draft.section("routes"), choice.name, targets, choice.policy, choice.comments, settings)
        return choice.name


def _leaves(tree: "_Choice | _Leaf") -> Iterator[_Leaf]:
    """Yield the leaves of a tree. The file's reader limits its depth."""
    if isinstance(tree, _Leaf):
        yield tree
    else:
        for part, _ in tree.parts:
            yield from _leaves(part)
