"""Convert LiteLLM's `config.yaml` and exports of its database to a configuration.

`/model/info` also lists the models of the configuration, without their credentials. It adds data from LiteLLM's price
list to each model. Only prices and windows of that data are read, because the operator did not set the rest.

Sources: LiteLLM's pages "All settings" and "Overview" of its proxy; `model_info_v1` and
`remove_sensitive_info_from_deployment` of litellm 1.108.7, November 2026.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from config.addresses import reach
from config.problem import shown
from config.reading.yaml_tree import MapNode, ScalarNode
from config.time_zones import zone_fault
from proxy.cli.imports.accounts import Accounts
from proxy.cli.imports.endpoints import Endpoints
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.cache import write_cache, write_shared
from proxy.cli.imports.litellm.database_files import NO_DATABASE, Database
from proxy.cli.imports.litellm.deployments import ModelList
from proxy.cli.imports.litellm.reasons import reason_in
from proxy.cli.imports.litellm.routes import KINDS, POLICIES, Routes
from proxy.cli.imports.litellm.team_limits import budget_of_all, each_user_of
from proxy.cli.imports.litellm.teams import write_teams
from proxy.cli.imports.table_draft import Block, Reference, TableDraft
from proxy.cli.imports.table_values import attempts, duration, joined

_COMPUTED: Final = ("use_in_pass_through", "use_litellm_proxy", "merge_reasoning_content_in_choices", "use_xai_oauth")
"""Switches that LiteLLM lists for every model, even if they have their default values."""


def database_models(database: Database, configured: Sequence[ForeignSection]) -> Iterator[ForeignSection]:
    """Yield the models that LiteLLM's database holds. Also yield models of LiteLLM's configuration, if the export lists
    them and `configured` lacks them."""
    names = {item.text("model_name") for item in configured}
    for row in database.models:
        info = row.section("model_info")
        is_of_database = info.flag("db_model")
        if is_of_database or row.text("model_name") not in names:
            yield _entry(row)


def _entry(row: ForeignSection) -> ForeignSection:
    """Return a row without the data that LiteLLM adds to the operator's settings, and without masked values."""
    entries = dict(row.node.entries)
    params = row.section("litellm_params")
    for name, each in params.node.entries.items():
        if is_masked(each.node):
            params.note(name, "is masked in this export: what the environment has is used, or write it")
    for key, keep in (("litellm_params", _is_set), ("model_info", _is_own)):
        entry = entries.get(key)
        if entry is not None and isinstance(entry.node, MapNode):
            kept = {name: each for name, each in entry.node.entries.items() if keep(name, each.node)}
            entries[key] = replace(entry, node=replace(entry.node, entries=kept))
    return ForeignSection(replace(row.node, entries=entries), row.path, row.remarks, [])


def _is_set(name: str, node: object) -> bool:
    if name in _COMPUTED and isinstance(node, ScalarNode) and node.text == "false":
        return False
    return not is_masked(node)


def is_masked(node: object) -> bool:
    """Return whether a value is masked by LiteLLM."""
    return isinstance(node, ScalarNode) and node.kind == "text" and "****" in node.text


_OWN: Final = frozenset(
    {"id", "base_model", "access_groups", "team_id", "team_public_model_name", "mode", "blocked", "tier"}
    | {"max_tokens", "max_input_tokens", "max_output_tokens", "input_cost_per_token", "output_cost_per_token"}
    | {"cache_read_input_token_cost", "cache_creation_input_token_cost"}
)


def _is_own(name: str, node: object) -> bool:
    return name in _OWN and not (isinstance(node, ScalarNode) and node.text in ("", "false"))


MAX_FAILURES: Final = 1000

ENVIRONMENT: Final = "os.environ/"


def variable_of(text: str) -> str | None:
    """Return the environment variable to which a text of LiteLLM refers; `None` for a literal text."""
    return text.removeprefix(ENVIRONMENT) if text.startswith(ENVIRONMENT) else None


