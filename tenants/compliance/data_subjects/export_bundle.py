"""Export of all personal data of a user in a tenant, as a ZIP of NDJSON with a signed manifest.

    account.ndjson usage_records.ndjson ...   one object a line, empty files included
    retrieval_content.ndjson                  text that is indexed for the user only, decrypted
    captured_content.ndjson                   captured content, decrypted
    README.txt manifest.json                  a description; the size and SHA-256 of each file

The export is recorded in the tenant's audit log before anything is read. Only one bundle of a
tenant is created at a time, because decrypting content is expensive.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Final
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec
from django.conf import settings

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Permission
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.base.validation.text import MAX_REASON_CHARS, parse_reason
from tenants.compliance.data_subjects.data_inventory import (
    OWN_SOURCES,
    SOURCES,
    DataSubject,
    InventoryEntry,
)
from tenants.compliance.data_subjects.verification import KIND, MANIFEST, PURPOSE
from tenants.compliance.exports.digesting_writer import WriteDigest
from tenants.models import ContentObject, Membership, RetrievalChunk, Tenant
from tenants.privacy.content_capture import object_store
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher
from tenants.security.audit.operations import record_read
from tenants.security.audit.queries import ChainHead, find_head
from tenants.security.authorization.actor import Actor, ActorKind
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.queries import open_sealed

_BATCH_ROWS: Final = 2_000
_README: Final = """\
The data that Caret stores about one person in the tenant {tenant}.

Each .ndjson file is one table, with one JSON object per line. If a file is empty, Caret stores no
such data, or could not decrypt it. Texts that Caret could not decrypt and left out: {num_omitted}.
Times are UTC. API keys and passwords are stored only as digests, which are not included.
captured_content.ndjson contains prompts and completions that were kept with the person's consent.
retrieval_content.ndjson contains the parts of files that are indexed for this person only.
manifest.json is signed. `manage.py verify_bundle FILE --public-key KEYS` checks that the export is
complete and unchanged. It needs only the ZIP file and the public keys of the installation.
"""


@dataclass(frozen=True, slots=True)
class BundleLimits:
    max_rows: int
    max_bytes: int  # of uncompressed lines


@dataclass(frozen=True, slots=True)
class BundleRequest:
    user_id: UserId
    reason: str  # for the audit log; may be "" for the actor's own data
    limits: BundleLimits | None = None  # None: unlimited


def write_bundle(
    *, actor: Actor, bundle_request: BundleRequest, out: IO[bytes], now: datetime
) -> dict[str, Any]:
    """Write the bundle to `out` and return its manifest.

    Memory use is constant, except for the IDs of captured objects, which are read into a list.

    Raises Forbidden, InvalidValue, NotFound, OSError, redis.RedisError and errors of the object
    store. Raises Conflict if the bundle exceeds the limits, or if another bundle of the tenant is
    being created.
    """
    is_own = bundle_request.user_id == actor.user_id and actor.kind is ActorKind.USER
    actor.require(
        Permission.EXPORT_OR_ERASE_OWN_DATA if is_own else Permission.EXPORT_DATA_SUBJECTS
    )
    reason = parse_reason(bundle_request.reason)
    if not reason and not is_own:
        raise InvalidValue(
            "reason", "Enter a reason of 1 to {most} characters.", most=MAX_REASON_CHARS
        )
    with redis_lock(connect_to_redis(), f"bundle:{actor.tenant_id}") as has_lock:
        if not has_lock:
            raise Conflict(
                "Another personal data export of this tenant is running. Try again in a minute."
            )
        subject, head = _record_export(actor, bundle_request.user_id, reason, now)
        with ZipFile(out, "w", ZIP_DEFLATED) as archive:
            files = _BundleFiles(archive, bundle_request.limits)
            _write_tables(files, subject, (*SOURCES, *OWN_SOURCES) if is_own else SOURCES)
            files.write_lines("captured_content", _read_captured_content(subject))
            return _write_manifest(files, subject, head, now)


def require_own_user_id(actor: Actor) -> UserId:
    """Return the actor's user ID. Raises Forbidden for actors that are not users."""
    actor.require(Permission.EXPORT_OR_ERASE_OWN_DATA)
    if actor.kind is not ActorKind.USER or actor.user_id is None:
        raise Forbidden("Sign in to download your own data. You cannot do this with an API key.")
    return actor.user_id


class _BundleFiles:
    """Writes files one after the other, and collects their entries for the manifest."""

    def __init__(self, archive: ZipFile, limits: BundleLimits | None) -> None:
        self._archive = archive
        self._limits = limits
        self._num_rows = 0
        self._num_bytes = 0
        self.digests: dict[str, WriteDigest] = {}
        self.num_omitted = 0  # texts that could not be decrypted

    def write_lines(self, name: str, lines: Iterable[bytes | None]) -> None:
        """Write the lines to the file `name`.ndjson. Raises Conflict if a limit is exceeded.

        None stands for a text that could not be decrypted. It is only counted.
        """
        digest = self.digests[f"{name}.ndjson"] = WriteDigest()
        with self._archive.open(f"{name}.ndjson", "w", force_zip64=True) as file:
            for line in lines:
                if line is None:
                    self.num_omitted += 1
                    continue
                self._count_line(len(line))
                file.write(digest.update(line + b"\n"))
                digest.rows += 1

    def write_text(self, name: str, text: str) -> None:
        digest = self.digests[name] = WriteDigest()
        self._archive.writestr(name, digest.update(text.encode()))

    def _count_line(self, num_bytes: int) -> None:
        """Count a line. Raises Conflict if a limit is exceeded."""
        self._num_rows += 1
        self._num_bytes += num_bytes
        limits = self._limits
        if limits is None:
            return
        if self._num_rows > limits.max_rows or self._num_bytes > limits.max_bytes:
            raise Conflict(
                "This person has too much data for a download. Ask the operator to "
                "export it with `manage.py export_data_subject`."
            )


