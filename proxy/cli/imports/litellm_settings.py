"""LiteLLM's `config.yaml`: the whole file, as a table.

Sources: LiteLLM's pages "All settings" and "Overview" of its proxy, and litellm 1.109.1, November 2026.
"""

from collections.abc import Callable, Mapping
from typing import Final

from config.addresses import reach, redis_fault
from proxy.cli.imports.accounts import Accounts
from proxy.cli.imports.endpoints import Endpoints
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm_deployments import ModelList
from proxy.cli.imports.litellm_routes import KINDS, POLICIES, Routes
from proxy.cli.imports.table_draft import Block, Reference, TableDraft
from proxy.cli.imports.table_values import attempts, duration, joined

ENVIRONMENT: Final = "os.environ/"

REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("allowed_fails", "cooldown_time"), "every deployment has a circuit breaker (circuit_breaker)"),
    **dict.fromkeys(
        ("retry_policy", "allowed_fails_policy"), "what is tried again is decided for each kind of failure"
    ),
    **dict.fromkeys(("cache", "cache_params"), "answers are not cached"),
    **dict.fromkeys(
        ("callbacks", "success_callback", "failure_callback", "service_callback", "turn_off_message_logging"),
        "there are no callbacks: metrics and the log say what happened",
    ),
    **dict.fromkeys(("database_url", "store_model_in_db"), "there is no database: its models, keys and teams are lost"),
    **dict.fromkeys(("guardrails", "prompts", "mcp_servers", "vector_store_registry"), "there is nothing of the kind"),
    "pass_through_endpoints": "there are no paths of one's own",
    "custom_auth": "clients prove themselves with keys of teams",
    **dict.fromkeys(("alerting", "alerting_threshold"), "alerts are made of metrics"),
    **dict.fromkeys(("set_verbose", "telemetry"), "nothing is sent to the makers, and the log has one level"),
    "enable_pre_call_checks": "a prompt that is certain not to fit is never sent, without a setting",
    **dict.fromkeys(("finetune_settings", "files_settings", "default_team_settings"), "there is nothing of the kind"),
}


def variable_of(text: str) -> str | None:
    """Return the environment variable that a text of LiteLLM's stands for."""
    return text.removeprefix(ENVIRONMENT) if text.startswith(ENVIRONMENT) else None


def litellm_table(root: ForeignSection, name: str) -> TableDraft:
    """Return the table that a configuration of LiteLLM's proxy means."""
    draft = TableDraft()
    root.comments = draft.root.comments
    accounts = Accounts(draft, variable_of)
    named = [each.apart(root.comments) for each in root.sections("credential_list")]
    values = [each.section("credential_values") for each in named]
    reader = ModelList(
        accounts, {each.text("credential_name") or "": own for each, own in zip(named, values, strict=True)}
    )
    routes = Routes(draft, Endpoints(draft))
    for item in root.sections("model_list"):
        entry = reader.entry(item)
        if entry is None:
            draft.section("models").comments += item.comments
        else:
            routes.add(entry)
            if not routes.groups[entry.group].entries:
                draft.section("models").comments += item.comments
    routes.endpoints.write()
    router, settings, general = (
        root.section(key).apart(place.comments)
        for key, place in (
            ("router_settings", draft.section("routes")),
            ("litellm_settings", draft.section("defaults")),
            ("general_settings", draft.section("server")),
        )
    )
    _routing(routes, router, settings)
    _defaults(draft, router, settings)
    _server(draft, accounts, router, settings, general)
    _whole_file(root)
    for section in (*named, *values, router, settings, general, root):
        section.lose_rest(REASONS)
    return draft


def _routing(routes: Routes, router: ForeignSection, settings: ForeignSection) -> None:
    strategy = router.text("routing_strategy")
    if strategy is not None and strategy not in POLICIES:
        router.lose("routing_strategy", "has no counterpart: least_busy is the nearest")
    routes.policy = "weighted" if strategy is None else POLICIES.get(strategy, "least_busy")
    aliases = router.section("model_group_alias")
    for alias in aliases.written():
        inner = aliases.section(alias) if not aliases.holds_text(alias) else None
        target = aliases.text(alias) if inner is None else inner.text("model")
        if target is None or target not in routes.groups:
            aliases.lose(alias, "leads to no model of model_list: not taken")
        else:
            routes.aliases[alias] = target
        if inner is not None:
            inner.lose_rest({"hidden": "every route is listed to the teams that may use it"})
    for section in (router, settings):
        for key in ("fallbacks", *KINDS):
            routes.add_fallbacks(section, key)
        routes.add_defaults(section)
    routes.write()


