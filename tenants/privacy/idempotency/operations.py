"""Stored responses to requests, for callers that did not receive them.

The caller names the request by an idempotency key. For a day, the same request with the same key
gets the same response, and a different request with that key is rejected. The request's changes and
the stored response are committed in one transaction.

    caller    key      request            result
    user:1    "a"      POST /keys {...}   performed, and stored
    user:1    "a"      POST /keys {...}   the same response; nothing is performed
    user:1    "a"      POST /keys {xyz}   IdempotencyKeyReused
    user:2    "a"      POST /keys {...}   performed: each caller has its own idempotency keys

A legal hold keeps a response for longer than a day; its idempotency key then stays in use.

A response may contain a secret that is shown once. The response is therefore returned only to a
caller who has the same permissions as at the first request. With another role, for example, or with
the old text of a rotated API key, the request raises IdempotencyKeyReused.
"""

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from caret.foundation.crypto.aead import seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.models import IdempotencyRecord
from tenants.policy.data_classes import DataClass
from tenants.privacy.retention.rules_in_force import load_hold_periods
from tenants.privacy.retention.tables import RETENTION_TABLES
from tenants.security.authorization.directory import list_tenants

RETENTION: Final = timedelta(hours=24)  # longer under a legal hold
MAX_RESPONSES: Final = 10_000  # per tenant; this allows about seven requests a minute all day
# Most responses are below 2 KiB. The response to the removal of a member may list 100 API keys.
MAX_RESPONSE_BYTES: Final = 256 * 1_024
_LOCK_BYTES: Final = 8  # Postgres identifies an advisory lock by a bigint


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an idempotency key."""

    tenant_id: TenantId
    caller: str  # Actor.rate_limit_key
    authority: str  # the caller's permissions, see Actor.authority
    key: str  # the header Idempotency-Key
    method: str
    address: str  # path and query of the URL
    body: bytes

    @property
    def key_digest(self) -> bytes:
        return hashlib.sha256(self.key.encode()).digest()

    @property
    def digest(self) -> bytes:
        head = f"{self.method} {self.address}\0{self.authority}\0".encode()
        return hashlib.sha256(head + self.body).digest()


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    body: bytes


class IdempotencyKeyReused(Conflict):
    """The idempotency key belongs to another request."""

    code = "idempotency_key_reused"


class RequestInProgress(Conflict):
    """The same request is being performed at the moment."""

    code = "idempotency_in_progress"


class ResponseNotStored(Conflict):
    """The response cannot be stored, so the request is not performed."""

    code = "idempotency_storage_full"


def find_response(request: IdempotentRequest, *, now: datetime) -> StoredResponse | None:
    """Lock the request, and return the stored response to it; None: no response is stored.

    The lock lasts until the transaction ends. An expired response is deleted. Must run in the
    tenant's scope. Raises IdempotencyKeyReused, RequestInProgress, and ResponseNotStored if no more
    responses can be stored.
    """
    if not _try_lock(request):
        raise RequestInProgress("The same request is in progress. Try again in a moment.")
    row = (
        IdempotencyRecord.objects.filter(
            tenant_id=request.tenant_id, caller=request.caller, key_digest=request.key_digest
        )
        .order_by("id")
        .first()
    )
    if row is not None and row.created_at <= now - RETENTION:
        _delete_record(row)
        row = None
    if row is None:
        _check_capacity(request, now)
        return None
    if bytes(row.request_digest) != request.digest:
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used for another request, or your permissions have changed"
            " since. Use a new key."
        )
    body = unseal(
        _derive_sealing_key(),
        bytes(row.sealed_body),
        bound_to=_build_associated_data(request, row.id),
    )
    return StoredResponse(row.status, body)


def store_response(request: IdempotentRequest, response: StoredResponse, *, now: datetime) -> None:
    """Store the response in the transaction in which find_response returned None.

    Raises ResponseNotStored; the caller must then roll the transaction back.
    """
    if len(response.body) > MAX_RESPONSE_BYTES:
        raise ResponseNotStored(
            "The response is too large to store. Send the request without an Idempotency-Key."
        )
    row_id = uuid.uuid4()
    IdempotencyRecord.objects.create(
        tenant_id=request.tenant_id,
        id=row_id,
        caller=request.caller,
        key_digest=request.key_digest,
        request_digest=request.digest,
        status=response.status,
        sealed_body=seal(
            _derive_sealing_key(), response.body, bound_to=_build_associated_data(request, row_id)
        ),
        created_at=now,
    )


def delete_expired_records(*, now: datetime, tenant_ids: Sequence[TenantId] | None = None) -> int:
    """Delete expired responses of the tenants, and return how many.

    `tenant_ids` None: of all tenants. Responses on legal hold are kept.
    """
    num_deleted = 0
    for tenant_id in list_tenants().values() if tenant_ids is None else tenant_ids:
        with tenant_scope(tenant_id):
            old = IdempotencyRecord.objects.filter(
                tenant_id=tenant_id, created_at__lte=now - RETENTION
            )
            num_deleted += _delete_without_hold(tenant_id, old)
    return num_deleted


def _delete_record(row: IdempotencyRecord) -> None:
    """Delete an expired response.

    If the response is on legal hold, raises IdempotencyKeyReused, whose text does not reveal the
    hold.
    """
    tenant_id = TenantId(str(row.tenant_id))
    if not _delete_without_hold(
        tenant_id, IdempotencyRecord.objects.filter(tenant_id=tenant_id, id=row.id)
    ):
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used for an earlier request. Use a new key."
        )


def _delete_without_hold(tenant_id: TenantId, rows: QuerySet[IdempotencyRecord]) -> int:
    (table,) = RETENTION_TABLES[DataClass.IDEMPOTENCY]
    deleted, _ = table.exclude_held(rows, load_hold_periods(tenant_id=tenant_id)).delete()
    return deleted


def _check_capacity(request: IdempotentRequest, now: datetime) -> None:
    """Check the number of the tenant's records.

    The limit is not exact: concurrent requests may exceed it. Records older than a day do not
    count: they are on legal hold, or are deleted soon. Raises ResponseNotStored.
    """
    num_records = IdempotencyRecord.objects.filter(
        tenant_id=request.tenant_id, created_at__gt=now - RETENTION
    ).count()
    if num_records >= MAX_RESPONSES:
        raise ResponseNotStored(
            "{most} responses are already stored, each for a day. Send the request without an"
            " Idempotency-Key.",
            most=MAX_RESPONSES,
        )


def _try_lock(request: IdempotentRequest) -> bool:
    """Lock the caller's idempotency key until the transaction ends.

    Returns False if another transaction holds the lock. Does not wait for the lock, because waiting
    would occupy a database connection that all tenants share.
    """
    name = f"{request.tenant_id}|{request.caller}|{request.key_digest.hex()}".encode()
    number = int.from_bytes(hashlib.sha256(name).digest()[:_LOCK_BYTES], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (is_locked,) = cursor.fetchone()
    return bool(is_locked)


def _derive_sealing_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "idempotency-record/1")


def _build_associated_data(request: IdempotentRequest, row_id: uuid.UUID) -> bytes:
    # "kept_answer" is an earlier name of the table. With another text, responses that are already
    # stored could not be decrypted.
    return f"kept_answer/body|{request.tenant_id}|{row_id}".encode()
