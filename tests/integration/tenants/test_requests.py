"""A request is found by its ID: by its tenant's administrators, its developer and the operator."""

import json
import uuid
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.foundation.clock import to_unix_ms
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.models import AuditEntry
from tenants.usage.requests.lookup import find_request, find_request_as_operator
from tests.fixtures.companies import Cast, Company, make_completion


def test_an_administrator_finds_a_request_of_the_tenant(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer, cached_tokens=None)

    request = find_request(
        actor=cast.acme.administrator.actor, request_id=uuid.UUID(request_id), now=timezone.now()
    )

    assert request.request_id == request_id
    assert request.tenant_id == cast.acme.tenant_id
    assert request.cached_tokens is None
    assert request.routed_ms == 2.5  # the value of make_completion


def test_another_tenant_does_not_find_a_request(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer)

    with pytest.raises(NotFound):
        find_request(
            actor=cast.globex.administrator.actor,
            request_id=uuid.UUID(request_id),
            now=timezone.now(),
        )


def test_a_developer_finds_only_their_own_requests(cast: Cast) -> None:
    own_id = make_completion(cast.acme, cast.acme.developer)
    alices_id = make_completion(cast.acme, cast.acme.administrator)
    actor = cast.acme.developer.actor

    assert (
        find_request(actor=actor, request_id=uuid.UUID(own_id), now=timezone.now()).request_id
        == own_id
    )
    with pytest.raises(NotFound):
        find_request(actor=actor, request_id=uuid.UUID(alices_id), now=timezone.now())


# A request ID whose time is the last one that Python can represent. A request ID is a UUIDv7: the
# first 48 of its 128 bits are the time.
LAST_TIME_ID = uuid.UUID(int=to_unix_ms(datetime.max.replace(tzinfo=UTC)) << 80)


@pytest.mark.parametrize(
    "request_id", [uuid.uuid4(), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), LAST_TIME_ID]
)
def test_an_unknown_id_is_not_found(cast: Cast, request_id: uuid.UUID) -> None:
    with pytest.raises(NotFound):
        find_request(actor=cast.acme.platform, request_id=request_id, now=timezone.now())


def test_the_operator_finds_a_request_without_knowing_its_tenant(cast: Cast) -> None:
    request_id = make_completion(cast.globex, cast.globex.developer)

    slug, request = find_request_as_operator(request_id=uuid.UUID(request_id), now=timezone.now())

    assert (slug, request.request_id) == (cast.globex.slug, request_id)


def test_the_operator_does_not_find_a_request_under_another_tenant(cast: Cast) -> None:
    request_id = make_completion(cast.globex, cast.globex.developer)

    with pytest.raises(NotFound):
        find_request_as_operator(
            request_id=uuid.UUID(request_id), now=timezone.now(), slug=cast.acme.slug
        )


def test_the_command_explains_a_request(cast: Cast) -> None:
    slow: dict[str, Any] = {
        "cached_tokens": 88,
        "engine_ms": 400.0,
        "first_token_ms": 403.0,
        "total_ms": 480.0,
    }
    request_id = make_completion(cast.acme, cast.acme.developer, **slow)

    text_output, json_output = StringIO(), StringIO()
    call_command("explain_request", request_id, stdout=text_output)
    call_command(
        "explain_request", request_id, "--tenant", cast.acme.slug, "--json", stdout=json_output
    )

    summary = "Cold cache: the engine prefilled 1,812 of 1,900 prompt tokens."
    assert summary in text_output.getvalue()
    result = json.loads(json_output.getvalue())
    assert result["tenant"] == cast.acme.slug
    assert result["explanation"]["is_slow"] is True


@pytest.mark.parametrize(
    "request_id", [str(uuid.uuid4()), "hunter2", ""], ids=["unknown", "no id", "empty"]
)
def test_the_command_reports_an_unknown_request(request_id: str) -> None:
    with pytest.raises(CommandError):
        call_command("explain_request", request_id)


def list_audit_entries(company: Company, request_id: str) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(
            AuditEntry.objects.filter(target=f"request:{request_id}").select_related("actor")
        )


def test_reading_another_users_request_is_audited(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer)
    alice = cast.acme.administrator

    find_request(actor=alice.actor, request_id=uuid.UUID(request_id), now=timezone.now())

    (entry,) = list_audit_entries(cast.acme, request_id)
    assert (entry.action, str(entry.actor_id)) == ("request.explained", alice.user_id)


def test_reading_ones_own_request_is_not_audited(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer)

    find_request(
        actor=cast.acme.developer.actor, request_id=uuid.UUID(request_id), now=timezone.now()
    )

    assert list_audit_entries(cast.acme, request_id) == []


def test_an_operators_read_is_audited_with_its_reason(cast: Cast) -> None:
    request_id = make_completion(cast.globex, cast.globex.developer)

    call_command("explain_request", request_id, reason="ticket 7", stdout=StringIO())

    (entry,) = list_audit_entries(cast.globex, request_id)
    assert (entry.actor_kind, entry.reason) == ("platform", "ticket 7")
    assert list_audit_entries(cast.acme, request_id) == []
