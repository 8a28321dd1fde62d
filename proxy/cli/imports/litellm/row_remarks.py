"""Report the fields of LiteLLM's keys and teams that are not settings of the configuration. There is one remark per
reason, with the names of the keys and teams.

Source: `LiteLLM_VerificationToken`, `UserAPIKeyAuth` and `LiteLLM_TeamTable` of litellm 1.108.7, November 2026.
"""

from dataclasses import dataclass, field
from typing import Final

from config.problem import Position, Problem
from config.reading.yaml_tree import ListNode, MapNode, Node, ScalarNode
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.reasons import TAGS, compiled, first_reason
from proxy.cli.imports.remarks import Reason, Remarks
from proxy.cli.imports.table_values import joined

_RECORDS: Final = Reason("LiteLLM's own records, which a config file does not have", "note")
_PEOPLE: Final = Reason("people, organizations, projects and agents are not distinguished: their grants are lost")

ROWS: Final = compiled(
    (
        (
            "token|api_key|key_name|key_alias|(created|updated|settings_updated|last_refreshed|last_rotation|budget_reset"
            "|last_active)(_at|_by)?|last_active|created_by_user|rotation_count|model_id|object_permission_id"
            "|litellm_model_table|key_type|team_alias|team_id|is_session_token|parent_otel_span|request_route"
            "|via_virtual_key|requires_fresh_policy|team_memberships|keys|matched_model_access_groups|authenticated_by_.*",
            _RECORDS,
        ),
        (
            "spend|total_spend|model_spend|.*_spend|.*_snapshot|.*_invocation_cost|budget_reservation|budget_throttle_pct",
            Reason("what was spent is not carried over: budgets begin with nothing spent", "note"),
        ),
        (
            "team_(models|blocked|metadata|model_aliases|max_budget|soft_budget|.*_limit|model_max_budget|object_permission.*)",
            Reason("repeats its team's settings, which are read there", "note"),
        ),
        (
            "members|members_with_roles|admins|team_member.*|default_team_member_.*",
            Reason("a team has keys and no members: limits of single members are lost"),
        ),
        (
            "user_id|user|user_.*|org_id|organization_.*|org_.*|project_.*|agent_.*|.*agent.*|end_user_.*|jwt_claims",
            _PEOPLE,
        ),
        (
            "auto_rotate|rotation_interval|key_rotation_at",
            Reason("keys are not changed by themselves: `dragoman key new` makes one"),
        ),
        (
            "budget_id",
            Reason(
                "names a budget that this export does not have: its amounts and limits are lost (/budget/info shows "
                "them); write budget and limits"
            ),
        ),
        ("model_max_budget", Reason("a budget is over all models: none is for one of them")),
        ("budget_fallbacks", Reason("is budget.then.route of a team, one name for all models: for you to write")),
        (
            "soft_budget_cooldown|allowed_cache_controls|permissions|config",
            Reason("has no counterpart: there is nothing of the kind"),
        ),
        ("allowed_routes", Reason("a key may call every API for its models: there are no paths to allow")),
        ("router_settings", Reason("is teams.NAME.routes: for you to write")),
        (
            "access_group_ids",
            Reason("names groups that these exports do not have: models that only they grant are not granted"),
        ),
        (
            "object_permission|mcp_.*|policies|allow_team_guardrail_config|guardrails|allowed_model_region|.*object_permission",
            Reason("guards are plugins (teams.NAME.plugins); there are no MCP servers, agents and vector stores"),
        ),
        ("metadata", Reason("is reported field by field", "note")),
        (".*_per_model", Reason("is read from metadata", "note")),
    )
)

METADATA: Final = compiled(
    (
        ("tags|.*tags.*", TAGS),
        (
            "logging|.*callback.*|.*langfuse.*",
            Reason("callbacks of a team are server.tracing, payload_log.teams and sinks (plugins)"),
        ),
        ("guardrails|.*guardrail.*|policies", Reason("guards are plugins (teams.NAME.plugins)")),
        ("soft_budget_alerting_emails|.*email.*", Reason("a warning is a line of the log and a metric")),
        ("soft_budget", Reason("is a budget that warns (`budget` with then: warn): for you to write")),
        (".*_limit_type|.*_(rpm|tpm)_limit", Reason("limits hold as they are written (limits)", "note")),
        (
            ".*",
            Reason("is for reports of usage teams.NAME.tags, by name and value; a key has no tags: for you to write"),
        ),
    )
)


@dataclass(slots=True)
class FieldRemarks:
    """Collects the remarks on fields of rows, one remark per reason."""

    _found: dict[tuple[str, Reason], tuple[Position, dict[str, None], dict[str, None]]] = field(default_factory=dict)

    def rest(self, row: ForeignSection, label: str) -> None:
        """Collect the unread fields of a row and of its metadata."""
        self._collect(row, label, "", ROWS)
        self._collect(row.section("metadata"), label, "metadata.", METADATA)

    def _collect(
        self, section: ForeignSection, label: str, before: str, rows: "tuple[tuple[object, Reason], ...]"
    ) -> None:
        kind = str(section.path[0])
        for key, entry in section.node.entries.items():
            if key in section.taken or is_blank(entry.node):
                continue
            reason = first_reason(rows, key)  # type: ignore[arg-type]
            _, fields, labels = self._found.setdefault((kind, reason), (entry.key_at, {}, {}))
            fields[f"{before}{key}"] = None
            labels[label] = None

    def write(self, remarks: Remarks, comments: list[str]) -> None:
        """Write the remarks."""
        for (kind, reason), (at, fields, labels) in self._found.items():
            concerned = "" if reason.kind == "note" else f" ({joined(labels)})"
            problem = Problem.at(at, (kind,), f"{joined(fields)}: {reason.text}{concerned}")
            remarks.problems.append(problem)
            comments.append(f"{kind}: {problem.message}")
            if reason.kind == "lost":
                remarks.settings.add(problem)


def is_blank(node: Node) -> bool:
    """Return whether a field is blank: null, empty, zero or false."""
    if isinstance(node, MapNode):
        return all(is_blank(entry.node) for entry in node.entries.values())
    if isinstance(node, ListNode):
        return not node.items
    return isinstance(node, ScalarNode) and (node.kind == "null" or node.text in ("", "false", "0", "0.0"))
