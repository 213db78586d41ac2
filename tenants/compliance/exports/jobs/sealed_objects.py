"""Sealed objects of the store `exports`: rows that were read, and pieces of the file.

    <tenant>/<object>        sealed under a key of the build's own, bound to build and object

Each has a row, made before it and marked once it is there: killed in between, the row is one of an
object that nobody reads and the sweep deletes. A build's key is shredded before its objects go.
"""

import io
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from caret.foundation.ids import TenantId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.jobs.claim import JobClaim
from tenants.models import ExportObject
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.operations import seal_for
from tenants.security.encryption.queries import open_sealed

STORAGE: Final = "exports"
PIECE_BYTES: Final = 4 * 1024 * 1024


def scope_of(build_id: UUID) -> str:
    return f"export:{build_id}"


def put(claim: JobClaim, data: bytes, *, member: int | None, number: int) -> UUID:
    """Seals and stores; the caller marks it, in the transaction in which it counts. Raises Lost,
    what sealing raises, and what the storage raises."""
    object_id, now = uuid7(), claim.clock()
    with tenant_scope(claim.tenant_id):
        claim.update_job()
        ExportObject.objects.create(
            tenant_id=claim.tenant_id,
            id=object_id,
            build_id=claim.build_id,
            member=member,
            number=number,
        )
        sealed = seal_for(
            claim.tenant_id,
            scope_of(claim.build_id),
            place=_place(claim.build_id, object_id),
            data=data,
            now=now,
        )
    name = _name(claim.tenant_id, object_id)
    saved = _storage().save(name, ContentFile(sealed))
    assert saved == name, "object ids are random: a name is never taken"
    return object_id


def mark_stored(claim: JobClaim, object_id: UUID, now: datetime) -> None:
    """Inside the tenant's scope."""
    ExportObject.objects.filter(tenant_id=claim.tenant_id, id=object_id).update(stored_at=now)


def object_ids(tenant_id: TenantId, build_id: UUID, *, member: int | None) -> list[UUID]:
    """Of what is stored, in order. One query."""
    with tenant_scope(tenant_id):
        rows = ExportObject.objects.filter(
            tenant_id=tenant_id, build_id=build_id, member=member, stored_at__isnull=False
        )
        return list(rows.order_by("number").values_list("id", flat=True))


def get(tenant_id: TenantId, build_id: UUID, object_id: UUID) -> bytes:
    """Raises DecryptionFailed, KeyDestroyed, FileNotFoundError, and what the storage raises."""
    with _storage().open(_name(tenant_id, object_id)) as file:
        sealed: bytes = file.read()
    return open_sealed(tenant_id, place=_place(build_id, object_id), sealed=sealed)


def delete(tenant_id: TenantId, object_id: UUID) -> None:
    """Whether or not it is there."""
    _storage().delete(_name(tenant_id, object_id))


def forget_file(claim: JobClaim) -> None:
    """What an earlier attempt has written of the file is none of this one's, and goes: a store that
    is full gets no fuller. Rows stay for the sweep: whoever lost the claim may be storing yet.
    Raises Lost, and what the storage raises."""
    with tenant_scope(claim.tenant_id):
        claim.update_job()
        written = ExportObject.objects.filter(
            tenant_id=claim.tenant_id, build_id=claim.build_id, member=None
        )
        written.update(stored_at=None)
        ids = list(written.values_list("id", flat=True))
    for object_id in ids:
        claim.renew()
        delete(claim.tenant_id, object_id)


class SealedFile(io.RawIOBase):
    """A file that is sealed and stored piece by piece while it is written. `finish` it."""

    def __init__(self, claim: JobClaim) -> None:
        self._claim = claim
        self._held = bytearray()
        self._num_pieces = 0
        self.num_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.num_bytes

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._held += piece
        self.num_bytes += len(piece)
        while len(self._held) >= PIECE_BYTES:
            self._store(PIECE_BYTES)
        return len(piece)

    def finish(self) -> None:
        if self._held:
            self._store(len(self._held))

    def _store(self, num_bytes: int) -> None:
        data = bytes(self._held[:num_bytes])
        del self._held[:num_bytes]
        object_id = put(self._claim, data, member=None, number=self._num_pieces)
        with tenant_scope(self._claim.tenant_id):
            # Attempts go on being counted: a file that is begun anew has not come on.
            self._claim.update_job()
            mark_stored(self._claim, object_id, self._claim.clock())
        self._num_pieces += 1


def read_parts(claim: JobClaim, *, member: int) -> Iterator[bytes]:
    """Holds the claim on while they are read. Raises as `get`, and Lost."""
    for object_id in object_ids(claim.tenant_id, claim.build_id, member=member):
        claim.renew()
        yield get(claim.tenant_id, claim.build_id, object_id)


def _storage() -> Storage:
    return storages[STORAGE]


def _name(tenant_id: TenantId, object_id: UUID) -> str:
    return f"{tenant_id}/{object_id}"


def _place(build_id: UUID, object_id: UUID) -> SealContext:
    return SealContext(table="export_object", column=str(build_id), row=str(object_id))
