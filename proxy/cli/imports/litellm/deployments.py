"""Convert the entries of LiteLLM's `model_list` to deployments. Parts that cannot be converted are reported.

Sources: litellm 1.109.1 (`types/router.py`, `types/utils.py`) for the fields of `litellm_params` and `model_info`;
LiteLLM's pages on each provider, November 2026, for the names of providers and variables.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Task
from proxy.cli.imports.accounts import Accounts, aws_region, name_of_address, vendor_of_address
from proxy.cli.imports.endpoints import ANY_MODEL, DraftEndpoint, space_of, task_of
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.reasons import reason_in
from proxy.cli.imports.table_draft import Block, DraftValue, Reference, mapping
from proxy.cli.imports.table_values import attempts, duration, fits, tokens

PROFILES: Final[Mapping[str, str]] = {
    **{"openai": "openai", "text-completion-openai": "openai", "custom_openai": "openai_compatible"},
    **{"openai_like": "openai_compatible", "litellm_proxy": "openai_compatible", "azure": "azure"},
    **{"azure_text": "azure", "azure_ai": "openai_compatible", "anthropic": "anthropic", "bedrock": "bedrock"},
    **{"bedrock_converse": "bedrock", "sagemaker": "sagemaker", "sagemaker_chat": "sagemaker"},
    **{"vertex_ai": "vertex", "vertex_ai_beta": "vertex", "gemini": "gemini", "groq": "groq", "mistral": "mistral"},
    **{"deepseek": "deepseek", "openrouter": "openrouter", "xai": "xai", "perplexity": "perplexity"},
    **{"cerebras": "cerebras", "sambanova": "sambanova", "nvidia_nim": "nim", "hyperbolic": "hyperbolic"},
    **{"deepinfra": "deepinfra", "nebius": "nebius", "novita": "novita", "huggingface": "huggingface"},
    **{"databricks": "databricks", "github": "github_models", "moonshot": "moonshot", "zai": "zai"},
    **{"dashscope": "dashscope", "cohere": "cohere", "cohere_chat": "cohere", "hosted_vllm": "vllm", "vllm": "vllm"},
    **{"ollama": "ollama_native", "ollama_chat": "ollama_native", "lm_studio": "lm_studio", "llamafile": "llamacpp"},
    **{"fireworks_ai": "fireworks", "together_ai": "together", "replicate": "replicate", "watsonx": "watsonx"},
    **{"ai21": "ai21", "ai21_chat": "ai21", "triton": "triton", "xinference": "openai_compatible"},
    **{"infinity": "openai_compatible", "voyage": "voyage", "jina_ai": "jina", "cloudflare": "cloudflare"},
}
"""Profiles by LiteLLM's name of the provider."""

KEYLESS: Final = frozenset(
    {
        "openai_compatible",
        "vllm",
        "ollama_native",
        "lm_studio",
        "llamacpp",
        "triton",
        "tgi",
        "tei",
        "bedrock",
        "sagemaker",
    }
    | {"vertex", "vertex_anthropic"}
)
"""Profiles whose accounts need no key: self-hosted servers, and clouds whose own credentials are found automatically.
"""

MODES: Final[Mapping[str, Task | None]] = {
    **dict.fromkeys(("chat", "completion", "responses"), None),
    **{"embedding": Task.EMBEDDINGS, "rerank": Task.RERANK, "moderation": Task.MODERATIONS},
    **{"audio_transcription": Task.TRANSCRIPTIONS, "audio_speech": Task.SPEECH, "image_generation": Task.IMAGES},
}
"""Tasks by LiteLLM's `mode` of a model."""

VARIABLES: Final[Mapping[str, str]] = {
    **{"together_ai": "TOGETHERAI_API_KEY", "perplexity": "PERPLEXITYAI_API_KEY", "watsonx": "WATSONX_APIKEY"},
    **{"text-completion-openai": "OPENAI_API_KEY", "cohere_chat": "COHERE_API_KEY"},
}
"""The environment variables from which LiteLLM reads a key that is not in the file, if not PROVIDER_API_KEY."""

