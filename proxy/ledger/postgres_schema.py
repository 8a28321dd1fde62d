"""The schema of the ledger in PostgreSQL: numbered steps, each applied in one transaction.

All tables are in the schema `dragoman`, which an operator may create for a user without that right. Requests are
partitioned by month, because dropping a month costs nothing, while deleting its rows leaves a bloated table. The key of
a partitioned table must contain the time.

Source: PostgreSQL 15's documentation (ddl-partitioning, sql-createtable), November 2026.
"""

from datetime import UTC, datetime
from typing import Final

from proxy.ledger.rollups import UNPRICED

LOCK: Final = 0x6472_6C67
"""The number of the advisory lock under which the schema is changed."""

_SPENDING: Final = """
    CREATE TABLE dragoman.{} (
        scope text NOT NULL, slot bigint NOT NULL, requests bigint NOT NULL, tokens bigint NOT NULL,
        cost bigint NOT NULL, unpriced bigint NOT NULL, batch bigint NOT NULL,
        PRIMARY KEY (scope, slot)
    )
    """

_FIRST: Final = (
    "CREATE TABLE dragoman.meta (version integer NOT NULL, zone text NOT NULL, batch bigint NOT NULL)",
    "INSERT INTO dragoman.meta VALUES (1, '', 0)",
    """
    CREATE TABLE dragoman.request (
        id uuid NOT NULL, time timestamptz NOT NULL, request_id text NOT NULL,
        team text NOT NULL, key_name text NOT NULL, user_name text, tags jsonb,
        surface text NOT NULL, asked text NOT NULL, model text NOT NULL, deployment text,
        tokens_in bigint, tokens_cached bigint, tokens_out bigint, tokens_reasoning bigint,
        estimated smallint NOT NULL, cost bigint,
        status smallint NOT NULL, outcome text NOT NULL, ms bigint NOT NULL, attempts integer NOT NULL,
        gateway text NOT NULL,
        PRIMARY KEY (id, time)
    ) PARTITION BY RANGE (time)
    """,
    "CREATE INDEX request_team_time ON dragoman.request (team, time)",
    "CREATE INDEX request_time ON dragoman.request USING brin (time)",
    _SPENDING.format("spend"),
    "CREATE INDEX spend_batch ON dragoman.spend (batch)",
    "CREATE INDEX spend_slot ON dragoman.spend (slot)",
    """
    CREATE TABLE dragoman.usage_day (
        day text NOT NULL, team text NOT NULL, key_name text NOT NULL, model text NOT NULL, deployment text NOT NULL,
        requests bigint NOT NULL, errors bigint NOT NULL, tokens_in bigint NOT NULL, tokens_cached bigint NOT NULL,
        tokens_out bigint NOT NULL, tokens_reasoning bigint NOT NULL, cost bigint NOT NULL,
        unpriced bigint NOT NULL, ms bigint NOT NULL,
        PRIMARY KEY (day, team, key_name, model, deployment)
    )
    """,
    "CREATE INDEX usage_day_team ON dragoman.usage_day (team, day)",
    "CREATE TABLE dragoman.loaded (gateway text PRIMARY KEY, sequence bigint NOT NULL, time timestamptz NOT NULL)",
)

_SECOND: Final = (
    _SPENDING.format("spend_user"),
    "CREATE INDEX spend_user_batch ON dragoman.spend_user (batch)",
    "CREATE INDEX spend_user_slot ON dragoman.spend_user (slot)",
    "UPDATE dragoman.meta SET version = 2",
)

MIGRATIONS: Final = (_FIRST, _SECOND)
"""The migrations. Step n changes the schema to version n + 1."""

_COLUMNS: Final = (
    "id, time, request_id, team, key_name, user_name, tags, surface, asked, model, deployment, tokens_in, "
    "tokens_cached, tokens_out, tokens_reasoning, estimated, cost, status, outcome, ms, attempts, gateway"
)
"""The columns of a request, in the order of the fields of a LedgerRow."""

_DAY_COLUMNS: Final = (
    "day, team, key_name, model, deployment, requests, errors, tokens_in, tokens_cached, tokens_out, "
    "tokens_reasoning, cost, unpriced, ms"
)

INCOMING: Final = "CREATE TEMP TABLE incoming (LIKE dragoman.request) ON COMMIT DROP"

