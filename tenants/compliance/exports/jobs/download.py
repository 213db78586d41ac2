"""Download of an export's file by a signed URL, decrypted in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import DomainError, Forbidden, NotFound
from tenants.base.permissions import Role
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.queries import find_job_row
from tenants.compliance.exports.jobs.signed_urls import SignedUrl, parse_signed_url
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.identity.api_keys.authentication import find_key_actor
from tenants.models import Tenant
from tenants.security.audit.operations import record_read
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_membership


@dataclass(frozen=True, slots=True)
class Download:
    tenant_id: TenantId
    export_id: UUID
    name: str  # of the file
    num_bytes: int
    object_ids: list[UUID]  # of the pieces, in order

    def read_pieces(self) -> Iterator[bytes]:
        """Yield the pieces of the file, each in a separate transaction.

        Raises errors of decryption and of the storage.
        """
        for object_id in self.object_ids:
            yield sealed_objects.read_object(self.tenant_id, self.export_id, object_id)


def require_valid_link(*, token: str, now: datetime) -> SignedUrl:
    """Return the parsed token of a signed URL. No queries.

    The export and the permissions are not checked yet. Raises NotFound if the token is invalid or
    expired.
    """
    link = parse_signed_url(token, now=now)
    if link is None:
        raise _make_invalid_link_error()
    return link


def open_download(*, link: SignedUrl, address: str, request_id: str, now: datetime) -> Download:
    """Open a download and record it in the audit log before any data is sent.

    `address` is the IP address of the request. Raises NotFound for every invalid link, without
    revealing the reason.
    """
    with tenant_scope(link.tenant_id):
        try:
            actor = _build_issuer(link, address, request_id, now)
            row = find_job_row(actor, link.export_id)
        except DomainError as error:
            raise _make_invalid_link_error() from error
        if row.state != JobState.FINISHED or row.expires_at is None or row.expires_at <= now:
            raise _make_invalid_link_error()
        download = Download(
            link.tenant_id,
            row.id,
            row.name,
            row.num_bytes,
            sealed_objects.list_object_ids(link.tenant_id, row.id, pack_index=None),
        )
        record_read(actor=actor, action="export.downloaded", target=f"export:{row.id}", now=now)
    return download


def _build_issuer(link: SignedUrl, address: str, request_id: str, now: datetime) -> Actor:
    """Return the actor who created the link, with their current permissions. Raises DomainError."""
    if link.key is not None:
        return find_key_actor(
            tenant_id=link.tenant_id, lookup_id=link.key, address=address, now=now
        )
    if link.user_id is None:
        raise Forbidden("Only users and API keys can get download links.")
    membership = find_membership(tenant_id=link.tenant_id, user_id=link.user_id)
    status = Tenant.objects.values_list("status", flat=True).get(id=link.tenant_id)
    if status not in (TenantStatus.ACTIVE, TenantStatus.CLOSING):
        raise Forbidden("This tenant is not active.")
    return Actor(
        tenant_id=link.tenant_id,
        user_id=link.user_id,
        role=Role(membership.role),
        address=address,
        request_id=request_id,
        is_closing=status == TenantStatus.CLOSING,
    )


def _make_invalid_link_error() -> NotFound:
    return NotFound("This link is invalid or has expired. Request a new one.")