NAMES: Final[Mapping[str, str]] = {"ollama_native": "ollama", "github_models": "github"}
"""Names for vendors that are not named like their profile."""

BARE: Final = (("claude", "anthropic"), ("command", "cohere"), ("gemini", "vertex_ai"))
"""Prefixes of model names without a provider, and the provider. Names with no such prefix belong to OpenAI."""

ENDINGS: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(("voyage", "jina"), re.compile(r"/(embeddings|rerank)$")),
    "tei": re.compile(r"/(v1/embeddings|embed|rerank|v1)$"),
    "cloudflare": re.compile(r"(?<=/ai)/run$"),
}
"""Endings of an `api_base` that LiteLLM calls unchanged, by profile. The profile's address omits them."""

_OF_REGIONS: Final = frozenset({"bedrock", "sagemaker", "vertex", "vertex_anthropic"})
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
_STEPS: Final = ("converse/", "converse_like/", "invoke/", "responses/", "o_series/", "gpt5_series/")


@dataclass(slots=True)
class ModelEntry:
    """One entry of `model_list`: the name that clients use, and the deployment."""

    group: str
    endpoint: DraftEndpoint
    section: ForeignSection
    weight: float | None = None
    order: float | None = None
    id: str | None = None
    access_groups: tuple[str, ...] = ()
    team: str | None = None
    public_name: str | None = None