def litellm_table(root: ForeignSection, name: str, database: Database = NO_DATABASE) -> TableDraft:
    """Return the configuration that corresponds to LiteLLM's configuration and the exports of its database."""
    draft = TableDraft()
    root.comments = draft.root.comments
    accounts = Accounts(draft, variable_of)
    named = [each.apart(root.comments) for each in root.sections("credential_list")]
    values = [each.section("credential_values") for each in named]
    reader = ModelList(
        accounts, {each.text("credential_name") or "": own for each, own in zip(named, values, strict=True)}
    )
    routes = Routes(draft, Endpoints(draft))
    configured = list(root.sections("model_list"))
    for item in chain(configured, database_models(database, configured)):
        _take_entry(routes, reader, item)
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
    draft.root.put("budget", budget_of_all(settings))
    draft.root.put("each_user", each_user_of(settings))
    if "environment_variables" in root or "include" in root:
        _report_file_settings(root)
    write_teams(database, draft, routes)
    if stored := [
        row.text("model_name") or "" for row in database.models if row.section("model_info").flag("db_model")
    ]:
        root.remarks.hints.append(
            f"/model/info has no credentials: what the database alone has ({joined(stored)}) is called with those of "
            "the environment, or with none: write api_key where one is needed."
        )
    _remark_on_address(draft, root)
    if database == NO_DATABASE and (groups := routes.client_names().groups):
        names = f"access groups ({joined(groups)}) name several models: a team's `models` lists them, as --teams and"
        root.remarks.hints.append(f"{names} --keys do.")
    for section in (*named, *values):
        section.report_unread({})
    for key, section in (("router_settings", router), ("litellm_settings", settings), ("general_settings", general)):
        section.explain_rest(reason_in(key))
    root.explain_rest(reason_in("top"))
    return draft


def _take_entry(routes: Routes, reader: ModelList, item: ForeignSection) -> None:
    """Add an entry of a list of models, and count it."""
    models = routes.draft.section("models")
    entry = reader.entry(item)
    if entry is None:
        models.comments += item.comments
        item.remarks.count("model", 0, 1)
        return
    taken = routes.add(entry)
    item.remarks.count("model", int(taken), 1)
    if not routes.groups[entry.group].entries:
        models.comments += item.comments


def _remark_on_address(draft: TableDraft, root: ForeignSection) -> None:
    """Remark on the listen address, which differs from LiteLLM's."""
    server = draft.section("server")
    host, port = (server.entries.get(key, otherwise) for key, otherwise in (("host", "127.0.0.1"), ("port", 8080)))
    hint = (
        "LiteLLM listens on 0.0.0.0:4000 unless its command line differs; this configuration listens on "
        f"{host}:{port} (server.host, server.port)."
    )
    server.comments.append(hint)
    root.remarks.hints.append(hint)


def _routing(routes: Routes, router: ForeignSection, settings: ForeignSection) -> None:
    strategy = router.text("routing_strategy")
    if strategy is not None and strategy not in POLICIES:
        router.report_key("routing_strategy", "has no counterpart: least_busy is the nearest")
    routes.policy = "weighted" if strategy is None else POLICIES.get(strategy, "least_busy")
    aliases = router.section("model_group_alias")
    for alias in aliases.written():
        inner = aliases.section(alias) if not aliases.holds_text(alias) else None
        target = aliases.text(alias) if inner is None else inner.text("model")
        if target is None or target not in routes.groups:
            aliases.report_key(alias, "leads to no model of model_list: not taken")
        else:
            routes.aliases[alias] = target
        if inner is not None:
            if inner.flag("hidden"):
                routes.hidden.add(alias)
            inner.report_unread({})
    if strategy in (None, "simple-shuffle"):
        _remark_on_weights(routes, router)
    routes.read_depth(router)
    for section in (router, settings):
        for key in ("fallbacks", *KINDS):
            routes.add_fallbacks(section, key)
        routes.add_defaults(section)
    routes.write()


def _remark_on_weights(routes: Routes, router: ForeignSection) -> None:
    """Remark that `rpm` and `tpm` are limits here, if LiteLLM uses them only as weights."""
    if ENFORCED in router.texts("optional_pre_call_checks"):
        return
    router.taken.discard("optional_pre_call_checks")
    limited = [
        entry.group
        for group in routes.groups.values()
        for entry in group.entries
        if isinstance(limits := entry.endpoint.settings.get("limits"), Block) and limits.entries.keys() & _WEIGHED
    ]
    if limited:
        hint = (
            "rpm and tpm of a deployment are limits here, and beyond them its requests go elsewhere or are refused; "
            "LiteLLM's simple-shuffle only weighs by them. Take `limits` away where the vendor has no such limit: "
            f"{joined(dict.fromkeys(map(shown, limited)))}."
        )
        routes.draft.section("models").comments.append(hint)
        router.remarks.hints.append(hint)


