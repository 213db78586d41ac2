"""What a certificate of an erasure says: what went and how, what stays, and on what ground."""

from typing import Any, Final

from django.utils.translation import gettext_noop

from caret.foundation.ids import TenantId
from tenants.models import Erasure
from tenants.security.encryption.queries import find_destruction_proofs

_DUTY: Final = "legal obligation (6(1)(c))"
_AUDIT_OF_PERSON: Final = ("audit entries: ids and network addresses, no names", _DUTY)
_AUDIT_OF_TENANT: Final = ("audit entries: also policies, names of teams and of domains", _DUTY)
# What neither a person's wish nor a tenant's end takes away, with the ground it is kept on.
_KEPT: Final = (
    ("usage records and outcomes, under an id that leads to nobody", "contract (6(1)(b))"),
    ("consent receipts, as the evidence that 7(1) asks for", _DUTY),
    ("ledger and invoices: sums, no names", _DUTY),
    ("memberships, keys and invitations as rows without a name", _DUTY),
)
_PERSONS: Final = "the account, once no other tenant of this installation knows it"


def facts_of(row: Erasure) -> dict[str, Any]:
    """Inside the tenant's scope. Each key is tried once more: that nothing opens is seen, not
    supposed."""
    kept = (_AUDIT_OF_TENANT if row.user_id is None else _AUDIT_OF_PERSON, *_KEPT)
    return {
        "data_class": "data_subject" if row.user_id is not None else "tenant",
        "surface": "Postgres, object store, Redis",
        "method": gettext_noop("crypto-shredding, deletion and pseudonymisation"),
        "reason": "erasure" if row.user_id is not None else "shredding",
        "user_id": None if row.user_id is None else str(row.user_id),
        "rows": row.counts,
        "emptied": _PERSONS,
        "kept": [{"what": what, "legal_basis": basis} for what, basis in kept],
        "held_by": row.held_by,
        "keys": _keys(row),
        "demanded_at": row.requested_at.isoformat(),
    }


def _keys(row: Erasure) -> list[dict[str, Any]]:
    tenant_id = TenantId(str(row.tenant_id))
    scope = None if row.user_id is None else f"user:{row.user_id}"
    evidence = {
        str(each.key_id): each for each in find_destruction_proofs(tenant_id=tenant_id, scope=scope)
    }
    return [
        {
            **key,
            # A tenant's own key has sealed nothing but keys: it is tried by opening these.
            "opens": any(each.opens for each in evidence.values())
            if key["scope"] is None
            else evidence[key["id"]].opens,
        }
        for key in _all_keys(row, evidence)
    ]


def _all_keys(row: Erasure, evidence: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that this destroyed, and those that the end of consent had destroyed before."""
    known = {key["id"] for key in row.keys}
    before = [
        {"id": key_id, "fingerprint": each.fingerprint, "scope": each.scope}
        for key_id, each in evidence.items()
        if key_id not in known and each.destroyed_at is not None
    ]
    return [*row.keys, *before]