@dataclass(slots=True)
class ModelList:
    """Reads the entries. `credentials` are the sections of `credential_list` by name."""

    accounts: Accounts
    credentials: Mapping[str, ForeignSection] = field(default_factory=dict)

    def entry(self, item: ForeignSection) -> ModelEntry | None:
        """Return an entry. If it cannot be converted, report the reason and return `None`."""
        params, info = _with_api_base(item.section("litellm_params")), item.section("model_info")
        group, model = item.text("model_name"), params.text("model")
        if not group or not model:
            item.report_section("has no model_name or no litellm_params.model: not taken")
            return None
        if model == ANY_MODEL:
            item.report_section("leads every name to every provider: write VENDOR/* for each vendor that is meant")
            return None
        found = self._provider(params, model)
        if found is None:
            item.report_section("its provider is not known here, and there is no api_base: not taken")
            return None
        provider, plain = found
        if not plain or (ANY_MODEL in plain and plain != ANY_MODEL):
            item.report_section("its model is not a name, or a pattern other than PROVIDER/*: not taken")
            return None
        base_model = info.text("base_model")
        task = _task(info, base_model or plain, PROFILES.get(provider, "openai_compatible"))
        profile = self._profile(provider, plain, task, params)
        vendor = self._vendor(provider, profile, params)
        endpoint = DraftEndpoint(vendor, profile, plain, comments=item.comments, task=task)
        endpoint.space = space_of(base_model or plain)
        if base_model is not None:
            endpoint.settings["base_model"] = _maker_and_model(base_model)
        self._remark_on_vendor(endpoint, provider, item)
        self._account(endpoint, provider, params)
        self._common(endpoint, (params, info, item))
        entry = ModelEntry(group, endpoint, item, _weight(params, info, item), params.number("order"), info.text("id"))
        endpoint.name = _name(params, entry.id, profile)
        entry.access_groups = tuple(info.texts("access_groups"))
        if "team_public_model_name" in info:
            entry.team, entry.public_name = info.text("team_id"), info.text("team_public_model_name")
        params.explain_rest(reason_in("litellm_params"))
        info.explain_rest(reason_in("model_info"))
        item.explain_rest(reason_in("litellm_params"))
        return entry

    def _remark_on_vendor(self, endpoint: DraftEndpoint, provider: str, item: ForeignSection) -> None:
        """Remark on guesses about the vendor and on a task that its profile lacks."""
        if provider not in PROFILES:
            item.remark("its provider is not known here: taken for a server that speaks OpenAI's API")
        if provider == "azure_ai":
            item.remark(
                "the address is called as it is written: see whether it ends before /chat/completions or /rerank"
            )
        if endpoint.task is not None and endpoint.task not in load_profiles()[endpoint.profile].tasks:
            item.remark(f"the profile {endpoint.profile} has no {endpoint.task}: such requests are refused")

    def _provider(self, params: ForeignSection, model: str) -> tuple[str, str] | None:
        named = params.text("custom_llm_provider")
        prefix, slash, rest = model.partition("/")
        if named is not None:
            return (named, model.removeprefix(f"{named}/")) if self._is_known(named, params) else None
        if slash and self._is_known(prefix, params):
            for step in _STEPS:
                rest = rest.removeprefix(step)
            return prefix, rest
        if slash:
            return None
        bare = next((provider for start, provider in BARE if model.startswith(start)), "openai")
        params.comments.append(f"The model names no provider: taken for one of {bare}.")
        return bare, model

    def _is_known(self, provider: str, params: ForeignSection) -> bool:
        return provider in PROFILES or "api_base" in params

    def _profile(self, provider: str, model: str, task: Task | None, params: ForeignSection) -> str:
        profile = PROFILES.get(provider, "openai_compatible")
        if profile == "vertex" and "claude" in model:
            return "vertex_anthropic"
        if "api_base" in params and profile in ("openai", "huggingface"):
            if profile == "huggingface":
                return "tei" if task in (Task.EMBEDDINGS, Task.RERANK) else "tgi"
            base = params.text("api_base") or ""
            return "openai" if urlsplit(base).hostname == "api.openai.com" else "openai_compatible"
        return profile

    def _vendor(self, provider: str, profile: str, params: ForeignSection) -> str:
        base = params.text("api_base")
        if profile == "openai_compatible" and provider in PROFILES and base is not None:
            return vendor_of_address(base, self.accounts.variable_of(base), provider)
        return NAMES.get(profile, profile) if provider in PROFILES else provider

    def _account(self, endpoint: DraftEndpoint, provider: str, params: ForeignSection) -> None:
        """Read the key, the address and the cloud's settings. They are in the entry or in the credential to which it
        refers."""
        name = params.text("litellm_credential_name")
        given = self.credentials.get(name or "")
        if name is not None and given is None:
            params.report_key("litellm_credential_name", "names no credential of credential_list")
        settings, profile = endpoint.settings, endpoint.profile
        path = "/v1" if profile == "tgi" else ""
        for section in [params] if given is None else [given.apart(params.comments), params]:
            settings.update(self.accounts.address(section, "api_base", endpoint.vendor, path))
            key = self.accounts.secret(section, "api_key", endpoint.vendor)
            if key is not None:
                settings["api_key"] = key
            version = self.accounts.text(section, "api_version", "2024-10-21")
            if version is not None:
                settings["api_version"] = version
            self._cloud(endpoint, section)
        if profile == "watsonx":
            self._project(endpoint, params)
        base = settings.get("base_url")
        if profile == "anthropic" and isinstance(base, str):
            settings["base_url"] = base.removesuffix("/messages").removesuffix("/v1")
        if profile in ENDINGS and isinstance(base, str):
            settings["base_url"] = ENDINGS[profile].sub("", base)
        if profile == "azure" and isinstance(base, str):
            settings["base_url"] = base.partition("/openai/")[0]
        self._missing(endpoint, provider)

    def _project(self, endpoint: DraftEndpoint, params: ForeignSection) -> None:
        """Append the watsonx project or space to the address, which ends with it in the new configuration."""
        settings, accounts = endpoint.settings, self.accounts
        space = accounts.url_param(params, "space_id")
        project = accounts.url_param(params, "project_id") if space is None else None
        place = space or project or accounts.draft.refer("WATSONX_PROJECT_ID", "sample")
        if "base_url" not in settings:
            settings["base_url"] = accounts.draft.refer("WATSONX_URL", "https://us-south.ml.cloud.ibm.com")
        both = (settings["base_url"], place)
        base, name = (each.text if isinstance(each, Reference) else str(each) for each in both)
        whole = f"{base}/{'projects' if space is None else 'spaces'}/{name}"
        settings["base_url"] = Reference(whole) if any(isinstance(each, Reference) for each in both) else whole

    def _missing(self, endpoint: DraftEndpoint, provider: str) -> None:
        """Add the settings that LiteLLM reads from variables if they are not in the file."""
        settings, draft = endpoint.settings, self.accounts.draft
        if endpoint.profile == "azure" and "base_url" not in settings:
            settings["base_url"] = draft.refer("AZURE_API_BASE", "https://sample.openai.azure.com")
        if endpoint.profile not in KEYLESS and not settings.keys() & {"api_key", "credentials"}:
            variable = VARIABLES.get(provider, f"{provider.upper().replace('-', '_')}_API_KEY")
            settings["api_key"] = draft.refer(variable, f"sample-{variable}")

    def _cloud(self, endpoint: DraftEndpoint, section: ForeignSection) -> None:
        accounts, settings = self.accounts, endpoint.settings
        if endpoint.profile in ("bedrock", "sagemaker"):
            region = aws_region(accounts.url_param(section, "aws_region_name", "us-east-1"))
            before, _, rest = endpoint.model.partition("/")
            if _REGION.fullmatch(before) and rest:
                region, endpoint.model = before, rest
            role = accounts.role(section, "aws_role_name")
            profile = accounts.text(section, "aws_profile_name", "sample")
            accounts.aws_keys(section, "aws_access_key_id", "aws_secret_access_key", "aws_session_token")
            if region is not None or "url_params" not in settings:
                settings.update(accounts.aws(region, role_arn=role, profile=profile))
        elif endpoint.profile in ("vertex", "vertex_anthropic"):
            project = accounts.url_param(section, "vertex_project")
            location = accounts.url_param(section, "vertex_location", "us-central1")
            if project or location or "url_params" not in settings:
                project = project or accounts.draft.refer("VERTEXAI_PROJECT", "sample")
                location = location or accounts.draft.refer("VERTEXAI_LOCATION", "us-central1")
                settings["url_params"] = Block({"project": project, "location": location})
            settings.update(accounts.google_file(section, "vertex_credentials"))
        elif endpoint.profile == "azure":
            self._entra(endpoint, section)

    def _entra(self, endpoint: DraftEndpoint, section: ForeignSection) -> None:
        tenant = self.accounts.url_param(section, "tenant_id")
        client = self.accounts.text(section, "client_id", "sample")
        secret = self.accounts.secret(section, "client_secret", endpoint.vendor, "CLIENT_SECRET")
        if tenant and client and secret:
            place = tenant.text if isinstance(tenant, Reference) else tenant
            url = f"https://login.microsoftonline.com/{place}/oauth2/v2.0/token"
            oidc: dict[str, DraftValue] = {"token_url": Reference(url), "client_id": client, "client_secret": secret}
            scope = "https://cognitiveservices.azure.com/.default"
            endpoint.settings["credentials"] = Block({"oidc": Block({**oidc, "scope": scope})})
        elif tenant or client or secret or "azure_ad_token" in section:
            endpoint.settings.setdefault("credentials", "entra")

    def _common(self, endpoint: DraftEndpoint, sections: Sequence[ForeignSection]) -> None:
        """Read the settings that do not depend on the provider: headers, timeouts, retries, windows, prices."""
        params, info, item = sections
        settings = endpoint.settings
        headers = self._headers(endpoint, params)
        values: dict[str, DraftValue | None] = {
            "headers": headers,
            "timeouts": mapping(
                {"first_event": duration(params, "stream_timeout"), "total": duration(params, "timeout")}
            ),
            "retries": mapping({"attempts": attempts(params, "num_retries") or attempts(params, "max_retries")}),
            "on_unsupported": "drop" if params.flag("drop_params") else None,
            "price": _price(params, endpoint.task) or _price(info, endpoint.task),
            "input_type": _input_type(params),
            "context_window": tokens(info, "max_input_tokens"),
            "limits": _limits(params, info, item),
            "out_of_service": True if info.flag("blocked") else None,
            "circuit_breaker": mapping({"cooldown": duration(params, "cooldown_time")}),
            "max_output_tokens": tokens(info, "max_output_tokens") or tokens(info, "max_tokens"),
        }
        settings.update({key: value for key, value in values.items() if value is not None})

    def _headers(self, endpoint: DraftEndpoint, params: ForeignSection) -> Block | None:
        found: dict[str, DraftValue | None] = {}
        if params.holds_text("organization"):
            found["OpenAI-Organization"] = self.accounts.header(
                params, "organization", "OpenAI-Organization", endpoint.vendor
            )
        for key in ("extra_headers", "headers"):
            found.update(self.accounts.headers(params.section(key), endpoint.vendor))
        return mapping(found)


