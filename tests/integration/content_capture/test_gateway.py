"""Gateways send captured content sealed (encrypted), and ingestion stores it.

The queue in Redis expires, and each gateway limits the number of unsent items of a tenant.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.utils import timezone
from redis.asyncio import Redis

from caret.contracts.captured_content import CONTENT, MAX_AGE_S
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.clock import SystemClock
from caret.foundation.ids import new_request_id
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit
from inference.content_capture import ContentCapture
from inference.content_capture.send_queue import MAX_OF_TENANT
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.privacy.consent.consent import NO_CONSENT
from tests.fakes.requests import make_admitted, make_arrival
from tests.fixtures.companies import Person, make_key
from tests.integration.content_capture.consenting_tenant import ConsentingTenant, ingest_queued


def make_principal_with_key(tenant: ConsentingTenant, person: Person) -> Principal:
    """Make a key for the user, and return the user's principal in the current snapshot."""
    make_key(tenant.company, person)
    snapshot = read_snapshot(tenant_id=tenant.company.tenant_id, now=timezone.now())
    credential = next(
        credential for credential in snapshot.credentials if credential.user_id == person.user_id
    )
    return Principal(credential=credential, snapshot=snapshot)


def complete_request(content_capture: ContentCapture, principal: Principal, text: str) -> None:
    """Let the gateway's content capture see a finished completion of this text."""
    now_ms = SystemClock().now_ms()
    trace = RequestTrace(
        arrival=replace(make_arrival(), occurred_at_ms=now_ms), clock=SystemClock()
    )
    trace.principal = principal
    trace.mark_admitted(make_admitted(principal=principal, prefix=f"{text} = "))
    trace.record_sent_text("1", at_s=0.0)
    trace.finish(FinishReason.STOP)
    content_capture.on_completed(trace)


def deliver(capture_content: Callable[[ContentCapture], None]) -> None:
    """Deliver the content that `capture_content` produces, as a gateway does."""

    async def run() -> None:
        async with Redis.from_url(settings.REDIS_URL) as redis:
            content_capture = ContentCapture(
                redis, root_secret=settings.ROOT_SECRET, clock=SystemClock()
            )
            capture_content(content_capture)
            await content_capture.sender.send_pending()

    asyncio.run(run())


def test_a_captured_completion_is_stored(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    principal = make_principal_with_key(acme, ada)

    deliver(lambda content_capture: complete_request(content_capture, principal, "planted"))

    assert ingest_queued().num_stored == 1
    assert len(acme.objects) == 1


def test_a_captured_edit_is_stored(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    principal = make_principal_with_key(acme, ada)
    edit = SuggestionEdit(new_request_id(), OutcomeEvent.PERSISTED, after_ms=30_000, text="planted")

    deliver(lambda content_capture: content_capture.on_edited(principal, edit))

    assert ingest_queued().num_stored == 1


def test_without_consent_nothing_is_sent(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(acme.company.administrator)
    principal = make_principal_with_key(acme, ada)

    deliver(lambda content_capture: complete_request(content_capture, principal, "planted"))

    assert connect_to_redis().exists(CONTENT) == 0


def test_a_withdrawal_disables_capture_in_the_snapshot(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    before = make_principal_with_key(acme, ada).is_content_captured

    acme.give_consent(ada, NO_CONSENT)

    assert (before, make_principal_with_key(acme, ada).is_content_captured) == (True, False)


def test_queued_content_is_sealed_and_expires(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    principal = make_principal_with_key(acme, ada)

    deliver(lambda content_capture: complete_request(content_capture, principal, "planted"))

    entries: Any = connect_to_redis().xrange(CONTENT)
    assert len(entries) == 1
    assert b"planted" not in b"".join(value for _, fields in entries for value in fields.values())
    assert 0 < int(str(connect_to_redis().pttl(CONTENT))) <= MAX_AGE_S * 1000


def test_a_gateway_limits_the_unsent_items_of_each_tenant(
    acme: ConsentingTenant, globex: ConsentingTenant
) -> None:
    for tenant in (acme, globex):
        tenant.give_consent(tenant.company.developer)
    acme_principal, globex_principal = (
        make_principal_with_key(tenant, tenant.company.developer) for tenant in (acme, globex)
    )

    def complete_many(content_capture: ContentCapture) -> None:
        for number in range(MAX_OF_TENANT + 10):
            complete_request(content_capture, acme_principal, f"planted{number}")
        complete_request(content_capture, globex_principal, "planted")

    deliver(complete_many)

    assert ingest_queued().num_stored == MAX_OF_TENANT + 1
    assert len(globex.objects) == 1