def find_subject(*, tenant_id: TenantId, user_id: UserId) -> DataSubject:
    """Return a current or former member. Must run inside the tenant's scope. Raises NotFound."""
    try:
        row = Membership.objects.select_related("user").get(
            tenant_id=tenant_id, user_id=UUID(user_id)
        )
    except (Membership.DoesNotExist, ValueError) as error:
        raise NotFound("There is no current or former member with this ID.") from error
    return DataSubject(tenant_id, row.user_id, row.user.email)


def _record_export(
    actor: Actor, user_id: UserId, reason: str, now: datetime
) -> tuple[DataSubject, ChainHead]:
    """Write the audit entry. Return the subject, and the chain's head with this entry.

    This is a separate transaction, because the entry locks the audit chain until the commit.
    """
    with tenant_scope(actor.tenant_id):
        subject = find_subject(tenant_id=actor.tenant_id, user_id=user_id)
        record_read(
            actor=actor,
            action="data_subject.exported",
            target=f"user:{subject.user_id}",
            now=now,
            reason=reason,
        )
        return subject, find_head(tenant_id=actor.tenant_id)


def _write_tables(
    files: _BundleFiles, subject: DataSubject, sources: Iterable[InventoryEntry]
) -> None:
    """Write all tables in one transaction."""
    with tenant_scope(subject.tenant_id):
        for source in sources:
            rows = source.select_rows(subject).iterator(chunk_size=_BATCH_ROWS)
            files.write_lines(source.name, (msgspec.json.encode(row) for row in rows))
        files.write_lines("retrieval_content", _read_indexed_content(subject))


def _read_indexed_content(subject: DataSubject) -> Iterator[bytes | None]:
    """Yield the text indexed for this user only. Text shared by the whole tenant is left out.

    Yield None for a text that cannot be decrypted.
    """
    holder = str(subject.user_id)
    cipher = ChunkCipher(settings.ROOT_SECRET, tenant_id=subject.tenant_id, holder=holder)
    rows = RetrievalChunk.objects.filter(tenant_id=subject.tenant_id, holder=holder)
    for row in rows.order_by("id").iterator(chunk_size=_BATCH_ROWS):
        try:
            repository, path = cipher.open_name(row.id, bytes(row.sealed_name))
            text = cipher.open_text(row.id, bytes(row.sealed_text))
        except DecryptionFailed:
            yield None  # modified in the store, or sealed with an earlier root secret
            continue
        yield msgspec.json.encode(
            {"id": row.id, "repository": repository, "path": path, "text": text}
        )


def _read_captured_content(subject: DataSubject) -> Iterator[bytes | None]:
    """Yield captured content; None for an object that cannot be decrypted.

    No transaction is open while the object store is read: it is slow.
    """
    with tenant_scope(subject.tenant_id):
        objects = ContentObject.objects.filter(
            tenant_id=subject.tenant_id,
            user_id=subject.user_id,
            stored_at__isnull=False,
            erasure_id=None,
        )
        ids = list(objects.order_by("id").values_list("id", flat=True))
    for object_id in ids:
        try:
            envelope = object_store.read_object(subject.tenant_id, object_id)
            data = open_sealed(
                subject.tenant_id,
                context=object_store.build_seal_context(object_id),
                envelope=envelope,
            )
        except (FileNotFoundError, KeyDestroyed):
            continue  # erased since its ID was read
        except DecryptionFailed:
            yield None  # modified in the store
            continue
        yield from data.splitlines()


def _write_manifest(
    files: _BundleFiles, subject: DataSubject, head: ChainHead, now: datetime
) -> dict[str, Any]:
    slug = Tenant.objects.values_list("slug", flat=True).get(id=subject.tenant_id)
    files.write_text("README.txt", _README.format(tenant=slug, num_omitted=files.num_omitted))
    manifest = load_signing_keys().sign_document(
        {
            "kind": KIND,
            "format": 1,
            "tenant": slug,
            "tenant_id": subject.tenant_id,
            "user_id": str(subject.user_id),
            "generated_at": now.isoformat(),
            # The audit chain's head when this export was recorded.
            "chain_head": {"sequence": head.sequence, "hash": head.hash.hex()},
            "files": [_to_manifest_entry(name, digest) for name, digest in files.digests.items()],
        },
        purpose=PURPOSE,
    )
    files.write_text(MANIFEST, canonicalize(manifest).decode())
    return manifest


def _to_manifest_entry(name: str, digest: WriteDigest) -> dict[str, Any]:
    return {
        "name": name,
        "rows": digest.rows,
        "bytes": digest.num_bytes,
        "sha256": digest.sha256,
    }