def _with_api_base(params: ForeignSection) -> ForeignSection:
    """Return the section with `base_url` renamed to `api_base`, if only the former is in the file."""
    if "base_url" not in params or "api_base" in params:
        return params
    entries = {"api_base" if key == "base_url" else key: entry for key, entry in params.node.entries.items()}
    return replace(params, node=replace(params.node, entries=entries))


def _task(info: ForeignSection, model: str, profile: str) -> Task | None:
    mode = info.text("mode")
    if mode is not None and mode in MODES:
        return MODES[mode]
    info.report_key("mode", "has no counterpart: the task is taken from the model's name")
    return task_of(model, profile)


def _input_type(params: ForeignSection) -> str | None:
    found = params.text("input_type")
    if found is not None and not fits("text", found):
        params.report_key("input_type", "is not a valid input type: not taken")
        return None
    return found


def _maker_and_model(base_model: str) -> str:
    """Return the name of a base model with LiteLLM's provider replaced by the vendor's profile."""
    provider, slash, name = base_model.partition("/")
    return f"{PROFILES[provider]}/{name}" if slash and provider in PROFILES else base_model


def _price(section: ForeignSection, task: Task | None) -> Block | None:
    names = {
        "input": "input_cost_per_token",
        "output": "output_cost_per_token",
        "cached_input": "cache_read_input_token_cost",
        "cache_write": "cache_creation_input_token_cost",
        "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    }
    costs = {name: section.number(key) for name, key in names.items() if key in section}
    if task is not None and "input" in costs:
        costs.setdefault("output", 0.0)
    if "input" not in costs or "output" not in costs:
        for key in names.values():
            section.report_key(key, "a price needs both, input and output: not taken")
        return None
    prices: dict[str, DraftValue] = {}
    for name, cost in costs.items():
        if cost is None or not 0 <= cost <= 1:
            section.report_key(names[name], "is not a price of a token between 0 and 1 USD: not taken")
            return None
        prices[name] = round(cost * 1_000_000, 9)
    return Block(prices)


def _weight(params: ForeignSection, info: ForeignSection, item: ForeignSection) -> float | None:
    """Return the weight. If there is none, LiteLLM uses `rpm`, or else `tpm`, as the weight."""
    found = ((key, section) for key in ("weight", "rpm", "tpm") for section in (params, item, info) if key in section)
    return next((number for key, section in found if (number := section.number(key)) is not None), None)


_LIMITS: Final = (
    ("rpm", "requests_per_minute"),
    ("tpm", "tokens_per_minute"),
    ("max_parallel_requests", "concurrent"),
)


def _limits(params: ForeignSection, info: ForeignSection, item: ForeignSection) -> Block | None:
    """Return the limits of a deployment. Each limit is taken from the first section that has it."""
    found: dict[str, DraftValue | None] = {}
    for key, name in _LIMITS:
        for section in (params, item, info):
            number = section.number(key)
            if number is not None and not 1 <= number <= (1_000_000 if name == "concurrent" else 1_000_000_000):
                section.report_key(key, "is not a limit of 1 or more: not taken")
            elif number is not None:
                found.setdefault(name, int(number))
    return mapping(found)


def _name(params: ForeignSection, id: str | None, profile: str) -> str:
    base = params.text("api_base") or ""
    key = "aws_region_name" if profile in ("bedrock", "sagemaker") else "vertex_location"
    region = (params.text(key) or "") if profile in _OF_REGIONS else ""
    return id or (name_of_address(base).partition(".")[0] if base else region) or "default"
