"""Second of three: entries that have no place in the chain get one, after those that have.

They are chained in the order in which they were made. Run it again when a process of the older
version has written meanwhile: what has a place keeps it.
"""

from contextlib import contextmanager
from typing import Any

from django.db import migrations

from tenants.security.audit.hash_chain import GENESIS, build_document, hash_document

TABLES = ("tenants_auditentry", "tenants_audithead")


def fill(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    entries = apps.get_model("tenants", "AuditEntry").objects.using(alias)
    heads = apps.get_model("tenants", "AuditHead").objects.using(alias)
    with _seen_by_the_owner(schema_editor):
        loose = entries.filter(sequence=None)
        # Made into a list: a cursor would go on through the rows that are written meanwhile.
        for tenant_id in list(loose.order_by().values_list("tenant_id", flat=True).distinct()):
            head = heads.filter(tenant_id=tenant_id).first()
            sequence, last = (head.sequence, bytes(head.hash)) if head else (0, GENESIS)
            for entry in loose.filter(tenant_id=tenant_id).order_by("id").iterator():
                sequence += 1
                last = _link(entries, entry, sequence, last)
            heads.update_or_create(
                tenant_id=tenant_id, defaults={"sequence": sequence, "hash": last}
            )


def _link(entries: Any, entry: Any, sequence: int, last: bytes) -> bytes:
    entry.sequence, entry.previous_hash = sequence, last
    entry.actor_kind, entry.actor_key = "user" if entry.actor_id else "platform", ""
    entry.hash = linked = hash_document(build_document(entry))
    columns = ("sequence", "previous_hash", "actor_kind", "actor_key", "hash")
    entries.filter(tenant_id=entry.tenant_id, id=entry.id).update(
        **{name: getattr(entry, name) for name in columns}
    )
    return linked


@contextmanager
def _seen_by_the_owner(schema_editor: Any) -> Any:
    """FORCE hides every row from the tables' owner, who migrates; the migration's transaction holds
    the tables locked until it is back."""
    for table in TABLES:
        schema_editor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    yield
    # Keys that are checked at the commit would forbid the ALTER.
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for table in TABLES:
        schema_editor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0006_audit_chain_expand"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
