"""A LiteLLM installation of 39 models, 30 teams and 200 keys, generated from a seed, in the formats of its endpoints.

The fields are the fields of litellm 1.108.7: `LiteLLM_VerificationToken` for `/key/list?return_full_object=true`,
`TeamListResponseObject` for `/team/list`, and the `/model/info` entry of a deployment. All names and keys are made up.
"""

import hashlib
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

NAMES: Final = (
    *("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "o3", "o4-mini", "claude-sonnet-4-5", "claude-haiku-4-5"),
    *("claude-opus-4-1", "gemini-2.5-pro", "gemini-2.5-flash", "mistral-large", "mistral-small", "codestral"),
    *("llama-3.3-70b", "llama-3.1-8b", "deepseek-chat", "deepseek-reasoner", "qwen-72b", "qwen-coder", "command-r"),
    *("phi-4", "gemma-3", "grok-4", "sonar", "nova-pro", "nova-lite", "jamba", "internal-chat", "internal-code"),
)
DOUBLE: Final = ("gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "llama-3.3-70b")
WILD: Final = ("openai", "groq")
VECTORS: Final = ("text-embedding-3-small", "text-embedding-3-large")
GROUPS: Final = {"cheap": NAMES[1:12:3], "beta": NAMES[20:27], "vision": ("gpt-4o", "gemini-2.5-pro", "nova-pro")}
ALIAS: Final = "default"
TEAM_MODEL: Final = "tuned"
DATABASE: Final = 9
"""Models that only the database contains."""

PAST, FUTURE, MADE = "2025-01-31T00:00:00Z", "2031-06-30T12:00:00+00:00", "2025-11-03T09:12:44.120000Z"


@dataclass(slots=True)
class Installation:
    """The configuration, the responses of the endpoints, and each secret key by its alias. Only the holder of a key has
    its secret."""

    config: dict[str, Any]
    models: dict[str, Any]
    teams: list[dict[str, Any]]
    pages: list[dict[str, Any]]
    secrets: dict[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> list[dict[str, Any]]:
        """Return the keys of all pages."""
        return [key for page in self.pages for key in page["keys"]]


def installation(base: str, seed: int = 39) -> Installation:
    """Generate the installation. Every model is at one address, a server that speaks OpenAI's API."""
    random = Random(seed)
    teams = [_team(random, number) for number in range(30)]
    entries = _entries(base, teams[3]["team_id"])
    own, stored = entries[:-DATABASE], entries[-DATABASE:]
    secrets: dict[str, str] = {}
    keys = [_key(random, number, teams, secrets) for number in range(200)]
    pages = [
        {"keys": keys[at : at + 100], "total_count": 200, "current_page": at // 100 + 1, "total_pages": 2}
        for at in (0, 100)
    ]
    config = {
        "model_list": [_configured(entry) for entry in own],
        "router_settings": {
            "routing_strategy": "simple-shuffle",
            "model_group_alias": {ALIAS: "gpt-4o"},
            "fallbacks": [{"gpt-4o": ["claude-sonnet-4-5"]}, {"claude-sonnet-4-5": ["gemini-2.5-pro"]}],
            "allowed_fails": 3,
            "cooldown_time": 30,
        },
        "litellm_settings": {"drop_params": True, "request_timeout": 600, "callbacks": ["langfuse_otel"]},
        "general_settings": {"master_key": "sk-master-canary", "database_url": "postgresql://u:canary@db/litellm"},
    }
    listed = {"data": [_listed(entry, entry in stored) for entry in entries]}
    return Installation(config, listed, teams, pages, secrets)


def _entries(base: str, team: str) -> list[dict[str, Any]]:
    rows = [*((name, name) for name in NAMES), *((name, f"{name}-eu") for name in DOUBLE)]
    rows += [(f"{vendor}/*", "*") for vendor in WILD] + [(name, name) for name in VECTORS]
    entries = [_entry(base, name, model, number) for number, (name, model) in enumerate(rows)]
    public = {"team_id": team, "team_public_model_name": TEAM_MODEL}
    tuned = _entry(base, f"model_name_{team}_7f", TEAM_MODEL, len(rows))
    tuned["model_info"].update(public)
    return [*entries, tuned]


def _entry(base: str, name: str, model: str, number: int) -> dict[str, Any]:
    provider = name.partition("/")[0] if model == "*" else "openai"
    params: dict[str, Any] = {"model": f"{provider}/{model}", "api_base": base, "rpm": 6000, "tpm": 9_000_000}
    info: dict[str, Any] = {"id": f"id-{number}", "mode": "embedding" if name in VECTORS else "chat"}
    groups = [group for group, members in GROUPS.items() if name in members]
    if groups:
        info["access_groups"] = groups
    if model != "*":
        info |= {"input_cost_per_token": 1.5e-06, "output_cost_per_token": 6e-06, "max_input_tokens": 128000}
    return {"model_name": name, "litellm_params": params, "model_info": info}


def _configured(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "litellm_params": {**entry["litellm_params"], "api_key": "os.environ/SHOP_KEY"}}


def _listed(entry: dict[str, Any], is_stored: bool) -> dict[str, Any]:
    """Return the `/model/info` entry of a model: without the key, with LiteLLM's own facts and defaults."""
    params = {**entry["litellm_params"], "use_in_pass_through": False, "use_litellm_proxy": False}
    facts = {"db_model": is_stored, "key": entry["model_name"], "litellm_provider": "openai", "supports_vision": True}
    more = {
        "updated_at": MADE,
        "output_cost_per_image": None,
        "tpm": None,
        "rpm": None,
        "supported_openai_params": ["n"],
    }
    return {**entry, "litellm_params": params, "model_info": {**entry["model_info"], **facts, **more}}


_TEAM: Final[dict[str, Any]] = {
    **{
        "organization_id": None,
        "admins": [],
        "members": [],
        "members_with_roles": [{"user_id": "u1", "role": "admin"}],
    },
    **{"team_member_permissions": [], "metadata": {}, "tpm_limit": None, "rpm_limit": None, "max_budget": None},
    **{"soft_budget": None, "budget_duration": None, "budget_limits": None, "models": [], "blocked": False},
    **{"router_settings": None, "access_group_ids": [], "spend": 12.5, "max_parallel_requests": None},
    **{"budget_reset_at": None, "model_id": None, "model_spend": {}, "model_max_budget": {}, "policies": []},
    **{"litellm_model_table": None, "object_permission": None, "updated_at": MADE, "created_at": MADE, "keys": []},
    **{"team_memberships": []},
}


def _team(random: Random, number: int) -> dict[str, Any]:
    models: list[str] = [
        [],
        ["all-proxy-models"],
        random.sample(NAMES, 6),
        ["cheap", random.choice(NAMES)],
        ["openai/*", *random.sample(NAMES, 3)],
        ["beta", "vision"],
        ["no-default-models"],
    ][number % 7]
    team: dict[str, Any] = {**_TEAM, "team_id": f"{number:08x}-team", "team_alias": f"Team {number}", "models": models}
    if number % 3 == 1:
        team |= {"rpm_limit": 600, "tpm_limit": 200_000, "max_parallel_requests": 20}
    if number % 5 == 2:
        spans = ("30d", "7d", "1d", "1mo", "14d")
        team |= {"max_budget": 500.0, "budget_duration": random.choice(spans), "soft_budget": 400.0}
    if number % 11 == 5:
        team["litellm_model_table"] = {"model_aliases": {"chat": "gpt-4o"}, "created_by": "u", "updated_by": "u"}
    if number == 3:
        team["models"].append(TEAM_MODEL)
    return team | {"blocked": number == 29}


_KEY: Final[dict[str, Any]] = {
    **{
        "spend": 0.25,
        "total_spend": 0.25,
        "max_budget": None,
        "expires": None,
        "models": [],
        "aliases": {},
        "config": {},
    },
    **{"user_id": "default_user_id", "team_id": None, "agent_id": None, "project_id": None},
    **{"max_parallel_requests": None, "metadata": {}, "tpm_limit": None, "rpm_limit": None, "tpd_limit": None},
    **{"budget_duration": None, "budget_reset_at": None, "allowed_cache_controls": [], "allowed_routes": []},
    **{"key_type": "default", "permissions": {}, "model_spend": {}, "model_max_budget": {}, "budget_fallbacks": {}},
    **{"soft_budget_cooldown": False, "blocked": None, "litellm_budget_table": None, "budget_id": None, "org_id": None},
    **{"created_at": MADE, "created_by": "u", "updated_at": MADE, "updated_by": "u", "last_active": None},
    **{"object_permission_id": None, "object_permission": None, "access_group_ids": [], "rotation_count": 0},
    **{"auto_rotate": False, "rotation_interval": None, "last_rotation_at": None, "key_rotation_at": None},
    **{"router_settings": None, "budget_limits": None},
}


def _key(random: Random, number: int, teams: list[dict[str, Any]], secrets: dict[str, str]) -> dict[str, Any]:
    alias = f"key-{number}"
    secrets[alias] = secret = f"sk-canary-{number}-{random.getrandbits(64):016x}"
    models: list[str] = [
        [],
        ["all-team-models"],
        random.sample(NAMES, 5),
        ["cheap"],
        [],
        ["openai/*"],
        ["openai/gpt-9", random.choice(NAMES), "gone-model"],
        [ALIAS],
        ["no-default-models"],
    ][number % 9]
    owner = None if number % 10 == 9 else teams[number % 30]
    listed = [name for name in owner["models"] if name in NAMES] if owner else []
    if number % 9 == 2 and len(listed) > 2:
        models = [*listed[:2], random.choice(NAMES)]
    team = owner["team_id"] if owner else None
    token = hashlib.sha256(secret.encode()).hexdigest()
    key: dict[str, Any] = {**_KEY, "token": token, "key_name": f"sk-...{secret[-4:]}", "key_alias": alias}
    key |= {"models": models, "team_id": team}
    if number % 4 == 0:
        key |= {"rpm_limit": 60, "tpm_limit": 20_000, "max_parallel_requests": 4}
    if number % 8 == 3:
        key |= {"max_budget": 25.0, "budget_duration": "30d", "litellm_budget_table": {"soft_budget": 20.0}}
    if number % 13 == 6:
        key["expires"] = PAST if number % 2 else FUTURE
    if number % 17 == 4:
        key["blocked"] = True
    if number % 23 == 9:
        key["aliases"] = {"mine": "gpt-4o-mini"}
    return key
