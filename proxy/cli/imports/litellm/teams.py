"""Convert LiteLLM's teams and virtual keys to teams.

A key belongs to its team. It becomes a team of its own if it has no team. It also does so if it has settings that only
a team can have (limits per model, its own names) and its team has no limits and budgets, which would no longer apply.
A key is not converted, and so does not work, if it is blocked, has expired, may call nothing, or has an unknown team.

Source: `proxy/auth/user_api_key_auth.py`, `hash_token` and `models/` of litellm 1.108.7, November 2026.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from config.allowed_names import covers
from config.problem import shown
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.access import EVERYTHING, ClientNames, Granted, granted
from proxy.cli.imports.litellm.database_files import Database
from proxy.cli.imports.litellm.routes import Routes
from proxy.cli.imports.litellm.row_remarks import FieldRemarks
from proxy.cli.imports.litellm.team_limits import RowAllowance, read_allowance
from proxy.cli.imports.table_draft import Block, DraftValue, TableDraft
from proxy.cli.imports.table_values import joined, route_name, team_name, unused, word

_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{64}")
_CALLS: Final = re.compile(
    r"llm_api_routes|openai_routes|anthropic_routes|/(v1/)?(chat|completions|messages|responses|embed).*"
)
"""The values of `allowed_routes` that permit calling models."""


@dataclass(slots=True)
class _Team:
    """A team of the new configuration. `aliases` are its own names, which all of its keys may use. `publics` are the
    names of models that only it has; a key may use them if it lists them or lists nothing."""

    row: ForeignSection
    name: str
    grants: Granted
    allowance: RowAllowance
    aliases: dict[str, str] = field(default_factory=dict)
    publics: dict[str, str] = field(default_factory=dict)
    keys: list[DraftValue] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)
    is_blocked: bool = False
    left: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether the team has its own limits or budgets."""
        return self.allowance.is_limited


def write_teams(database: Database, draft: TableDraft, routes: Routes) -> None:
    """Write the teams and keys of the database."""
    if not database.keys and not database.teams:
        return
    reader = _TeamReader(draft, routes.client_names(), routes.team_models(), datetime.now(UTC))
    reader.taken.update(draft.section("teams").entries)
    for row in database.teams:
        reader.add_team(row)
    for row in database.keys:
        row.remarks.count("key", int(reader.add_key(row)), 1)
    reader.write()