def _defaults(draft: TableDraft, router: ForeignSection, settings: ForeignSection) -> None:
    defaults = draft.section("defaults")
    if settings.flag("drop_params"):
        defaults.put("on_unsupported", "drop")
    for read, keys, block, name in (
        (duration, (("timeout", router), ("request_timeout", settings)), "timeouts", "total"),
        (duration, (("stream_timeout", router),), "timeouts", "first_event"),
        (attempts, (("num_retries", router), ("num_retries", settings)), "retries", "attempts"),
    ):
        _first(defaults, read, keys, block, name)


def _first(
    defaults: Block,
    read: Callable[[ForeignSection, str], str | int | None],
    keys: tuple[tuple[str, ForeignSection], ...],
    block: str,
    name: str,
) -> None:
    """Write the first of several settings that mean the same, and tell the others."""
    found = None
    for key, section in keys:
        value = read(section, key)
        if found is not None and value is not None and value != found:
            section.lose(key, "another setting of the file comes first: not taken")
        found = value if found is None else found
    if found is not None:
        defaults.block(block).put(name, found)


def _server(
    draft: TableDraft, accounts: Accounts, router: ForeignSection, settings: ForeignSection, general: ForeignSection
) -> None:
    server = draft.section("server")
    if settings.flag("json_logs"):
        server.put("log", "json")
    _limits(server, general)
    if (port := general.number("port")) is not None and 0 < port < 65536:
        server.put("port", int(port))
    if reach(general.text("host") or "") == "loopback":
        server.put("host", "127.0.0.1")
    else:
        general.lose("host", "is for you to say (server.host): beyond this machine a table needs teams")
    model = general.text("completion_model")
    if model is not None:
        if model in draft.section("routes").entries or model in draft.section("models").entries:
            server.block("surfaces").block("openai").put("default_model", model)
        else:
            general.lose("completion_model", "names no model of model_list: not taken")
    _shared(draft, accounts, router)
    _master_key(draft, general)


def _limits(server: Block, general: ForeignSection) -> None:
    if (most := general.number("max_request_size_mb")) is not None:
        if 1 <= most <= 1024:
            server.put("max_body", f"{int(most)}MB")
        else:
            general.lose("max_request_size_mb", "is no size between 1MB and 1GiB: not taken")
    if (most := general.number("global_max_parallel_requests")) is not None:
        if 1 <= most <= 1_000_000:
            server.put("limits", Block({"requests": int(most), "streams": int(most)}))
        else:
            general.lose("global_max_parallel_requests", "is no number of requests: not taken")


def _shared(draft: TableDraft, accounts: Accounts, router: ForeignSection) -> None:
    if "redis_url" in router:
        _shared_url(draft, accounts, router)
    if "redis_url" in router or "redis_host" not in router:
        return
    host = accounts.url_param(router, "redis_host") or draft.refer("REDIS_HOST", "sample")
    port = accounts.url_param(router, "redis_port", "6379")
    password = accounts.secret(router, "redis_password", "redis", "PASSWORD")
    place, number = (each.text if isinstance(each, Reference) else each for each in (host, port or "6379"))
    if redis_fault(f"redis://{'sample' if isinstance(host, Reference) else place}:6379") is not None:
        router.lose("redis_host", "is no host to call: not taken")
    elif not isinstance(port, Reference) and not (number.isdecimal() and 0 < int(number) < 65536):
        router.lose("redis_port", "is no port: not taken")
    else:
        login = f":{password.text}@" if password is not None else ""
        draft.section("server").put("shared", Block({"redis": Reference(f"redis://{login}{place}:{number}")}))


def _shared_url(draft: TableDraft, accounts: Accounts, router: ForeignSection) -> None:
    """Take an address of Redis, which may hold a password, from the environment."""
    url = accounts.secret(router, "redis_url", "redis", "URL")
    if url is not None:
        draft.samples[url.text[2:-1]] = "redis://sample:6379"
        draft.section("server").put("shared", Block({"redis": url}))


def _master_key(draft: TableDraft, general: ForeignSection) -> None:
    if general.text("master_key") is None:
        return
    general.lose("master_key", "a key is not copied: the table has digests of keys")
    variable = "LITELLM_MASTER_KEY_DIGEST"
    draft.samples[variable] = f"sha256:{'0' * 64}"
    team = draft.section("teams").block("master")
    team.comments.append(
        f"The old master key: put `sha256:` and its digest (printf %s KEY | sha256sum) into the environment as "
        f"{variable}, or a digest of `dragoman key new` here."
    )
    team.put("keys", [Reference(f"${{{variable}}}")])
    team.put("models", ["*"])


def _whole_file(root: ForeignSection) -> None:
    names = root.section("environment_variables").written()
    if names:
        root.lose("environment_variables", f"are not set by a table: put them into the environment ({joined(names)})")
    if "include" in root:
        root.lose("include", "names files of LiteLLM's: import each, and name the tables that come of it in `include`")
