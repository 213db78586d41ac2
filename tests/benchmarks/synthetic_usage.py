"""Synthetic usage of many tenants for a month: inserts rows by SQL, and rolls them up.

The rows are inserted as the application's database role, under each tenant's row-level security.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.benchmarks.control_plane import ControlPlane
from tests.benchmarks.results import say

# The current month, whose partition exists. Its future days get rows too.
START: Final = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
END: Final = (START + timedelta(days=31)).replace(day=1)
NOW: Final = END - timedelta(minutes=5)
NUM_USERS: Final = 200  # of each tenant

# Like the IDs that gateways make, a request's ID contains its time (UUID version 7).
_ID_SQL: Final = """(lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
    || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"""
# `number` counts a tenant's rows. Each user works in two languages. `%%` is the operator %, written
# twice for psycopg.
_RECORDS_SQL: Final = f"""
INSERT INTO tenants_usage_record (tenant_id, occurred_at, request_id, user_id, key_id, protocol,
    mode, language, tier, pool, replica, finish_reason, error_code, prompt_tokens, cached_tokens,
    generated_tokens, assemble_ms, first_token_ms, engine_ms, total_ms, trigger, variant,
    filter_reason, num_files, num_snippets, editor, model, num_chars, num_lines, is_syntax_checked)
SELECT %(tenant)s, at, {_ID_SQL},
    ('00000000-0000-4000-8000-' || lpad(to_hex(user_number), 12, '0'))::uuid,
    ('00000000-0000-4000-9000-' || lpad(to_hex(user_number), 12, '0'))::uuid, 'stream', 'inline',
    (array['python', 'typescript', 'go', 'java', 'rust'])[1 + (user_number + number / 7 %% 2) %% 5],
    'fast', 'fast', '10.0.0.1:8000',
    (array['stop', 'stop', 'stop', 'length', 'cancelled', 'superseded'])[1 + number %% 6], '',
    1900, 1880, 12, 2.4, 43, 40, 120, 'automatic', (array['', 'b'])[1 + user_number %% 2], '', 4, 0,
    (array['vscode', 'jetbrains', 'neovim'])[1 + user_number %% 3], 'qwen', 40, 1, true
FROM (
    SELECT number, number %% %(users)s AS user_number,
        %(start)s::timestamptz + (%(end)s::timestamptz - %(start)s) * (number / %(rows)s::float)
            AS at
    FROM generate_series(0, %(rows)s - 1) number
) numbered
"""  # noqa: S608
_OUTCOMES_SQL: Final = """
INSERT INTO tenants_outcome (tenant_id, occurred_at, outcome_id, request_id, user_id, event, chars,
    after_ms, lines)
SELECT tenant_id, occurred_at + interval '2 seconds', gen_random_uuid(), request_id, user_id,
    CASE WHEN random() < 0.3 THEN 'accepted' ELSE 'rejected' END, 40, 1000, 1
FROM tenants_usage_record
WHERE tenant_id = %(tenant)s AND finish_reason = 'stop' AND random() < 0.5
"""


def fill(plane: ControlPlane, tenants: Sequence[str], rows: int) -> None:
    """Insert `rows` usage records for each tenant, and outcomes of some of them."""
    for number, tenant in enumerate(tenants):
        say(f"Tenant {number + 1} of {len(tenants)}: inserting {rows} rows")
        values = {"tenant": tenant, "rows": rows, "users": NUM_USERS, "start": START, "end": END}
        with plane.connect_as_tenant(tenant) as connection:
            connection.execute(_RECORDS_SQL, values)
            connection.execute(_OUTCOMES_SQL, values)
    with plane.connect_as_owner() as connection:
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE tenants_usage_record, tenants_outcome")


def roll_up_all(tenants: Sequence[str]) -> float:
    """Roll up all usage and return the seconds that it took."""
    from caret.foundation.ids import TenantId
    from tenants.usage.rollups.operations import mark_period_dirty, roll_up_tenant

    say("Rolling up all usage")
    began_s = time.perf_counter()
    for tenant in tenants:
        mark_period_dirty(tenant_id=TenantId(tenant), start=START, end=END)
        roll_up_tenant(tenant_id=TenantId(tenant), arrived_until=END)
    return time.perf_counter() - began_s