ENFORCED: Final = "enforce_model_rate_limits"
"""The router check that makes LiteLLM enforce `rpm` and `tpm` under every strategy."""

_WEIGHED: Final = {"requests_per_minute", "tokens_per_minute"}

_RETRIES: Final = ("num_retries", "num_retries", "max_retries")


def _failures(section: ForeignSection, key: str) -> int | None:
    """Return the number of failures that open a circuit. LiteLLM's number is the failures that it allows per minute."""
    number = section.number(key)
    if number is not None and not 0 <= number < MAX_FAILURES:
        section.report_key(key, f"is not a number of failures below {MAX_FAILURES}: not taken")
        return None
    return None if number is None else int(number) + 1


def _defaults(draft: TableDraft, router: ForeignSection, settings: ForeignSection) -> None:
    defaults = draft.section("defaults")
    if settings.flag("drop_params"):
        defaults.put("on_unsupported", "drop")
    for read, keys, block, name in (
        (duration, (("timeout", router), ("request_timeout", settings)), "timeouts", "total"),
        (duration, (("stream_timeout", router),), "timeouts", "first_event"),
        (attempts, tuple(zip(_RETRIES, (router, settings, router), strict=True)), "retries", "attempts"),
        (_failures, (("allowed_fails", router), ("allowed_fails", settings)), "circuit_breaker", "failures"),
        (duration, (("cooldown_time", router), ("cooldown_time", settings)), "circuit_breaker", "cooldown"),
    ):
        _write_first(defaults, read, keys, block, name)


def _write_first(
    defaults: Block,
    read: Callable[[ForeignSection, str], str | int | None],
    keys: tuple[tuple[str, ForeignSection], ...],
    block: str,
    name: str,
) -> None:
    """Write the first of several equivalent settings, and report the others."""
    found = None
    for key, section in keys:
        value = read(section, key)
        if found is not None and value is not None and value != found:
            section.report_key(key, "another setting of the file comes first: not taken")
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
        general.note("host", "is for you to decide (server.host): to listen beyond this machine, teams are needed")
    model = general.text("completion_model")
    if model is not None:
        if model in draft.section("routes").entries or model in draft.section("models").entries:
            server.block("surfaces").block("openai").put("default_model", model)
        else:
            general.report_key("completion_model", "names no model of model_list: not taken")
    write_shared(draft, accounts, router, "redis_")
    write_cache(draft, accounts, settings)
    _zone(server, settings)
    _master_key(draft, general)


def _limits(server: Block, general: ForeignSection) -> None:
    if (most := general.number("max_request_size_mb")) is not None:
        if 1 <= most <= 1024:
            server.put("max_body", f"{int(most)}MB")
        else:
            general.report_key("max_request_size_mb", "is not a size between 1MB and 1GiB: not taken")
    if (most := general.number("global_max_parallel_requests")) is not None:
        if 1 <= most <= 1_000_000:
            server.put("limits", Block({"requests": int(most), "streams": int(most)}))
        else:
            general.report_key("global_max_parallel_requests", "is not a number of requests: not taken")


def _zone(server: Block, settings: ForeignSection) -> None:
    zone = settings.text("timezone")
    if zone is not None and zone_fault(zone) is not None:
        settings.report_key("timezone", "is not a time zone that this machine knows: not taken")
    elif zone is not None:
        server.put("timezone", zone)


def _master_key(draft: TableDraft, general: ForeignSection) -> None:
    if general.text("master_key") is None:
        return
    general.note("master_key", "a key is not copied: the config file has its digest, and the admin listener a token")
    variable = "LITELLM_MASTER_KEY_DIGEST"
    draft.samples[variable] = f"sha256:{'0' * 64}"
    team = draft.section("teams").block("master")
    team.comments.append(
        f"The old master key: put `sha256:` and its digest (printf %s KEY | sha256sum) into the environment as "
        f"{variable}, or a digest of `dragoman key new` here."
    )
    team.put("keys", [Reference(f"${{{variable}}}")])
    team.put("models", ["*"])


def _report_file_settings(root: ForeignSection) -> None:
    names = root.section("environment_variables").written()
    if names:
        root.note(
            "environment_variables", f"are not set by a config file: set them in the environment ({joined(names)})"
        )
    if "include" in root:
        root.report_key("include", "names files of LiteLLM's: import each, and list the new files in `include`")
