"""Facts of an erasure certificate: the erased data, the method, and the remaining data.

Each kind of remaining data has a legal basis.
"""

from typing import Any, Final

from django.utils.translation import gettext_noop

from caret.foundation.ids import TenantId
from tenants.models import Erasure
from tenants.security.encryption.queries import find_destruction_proofs

# These texts are part of the signed document, which is English.
_DUTY: Final = "legal obligation (GDPR Art. 6(1)(c))"
_AUDIT_OF_PERSON: Final = ("the audit log, with IDs and network addresses but no names", _DUTY)
_AUDIT_OF_TENANT: Final = ("the audit log, with policies and the names of teams and domains", _DUTY)
# Data that remains after the erasure of a user or a tenant, with the legal basis.
_REMAINING_DATA: Final = (
    (
        "usage records and outcomes, under a pseudonym that cannot be traced to a person",
        "contract (GDPR Art. 6(1)(b))",
    ),
    ("consent receipts, as the proof of consent that GDPR Art. 7(1) requires", _DUTY),
    ("the ledger and invoices, with amounts but no names", _DUTY),
    ("memberships, keys and invitations, without names", _DUTY),
)
_ANONYMIZED_ACCOUNT: Final = (
    "the account, as soon as all other tenants of which the user is or was a member have erased the"
    " user"
)


def build_certificate_facts(row: Erasure) -> dict[str, Any]:
    """Return the certificate's facts. Must run inside the tenant's scope.

    Each destroyed encryption key is tested once more, to prove that it decrypts nothing.
    """
    kept_data = (_AUDIT_OF_TENANT if row.user_id is None else _AUDIT_OF_PERSON, *_REMAINING_DATA)
    return {
        "data_class": "data_subject" if row.user_id is not None else "tenant",
        "surface": "Postgres, object store, Redis",
        "method": gettext_noop("crypto-shredding, deletion and pseudonymisation"),
        "reason": "erasure" if row.user_id is not None else "shredding",
        "user_id": None if row.user_id is None else str(row.user_id),
        "rows": row.counts,
        "anonymized": _ANONYMIZED_ACCOUNT,
        "kept": [{"what": data_name, "legal_basis": basis} for data_name, basis in kept_data],
        "legal_hold_ids": row.legal_hold_ids,
        "keys": _test_destroyed_keys(row),
        "requested_at": row.requested_at.isoformat(),
    }


def _test_destroyed_keys(row: Erasure) -> list[dict[str, Any]]:
    """Return the destroyed encryption keys; `opens` says whether the key still decrypts data."""
    tenant_id = TenantId(str(row.tenant_id))
    scope = None if row.user_id is None else f"user:{row.user_id}"
    evidence = {
        str(proof.key_id): proof
        for proof in find_destruction_proofs(tenant_id=tenant_id, scope=scope)
    }
    return [
        {
            **key,
            # A tenant key encrypts only data keys, so it is tested by decrypting these.
            "opens": any(proof.opens for proof in evidence.values())
            if key["scope"] is None
            else evidence[key["id"]].opens,
        }
        for key in _list_all_keys(row, evidence)
    ]


def _list_all_keys(row: Erasure, evidence: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the keys that this erasure destroyed, and those destroyed before it.

    `evidence` has the proofs by key ID.
    """
    destroyed_ids = {key["id"] for key in row.keys}
    destroyed_before = [
        {"id": key_id, "fingerprint": proof.fingerprint, "scope": proof.scope}
        for key_id, proof in evidence.items()
        if key_id not in destroyed_ids and proof.destroyed_at is not None
    ]
    return [*row.keys, *destroyed_before]