@dataclass(slots=True)
class _TeamReader:
    draft: TableDraft
    known: ClientNames
    team_models: Mapping[str, Mapping[str, str]]
    now: datetime
    teams: dict[str, _Team] = field(default_factory=dict)
    own: list[_Team] = field(default_factory=list)
    field_remarks: FieldRemarks = field(default_factory=FieldRemarks)
    digests: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    def add_team(self, row: ForeignSection) -> None:
        """Add a team."""
        id = row.text("team_id") or ""
        if id in self.teams:
            return
        name = self._name(team_name(row.text("team_alias") or id))
        listed = row.texts("models")
        own = self.team_models.get(id, {})
        grants = self._granted(row, listed, own)
        publics = {name: model for name, model in own.items() if grants.everything or name in listed}
        table = row.section("litellm_model_table")
        aliases = _aliases(table, "model_aliases")
        if gone := [shown(name) for name, target in aliases.items() if target not in self.known.names]:
            table.report_key("model_aliases", f"leads to no model that there is: {joined(gone)}")
        team = _Team(row, name, grants, read_allowance(row, self.known), aliases, publics)
        team.is_blocked = row.flag("blocked") is True
        self.teams[id] = team
        self.field_remarks.rest(row, name)

    def add_key(self, row: ForeignSection) -> bool:
        """Add a key. Return whether it was converted."""
        row.comments = self.draft.section("teams").comments
        label = str(row.path[1])
        digest = _digest(row)
        if digest is None or digest in self.digests:
            row.report_section("has no digest: not taken" if digest is None else "comes twice: taken once")
            return False
        self.digests.add(digest)
        if len(row.node.entries) == 1:
            row.report_section("has its digest alone: export with return_full_object=true; not taken")
            return False
        team = self._team_of(row)
        reason = self._refusal(row, team)
        if reason is not None:
            row.report_section(f"{reason}: not taken")
            return False
        is_placed = self._place(row, label, digest, team)
        if is_placed:
            self.field_remarks.rest(row, label)
        return is_placed

    def _team_of(self, row: ForeignSection) -> _Team | None:
        id = row.text("team_id")
        return self.teams.get(id) if id else None

    def _refusal(self, row: ForeignSection, team: _Team | None) -> str | None:
        """Return the reason why a key must not work; `None` if it may."""
        blocked = row.flag("blocked")
        written = row.text("expires")
        expires = _moment(written)
        if blocked:
            return "is blocked"
        if written is not None and (expires is None or expires <= self.now):
            return "has an expiry that is not a time" if expires is None else "has expired"
        if team is None and row.text("team_id"):
            return "its team is not among those of --teams"
        if team is not None and (team.is_blocked or team.allowance.is_nothing):
            return "its team is blocked" if team.is_blocked else "its team may use nothing"
        allowed = row.texts("allowed_routes")
        if allowed and not any(_CALLS.fullmatch(each) for each in allowed):
            return "may call no model (allowed_routes)"
        row.taken.discard("allowed_routes")
        return None

    def _place(self, row: ForeignSection, label: str, digest: str, team: _Team | None) -> bool:
        allowance = read_allowance(row, self.known)
        own = team if team is not None else _Team(row, "", Granted((EVERYTHING,)), RowAllowance())
        listed = row.texts("models")
        grants = self._granted(row, listed, own.publics)
        narrowed = grants.within(own.grants)
        publics = {name: model for name, model in own.publics.items() if grants.everything or name in listed}
        aliases = self._allowed_aliases(_aliases(row, "aliases"), narrowed)
        if allowance.is_nothing or not (narrowed.names or own.aliases or publics):
            row.report_section("may use nothing: not taken" if allowance.is_nothing else "may call no model: not taken")
            return False
        owned = allowance.needs_team or bool(aliases)
        if team is None or (owned and not team.is_limited):
            alone = _Team(row, "", narrowed, allowance, {**own.aliases, **aliases}, publics)
            self._own_team(label, digest, team, alone)
            return True
        if owned:
            _report_team_settings(row, allowance, aliases)
        names = (*narrowed.names, *map(route_name, team.aliases), *map(route_name, publics))
        everything = {*team.grants.names, *map(route_name, team.aliases), *map(route_name, team.publics)}
        narrows = set(names) != everything
        limits = {
            key: most for key, most in allowance.limits.items() if most < team.allowance.limits.get(key, most + 1)
        }
        key = _key(row, _key_name(label, team), digest, names if narrows else (), limits)
        budgets: list[DraftValue] = [*allowance.budgets]
        key.put("budget", budgets or None)
        team.keys.append(key)
        return True

    def _own_team(self, label: str, digest: str, team: _Team | None, own: _Team) -> None:
        """Convert a key to a team."""
        if team is not None:
            own.tags = {"team": team.name}
            team.left += 1
        own.name = self._name(team_name(label if team is None else f"{team.name}-{label}"))
        own.keys.append(_key(own.row, _key_name(label, own), digest, (), {}))
        self.own.append(own)

    def _allowed_aliases(self, aliases: Mapping[str, str], grants: Granted) -> dict[str, str]:
        """Return a key's own names whose targets are granted. LiteLLM checks the targets, not the names."""
        known = {name: self.known.names.get(target) for name, target in aliases.items()}
        return {
            name: aliases[name]
            for name, written in known.items()
            if written is not None and any(covers(pattern, written) for pattern in grants.names)
        }

    def _name(self, wanted: str) -> str:
        name = unused(wanted, self.taken)
        self.taken.add(name)
        return name

    def _granted(self, row: ForeignSection, models: list[str], own: Collection[str]) -> Granted:
        found = granted(models, self.known)
        unknown = [shown(name) for name in found.unknown if name not in own]
        if unknown:
            names = joined(unknown)
            row.note("models", f"names what there is not, and so grants nothing by it: {names}")
        return found

    def write(self) -> None:
        """Write the teams that have keys, and report the others."""
        section = self.draft.section("teams")
        for team in self.teams.values():
            team.row.remarks.count("team", int(bool(team.keys or team.left)), 1)
            if team.keys:
                section.put(team.name, self._block(team))
            elif not team.left:
                team.row.apart(section.comments).report_section("has no key that works, which a team needs: not taken")
            else:
                team.row.apart(section.comments).remark("each of its keys is a team of its own, with the tag `team`")
        for team in self.own:
            section.put(team.name, self._block(team))
        if section.entries:
            remarks = next(iter([*self.teams.values(), *self.own])).row.remarks
            self.field_remarks.write(remarks, section.comments)

    def _block(self, team: _Team) -> Block:
        block = Block({"keys": team.keys}, list(team.row.comments) if team.row.path[0] == "teams" else [])
        models: list[DraftValue] = [*team.grants.names]
        block.put("models", models or None)
        routes: dict[str, DraftValue] = {
            route_name(alias): self.known.names[target]
            for alias, target in {**team.publics, **team.aliases}.items()
            if target in self.known.names
        }
        block.put("routes", Block(routes) if routes else None)
        team.allowance.put(block, self.known)
        tags: dict[str, DraftValue] = {**team.tags}
        block.put("tags", Block(tags) if tags else None)
        return block


