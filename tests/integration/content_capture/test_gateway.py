"""The content that gateways send is sealed, bounded and soon forgotten; the worker stores it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

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
from tenants.base.redis_connection import connect
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.privacy.consent.consent import NO_CONSENT
from tests.fakes.requests import make_admitted, make_arrival
from tests.fixtures.companies import Person, make_key
from tests.integration.content_capture.consenting_tenant import Willing, work


def principal(willing: Willing, person: Person) -> Principal:
    """Return the user's principal in the current snapshot."""
    make_key(willing.company, person)
    snapshot = read_snapshot(tenant_id=willing.company.tenant_id, now=timezone.now())
    credential = next(each for each in snapshot.credentials if each.user_id == person.user_id)
    return Principal(credential=credential, snapshot=snapshot)


def end(telemetry: ContentCapture, by: Principal, text: str) -> None:
    now_ms = SystemClock().now_ms()
    account = RequestTrace(
        arrival=replace(make_arrival(), occurred_at_ms=now_ms), clock=SystemClock()
    )
    account.principal = by
    account.mark_admitted(make_admitted(principal=by, prefix=f"{text} = "))
    account.record_sent_text("1", at_s=0.0)
    account.finish(FinishReason.STOP)
    telemetry.on_completed(account)


def deliver(fill: Callable[[ContentCapture], None]) -> None:
    """Deliver content that `fill` captures, as a gateway does."""

    async def run() -> None:
        async with Redis.from_url(settings.REDIS_URL) as redis:
            telemetry = ContentCapture(redis, root_secret=settings.ROOT_SECRET, clock=SystemClock())
            fill(telemetry)
            await telemetry.sender.send_pending()

    asyncio.run(run())


def test_a_completion_goes_from_the_gateway_into_the_store(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    by = principal(acme, ada)

    deliver(lambda telemetry: end(telemetry, by, "planted"))

    assert work().kept == 1
    assert len(acme.objects) == 1


def test_an_edit_goes_the_same_way(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    by = principal(acme, ada)
    edit = SuggestionEdit(new_request_id(), OutcomeEvent.PERSISTED, after_ms=30_000, text="planted")

    deliver(lambda telemetry: telemetry.on_edited(by, edit))

    assert work().kept == 1


def test_without_consent_nothing_is_sent(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(acme.company.administrator)
    by = principal(acme, ada)

    deliver(lambda telemetry: end(telemetry, by, "planted"))

    assert connect().exists(CONTENT) == 0


def test_after_a_withdrawal_the_snapshot_says_so(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    before = principal(acme, ada).is_content_captured

    acme.agree(ada, NO_CONSENT)

    assert (before, principal(acme, ada).is_content_captured) == (True, False)


def test_on_its_way_it_is_sealed_and_soon_forgotten(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    by = principal(acme, ada)

    deliver(lambda telemetry: end(telemetry, by, "planted"))

    assert b"planted" not in (connect().dump(CONTENT) or b"")
    assert 0 < int(str(connect().pttl(CONTENT))) <= MAX_AGE_S * 1000


def test_a_gateway_holds_so_much_of_a_tenant_and_no_more(acme: Willing, globex: Willing) -> None:
    for each in (acme, globex):
        each.agree(each.company.developer)
    ours, theirs = (principal(each, each.company.developer) for each in (acme, globex))

    def fill(telemetry: ContentCapture) -> None:
        for number in range(MAX_OF_TENANT + 10):
            end(telemetry, ours, f"planted{number}")
        end(telemetry, theirs, "theirs")

    deliver(fill)

    assert work().kept == MAX_OF_TENANT + 1
    assert len(globex.objects) == 1
