"""Encryption of a sink's address and secret. The path of an address may be secret, too."""

import secrets
from base64 import b64encode
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from django.conf import settings

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from tenants.compliance.audit_sinks.delivery import Destination
from tenants.compliance.audit_sinks.endpoint import SinkAddress, SinkKind, parse_address
from tenants.models import AuditSink
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.errors import EncryptionFailed
from tenants.security.encryption.operations import seal_in_scope, shred_scope
from tenants.security.encryption.queries import open_sealed

_SECRET_BYTES: Final = 32  # Standard Webhooks requires 24 to 64


class SecretUnavailable(Exception):
    """The address and secret cannot be read.

    The encryption keys were shredded or are unavailable, or another release wrote the data.
    """


class _SealedFields(msgspec.Struct, frozen=True):
    address: str
    secret: str | None  # None: syslog


def create_secret(kind: SinkKind) -> str | None:
    """Return a new secret in the format of Standard Webhooks; None: this kind has no secret."""
    if kind is not SinkKind.WEBHOOK:
        return None
    return f"whsec_{b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def seal_sink(
    tenant_id: TenantId, sink_id: UUID, address: SinkAddress, secret: str | None, *, now: datetime
) -> bytes:
    """Encrypt a sink's address and secret with an encryption key of this sink."""
    data = msgspec.json.encode(_SealedFields(address.text, secret))
    return seal_in_scope(
        tenant_id, _name_scope(sink_id), context=_build_seal_context(sink_id), data=data, now=now
    )


def open_destination(tenant_id: TenantId, sink: AuditSink) -> Destination:
    """Decrypt a sink's address and secret, and return its destination.

    Raises SecretUnavailable, and InvalidValue if the address is no longer allowed, because the
    operator has changed the allowed private networks.
    """
    try:
        data = open_sealed(
            tenant_id, context=_build_seal_context(sink.id), envelope=bytes(sink.sealed)
        )
        fields = msgspec.json.decode(data, type=_SealedFields)
    except (EncryptionFailed, DecryptionFailed, msgspec.MsgspecError) as error:
        raise SecretUnavailable from error
    networks = settings.PRIVATE_TARGETS
    return Destination(parse_address(fields.address, networks), fields.secret, networks)


def shred_sink(tenant_id: TenantId, sink_id: UUID, *, now: datetime) -> None:
    """Destroy the encryption key of the sink's address and secret."""
    shred_scope(tenant_id=tenant_id, scope=_name_scope(sink_id), now=now)


def _name_scope(sink_id: UUID) -> str:
    return f"audit-sink:{sink_id}"


def _build_seal_context(sink_id: UUID) -> SealContext:
    return SealContext(table="tenants_auditsink", column="sealed", row=str(sink_id))