def _report_team_settings(row: ForeignSection, allowance: RowAllowance, aliases: Mapping[str, str]) -> None:
    """Report the settings of a key that only a team could have, if its team has limits of its own."""
    if allowance.of_models:
        row.report_key("metadata", "a key has no limits of single models: its own limits and its team's limits apply")
    if aliases:
        row.report_key("aliases", "a key has no names of its own: teams have (teams.NAME.routes)")


def _key(row: ForeignSection, name: str, digest: str, models: tuple[str, ...], limits: dict[str, int]) -> Block:
    expires = _moment(row.text("expires"))
    block = Block({"hash": f"sha256:{digest}", "name": name})
    block.put("expires", None if expires is None else expires.isoformat().replace("+00:00", "Z"))
    listed: list[DraftValue] = [each for each in dict.fromkeys(models) if each != EVERYTHING]
    block.put("models", listed or None)
    block.put("limits", Block({**limits}) if limits else None)
    return block


def _key_name(label: str, team: _Team) -> str:
    name = unused(word(label, "key"), team.names)
    team.names.add(name)
    return name


def _digest(row: ForeignSection) -> str | None:
    """Return a key's digest. LiteLLM's digest is the digest of the whole key, as in this gateway. If the row has the
    key itself, return its digest."""
    text = row.text("token") or ""
    if text.startswith("sk-"):
        return hashlib.sha256(text.encode()).hexdigest()
    return text.lower() if _DIGEST.fullmatch(text) else None


def _moment(text: str | None) -> datetime | None:
    """Return a time of LiteLLM; without a zone it is in UTC. Return `None` if the text is not a time."""
    try:
        found = datetime.fromisoformat(text or "")
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _aliases(section: ForeignSection, key: str) -> dict[str, str]:
    """Return a section's own names with their targets. LiteLLM may store them as text."""
    if section.holds_text(key):
        return _aliases_of_text(section, key)
    inner = section.section(key)
    return {name: target for name in inner.written() if (target := inner.text(name)) is not None}


def _aliases_of_text(section: ForeignSection, key: str) -> dict[str, str]:
    try:
        found = json.loads(section.text(key) or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        section.report_key(key, "is not a mapping of names: not taken")
        return {}
    return {name: target for name, target in found.items() if isinstance(target, str)}
