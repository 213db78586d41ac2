"""A company whose policy allows content capture and training, and content as gateways send it."""

import json
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from caret.contracts.captured_content import (
    CONTENT,
    MAX_QUEUED,
    TRIM_AGE_MS,
    CapturedCompletion,
    ContentBatch,
    ContentSealer,
    Item,
)
from caret.contracts.policy import Mode
from caret.contracts.sealed_message import ADD_SCRIPT, FIELD
from caret.contracts.usage import FinishReason
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import new_request_id
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.models import ContentErasure, ContentObject
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION, USER_CONSENT_VERSIONS
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent
from tenants.privacy.content_capture import erasure
from tenants.privacy.content_capture.ingestion import ContentIngestion, ingest_content
from tests.fixtures.companies import ACME_PEOPLE, Company, Person, make_company

CAPTURE_CONSENT: Final = UserConsent(content_capture=True, training=False)
CAPTURE_AND_TRAINING_CONSENT: Final = UserConsent(content_capture=True, training=True)


@dataclass(frozen=True, slots=True)
class ConsentingTenant:
    company: Company

    def give_consent(self, person: Person, consent: UserConsent = CAPTURE_CONSENT) -> None:
        choice = ConsentChoice(consent, frozenset(USER_CONSENT_VERSIONS.values()))
        set_consent(actor=person.actor, choice=choice, now=timezone.now())

    def change_policy(self, **changes: Any) -> None:
        policy = find_policy_in_force(tenant_id=self.company.tenant_id).policy
        set_policy(
            actor=self.company.platform,
            document=serialize_policy(policy) | changes,
            reason="a test",
            now=timezone.now(),
        )

    def allow_content_capture(self, *, retention_days: int = 30, training: bool = True) -> None:
        values = {
            "consent_text": TENANT_CONSENT_VERSION,
            "retention_days": retention_days,
            "training": training,
        }
        self.change_policy(content_capture=values)

    def send_items(self, *items: Item) -> None:
        """Add items to the queue in Redis, as a gateway does."""
        sealed = ContentSealer(settings.ROOT_SECRET).seal(
            self.company.tenant_id, ContentBatch(items)
        )
        num_redis_keys = 1
        connect_to_redis().eval(
            ADD_SCRIPT, num_redis_keys, CONTENT, sealed, FIELD, str(TRIM_AGE_MS), str(MAX_QUEUED)
        )

    def capture(self, person: Person, *prefixes: str) -> ContentIngestion:
        """Send a completion for each prefix, and ingest everything that is queued."""
        self.send_items(*(make_captured_completion(person, prefix) for prefix in prefixes))
        return ingest_queued()

    @property
    def objects(self) -> list[ContentObject]:
        with tenant_scope(self.company.tenant_id):
            return list(ContentObject.objects.order_by("id"))

    @property
    def erasures(self) -> list[ContentErasure]:
        with tenant_scope(self.company.tenant_id):
            return list(ContentErasure.objects.order_by("id"))


def ingest_queued() -> ContentIngestion:
    """Store the content that gateways have sent, as the worker does."""
    return ingest_content(
        connect_to_redis(), ContentSealer(settings.ROOT_SECRET), now=timezone.now()
    )


def make_captured_completion(person: Person, prefix: str) -> CapturedCompletion:
    return CapturedCompletion(
        request_id=new_request_id(),
        user_id=person.user_id,
        occurred_at_ms=to_unix_ms(timezone.now()),
        mode=Mode.INLINE,
        language="python",
        repository="shop",
        path="planted-path.py",
        prefix=prefix,
        suffix="",
        chat=(),
        completion="planted completion",
        finish_reason=FinishReason.STOP,
    )


def make_consenting_tenant(name: str) -> ConsentingTenant:
    tenant = ConsentingTenant(make_company(name, ACME_PEOPLE))
    tenant.allow_content_capture()
    return tenant


def list_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def erase_due_content(*, days: float = 0.0) -> None:
    """Run the erasure as the worker will run it in `days` days."""
    erasure.clean_up_content(now=timezone.now() + timedelta(days=days))


def export_training_prefixes(tenant: ConsentingTenant, tmp_path: Path) -> list[str]:
    """Export the tenant's training data, and return the prefixes in the export."""
    out = tmp_path / "out.ndjson"
    out.unlink(missing_ok=True)
    call_command("export_training_data", tenant.company.slug, "--out", str(out), stdout=StringIO())
    return [json.loads(line)["prefix"] for line in out.read_text().splitlines()]
