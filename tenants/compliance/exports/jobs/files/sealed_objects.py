"""Encrypted objects in the store `exports`: parts (rows that were read) and pieces of the file.

    <tenant ID>/<object ID>        encrypted with the job's encryption key, bound to job and object

Before an object is stored, its database row (`ExportObject`) is written. Once it is stored, the
database row is marked. After a crash the clean-up deletes an unmarked database row and its object.
If a job has failed, has expired or was cancelled, its encryption key is destroyed before its
objects are deleted.

An evidence pack contains several exports. `pack_index` is the position of an object's export among
them; in a job with one export it is 0. It is None for a piece of the finished file.
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
from tenants.security.encryption.operations import seal_in_scope
from tenants.security.encryption.queries import open_sealed

STORAGE: Final = "exports"  # the alias in Django's setting STORAGES
PIECE_BYTES: Final = 4 * 1024 * 1024


def build_export_scope(export_id: UUID) -> str:
    return f"export:{export_id}"


def store_object(claim: JobClaim, data: bytes, *, pack_index: int | None, number: int) -> UUID:
    """Encrypt and store an object, and return its ID.

    The caller calls mark_stored in the transaction that uses the object. `number` is the position
    among the parts of an export, or among the pieces of the file.

    Raises ClaimLost, and errors of encryption and of the storage.
    """
    object_id, now = uuid7(), claim.clock()
    with tenant_scope(claim.tenant_id):
        claim.update_job()
        ExportObject.objects.create(
            tenant_id=claim.tenant_id,
            id=object_id,
            export_id=claim.export_id,
            pack_index=pack_index,
            number=number,
        )
        envelope = seal_in_scope(
            claim.tenant_id,
            build_export_scope(claim.export_id),
            context=_build_seal_context(claim.export_id, object_id),
            data=data,
            now=now,
        )
    name = _name_object(claim.tenant_id, object_id)
    saved_name = _get_storage().save(name, ContentFile(envelope))
    assert saved_name == name, "object IDs are random: no name exists twice"
    return object_id


def mark_stored(claim: JobClaim, object_id: UUID, now: datetime) -> None:
    """Mark an object as stored. Must run inside the tenant's scope."""
    ExportObject.objects.filter(tenant_id=claim.tenant_id, id=object_id).update(stored_at=now)


def list_object_ids(tenant_id: TenantId, export_id: UUID, *, pack_index: int | None) -> list[UUID]:
    """Return the IDs of stored objects, in order. One query."""
    with tenant_scope(tenant_id):
        rows = ExportObject.objects.filter(
            tenant_id=tenant_id, export_id=export_id, pack_index=pack_index, stored_at__isnull=False
        )
        return list(rows.order_by("number").values_list("id", flat=True))


def read_object(tenant_id: TenantId, export_id: UUID, object_id: UUID) -> bytes:
    """Read and decrypt an object.

    Raises DecryptionFailed, KeyDestroyed, FileNotFoundError, and errors of the storage.
    """
    with _get_storage().open(_name_object(tenant_id, object_id)) as file:
        envelope: bytes = file.read()
    return open_sealed(
        tenant_id, context=_build_seal_context(export_id, object_id), envelope=envelope
    )


def delete_object(tenant_id: TenantId, object_id: UUID) -> None:
    """Delete an object, if it exists."""
    _get_storage().delete(_name_object(tenant_id, object_id))


def delete_file_pieces(claim: JobClaim) -> None:
    """Delete the pieces of the file that an earlier attempt has written, to free space.

    Their database rows stay for the clean-up, because a worker that lost its claim may still store
    an object. Raises ClaimLost, and errors of the storage.
    """
    with tenant_scope(claim.tenant_id):
        claim.update_job()
        pieces = ExportObject.objects.filter(
            tenant_id=claim.tenant_id, export_id=claim.export_id, pack_index=None
        )
        pieces.update(stored_at=None)
        ids = list(pieces.values_list("id", flat=True))
    for object_id in ids:
        claim.renew()
        delete_object(claim.tenant_id, object_id)


class SealedFile(io.RawIOBase):
    """A file that is encrypted and stored in pieces as it is written. Call `finish` at the end."""

    def __init__(self, claim: JobClaim) -> None:
        self._claim = claim
        self._buffer = bytearray()
        self._num_pieces = 0
        self.num_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.num_bytes

    def write(self, data: Any) -> int:
        new_bytes = bytes(data)
        self._buffer += new_bytes
        self.num_bytes += len(new_bytes)
        while len(self._buffer) >= PIECE_BYTES:
            self._store_piece(PIECE_BYTES)
        return len(new_bytes)

    def finish(self) -> None:
        """Store the last piece."""
        if self._buffer:
            self._store_piece(len(self._buffer))

    def _store_piece(self, num_bytes: int) -> None:
        data = bytes(self._buffer[:num_bytes])
        del self._buffer[:num_bytes]
        object_id = store_object(self._claim, data, pack_index=None, number=self._num_pieces)
        with tenant_scope(self._claim.tenant_id):
            # `num_attempts` is not reset: after a failure the file is written from the beginning
            # again, so a stored piece is no progress.
            self._claim.update_job()
            mark_stored(self._claim, object_id, self._claim.clock())
        self._num_pieces += 1


def read_parts(claim: JobClaim, *, pack_index: int) -> Iterator[bytes]:
    """Yield the stored parts of an export, and renew the claim before each part.

    Raises ClaimLost, and the errors of `read_object`.
    """
    for object_id in list_object_ids(claim.tenant_id, claim.export_id, pack_index=pack_index):
        claim.renew()
        yield read_object(claim.tenant_id, claim.export_id, object_id)


def _get_storage() -> Storage:
    return storages[STORAGE]


def _name_object(tenant_id: TenantId, object_id: UUID) -> str:
    return f"{tenant_id}/{object_id}"


def _build_seal_context(export_id: UUID, object_id: UUID) -> SealContext:
    # The job's ID stands in for a column, so that the object is bound to its job, too.
    return SealContext(table="export_object", column=str(export_id), row=str(object_id))
