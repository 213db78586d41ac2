"""A company whose developer has data in most of the tables that can be about a user."""

import secrets
import uuid
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import UserId, new_request_id, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.compliance.data_subjects.export_bundle import BundleRequest, write_bundle
from tenants.models import (
    AlertDelivery,
    Budget,
    BudgetAlert,
    MonthSpend,
    Outcome,
    RetrievalChunk,
    ScimUser,
    TypingReport,
    User,
)
from tenants.models.retrieval_chunk import EMBEDDING_DIMENSIONS
from tenants.privacy.idempotency.operations import IdempotentRequest, StoredResponse, store_response
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher
from tenants.security.authorization.actor import Actor
from tenants.usage.rollups.operations import mark_period_dirty, roll_up_tenant
from tests.fixtures.companies import Company, Person, make_completion, make_key
from tests.fixtures.users import send_invitation
from tests.integration.content_capture.consenting_tenant import (
    ConsentingTenant,
    make_consenting_tenant,
)

REPOSITORY: Final = "planted-repository"


@dataclass(frozen=True, slots=True)
class TracedTenant:
    tenant: ConsentingTenant
    # A random word in all texts about the developer. A search for it finds the stores of the texts.
    mark: str

    @property
    def company(self) -> Company:
        return self.tenant.company

    @property
    def ada(self) -> Person:
        """The developer whose data is exported and erased."""
        return self.company.developer

    @property
    def olga(self) -> Actor:
        """The owner, who may export and erase the data of other users."""
        return self.company.people[Role.OWNER].actor

    def export(
        self, actor: Actor, user_id: str, *, reason: str = "a request by e-mail", **fields: Any
    ) -> BytesIO:
        """Return an export of the user's personal data. `fields` are those of BundleRequest."""
        out = BytesIO()
        bundle_request = BundleRequest(UserId(user_id), reason, **fields)
        write_bundle(actor=actor, bundle_request=bundle_request, out=out, now=timezone.now())
        return out


def make_traced_tenant(name: str) -> TracedTenant:
    traced = TracedTenant(make_consenting_tenant(name), f"planted{secrets.token_hex(4)}")
    rename_user(traced)
    traced.tenant.give_consent(traced.ada)
    traced.tenant.capture(traced.ada, f"def {traced.mark}(): ...")
    make_key(traced.company, traced.ada, name=f"{traced.mark}'s laptop")
    add_usage(traced)
    add_spending(traced)
    add_scim_user(traced)
    add_retrieval_chunk(traced)
    add_idempotency_record(traced)
    return traced


def rename_user(traced: TracedTenant) -> None:
    """Give the user a name and an e-mail address with the mark, and invite this address.

    Data that is added later then contains the mark.
    """
    email = f"{traced.mark}@{traced.company.slug}.example"
    send_invitation(traced.company, email)
    User.objects.filter(id=traced.ada.user_id).update(name=traced.mark.title(), email=email)


def add_usage(traced: TracedTenant) -> None:
    now = timezone.now()
    request_id = make_completion(
        traced.company,
        traced.ada,
        occurred_at=now,
        request_id=new_request_id(now_ms=to_unix_ms(now)),
    )
    common = {"tenant_id": traced.company.tenant_id, "user_id": traced.ada.user_id}
    with tenant_scope(traced.company.tenant_id):
        Outcome.objects.create(
            **common,
            occurred_at=now,
            outcome_id=uuid7(),
            request_id=request_id,
            event="shown",
            chars=4,
            after_ms=0,
        )
        TypingReport.objects.create(
            **common, occurred_at=now, report_id=uuid7(), language="python", editor="vim", chars=9
        )
    mark_period_dirty(
        tenant_id=traced.company.tenant_id,
        start=now - timedelta(hours=1),
        end=now + timedelta(hours=1),
    )
    roll_up_tenant(tenant_id=traced.company.tenant_id, arrived_until=now)


def add_spending(traced: TracedTenant) -> None:
    now, tenant_id = timezone.now(), traced.company.tenant_id
    with tenant_scope(tenant_id):
        budget = Budget.objects.create(
            tenant_id=tenant_id,
            scope="user",
            holder_id=traced.ada.user_id,
            limit_micros=5,
            webhook_url="",
            created_at=now,
        )
        MonthSpend.objects.create(
            tenant_id=tenant_id,
            month=now.date().replace(day=1),
            holder=traced.ada.user_id,
            micros=3,
        )
        alert = BudgetAlert.objects.create(
            tenant_id=tenant_id,
            budget_id=budget.id,
            month=now.date().replace(day=1),
            percent=50,
            spent_micros=3,
            limit_micros=5,
            created_at=now,
        )
        AlertDelivery.objects.create(
            tenant_id=tenant_id,
            alert_id=alert.id,
            channel="mail",
            address=User.objects.get(id=traced.ada.user_id).email,
            last_error="",
        )


def add_scim_user(traced: TracedTenant, *, has_account: bool = True) -> None:
    """Add the user to the SCIM directory.

    With `has_account=False`, add a SCIM user without an account, as Caret does if the tenant has
    not verified the domain of the e-mail address.
    """
    now = timezone.now()
    with tenant_scope(traced.company.tenant_id):
        ScimUser.objects.create(
            tenant_id=traced.company.tenant_id,
            user_id=traced.ada.user_id if has_account else None,
            user_name=traced.mark if has_account else f"{traced.mark}-unverified",
            external_id=traced.mark,
            email=f"{traced.mark}@{traced.company.slug}.example",
            active=True,
            document={"displayName": traced.mark},
            created_at=now,
            changed_at=now,
        )


def add_retrieval_chunk(traced: TracedTenant) -> None:
    """Index a file that only this user can find, as in strict isolation."""
    holder, row_id, now = traced.ada.user_id, uuid.uuid4(), timezone.now()
    cipher = ChunkCipher(settings.ROOT_SECRET, tenant_id=traced.company.tenant_id, holder=holder)
    with tenant_scope(traced.company.tenant_id):
        RetrievalChunk.objects.create(
            tenant_id=traced.company.tenant_id,
            id=row_id,
            holder=holder,
            scope_digest=b"s" * 16,
            file_digest=b"f" * 16,
            chunk_digest=b"c" * 16,
            sealed_name=cipher.seal_name(row_id, repository=REPOSITORY, path=f"{traced.mark}.py"),
            sealed_text=cipher.seal_text(row_id, f"class {traced.mark}: ..."),
            embedding=[0.0] * EMBEDDING_DIMENSIONS,
            created_at=now,
            used_at=now,
        )


def add_idempotency_record(traced: TracedTenant) -> None:
    ada = traced.ada.actor
    request = IdempotentRequest(
        tenant_id=ada.tenant_id,
        caller=ada.rate_limit_key,
        authority=ada.authority,
        key="once",
        method="POST",
        address="/api/v1/keys",
        body=b"{}",
    )
    with tenant_scope(traced.company.tenant_id):
        store_response(request, StoredResponse(201, traced.mark.encode()), now=timezone.now())