COPY: Final = f"COPY incoming ({_COLUMNS}) FROM STDIN"

ADD_INCOMING: Final = f"""
    INSERT INTO dragoman.request ({_COLUMNS}) SELECT {_COLUMNS} FROM incoming
    ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608 - constant

ADD_SPEND: Final = """
    INSERT INTO dragoman.spend AS old (scope, slot, requests, tokens, cost, unpriced, batch)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (scope, slot) DO UPDATE SET requests = old.requests + excluded.requests,
        tokens = old.tokens + excluded.tokens, cost = old.cost + excluded.cost,
        unpriced = old.unpriced + excluded.unpriced, batch = excluded.batch
"""

ADD_USER_SPEND: Final = ADD_SPEND.replace("dragoman.spend ", "dragoman.spend_user ")

ADD_DAY: Final = f"""
    INSERT INTO dragoman.usage_day AS old ({_DAY_COLUMNS}) VALUES ({", ".join(["%s"] * 14)})
    ON CONFLICT (day, team, key_name, model, deployment) DO UPDATE SET requests = old.requests + excluded.requests,
        errors = old.errors + excluded.errors, tokens_in = old.tokens_in + excluded.tokens_in,
        tokens_cached = old.tokens_cached + excluded.tokens_cached, tokens_out = old.tokens_out + excluded.tokens_out,
        tokens_reasoning = old.tokens_reasoning + excluded.tokens_reasoning, cost = old.cost + excluded.cost,
        unpriced = old.unpriced + excluded.unpriced, ms = old.ms + excluded.ms
"""  # noqa: S608 - constant

ADD_LOADED: Final = """
    INSERT INTO dragoman.loaded AS old (gateway, sequence, time) VALUES (%s, %s, to_timestamp(%s / 1000.0))
    ON CONFLICT (gateway) DO UPDATE SET sequence = greatest(old.sequence, excluded.sequence),
        time = greatest(old.time, excluded.time)
"""

REBUILD_DAYS: Final = f"""
    INSERT INTO dragoman.usage_day ({_DAY_COLUMNS})
    SELECT to_char(time AT TIME ZONE %s, 'YYYY-MM-DD'), team, key_name, model, coalesce(deployment, ''), count(*),
        count(*) FILTER (WHERE outcome <> 'ok'), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_cached), 0),
        coalesce(sum(tokens_out), 0), coalesce(sum(tokens_reasoning), 0), coalesce(sum(cost), 0),
        count(*) FILTER (WHERE {UNPRICED}), sum(ms)
    FROM dragoman.request GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - constant

TOTALS: Final = """
    SELECT scope, sum(requests), sum(tokens), sum(cost) FROM dragoman.spend WHERE slot >= %s GROUP BY scope
"""

SPENT: Final = "SELECT scope, slot, requests, tokens, cost, unpriced FROM"

USER_TOTALS: Final = """
    SELECT scope, sum(requests), sum(tokens), sum(cost) FROM dragoman.spend_user
    WHERE scope = ANY(%s) AND slot >= %s GROUP BY scope
"""

MONTHS: Final = """
    SELECT part.relname FROM pg_inherits JOIN pg_class part ON part.oid = inhrelid
    WHERE inhparent = 'dragoman.request'::regclass
"""
"""The query that returns the existing partitions."""


def month_of(ms: int) -> tuple[int, int]:
    """Return year and month of a time, by UTC."""
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return at.year, at.month


def month_after(month: tuple[int, int]) -> tuple[int, int]:
    """Return the next month."""
    year, number = month
    return (year + 1, 1) if number == 12 else (year, number + 1)


def partition(month: tuple[int, int]) -> str:
    """Return the name of a month's partition, without the schema."""
    return f"request_{month[0]:04}_{month[1]:02}"


def create_partition(month: tuple[int, int]) -> str:
    """Return the statement that makes a month's partition."""
    after = month_after(month)
    begin, end = (f"'{year:04}-{number:02}-01 00:00:00+00'" for year, number in (month, after))
    name = partition(month)
    return (
        f"CREATE TABLE IF NOT EXISTS dragoman.{name} PARTITION OF dragoman.request FOR VALUES FROM ({begin}) TO ({end})"
    )
