"""Deletion certificates: signed documents that anybody can verify offline with the public keys.

    {"kind": "caret-deletion-certificate", "format": 1, "id", "number", "tenant", "tenant_id",
     "data_class", "method", ..., "issued_at", "key_id", "signature"}

The document is canonical JSON (RFC 8785). `caret.foundation.crypto.signing` signs all its fields
except `signature`. A tenant's certificates are numbered from 1 without gaps, so a missing number
shows that a certificate was withheld.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.ids import TenantId
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.models import DeletionCertificate, Tenant
from tenants.privacy.retention.verification import KIND, PURPOSE


def issue_certificate(*, tenant_id: TenantId, facts: Mapping[str, Any], now: datetime) -> int:
    """Issue a certificate and return its number. Locks the tenant's row.

    `facts` are the fields that describe the deletion. Must run inside the tenant's scope, in the
    transaction that marks the deletion as finished.
    """
    row = Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
    number = DeletionCertificate.objects.filter(tenant_id=tenant_id).count() + 1
    certificate_id = uuid.uuid4()
    document = load_signing_keys().sign_document(
        {
            "kind": KIND,
            "format": 1,
            "id": str(certificate_id),
            "number": number,
            "tenant": row.slug,
            "tenant_id": str(tenant_id),
            **facts,
            "issued_at": now.isoformat(),
        },
        purpose=PURPOSE,
    )
    DeletionCertificate.objects.create(
        tenant_id=tenant_id,
        id=certificate_id,
        number=number,
        document=canonicalize(document).decode(),
        created_at=now,
    )
    return number
