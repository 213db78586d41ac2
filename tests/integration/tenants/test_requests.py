"""A request by its ID: visible to its tenant, its developer and the operator."""

import json
import uuid
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.foundation.clock import to_unix_ms
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.models import AuditEntry
from tenants.usage.requests.lookup import find_request, find_request_as_operator
from tests.fixtures.companies import Cast, Company, make_completion


def test_a_tenant_s_people_find_its_request(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer, cached_tokens=None)

    found = find_request(
        actor=cast.acme.administrator.actor, request_id=uuid.UUID(request_id), now=timezone.now()
    )

    assert found.request_id == request_id
    assert found.tenant_id == cast.acme.tenant_id
    assert found.cached_tokens is None
    assert found.routed_ms == 2.5


def test_the_neighbour_does_not_find_it(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer)

    with pytest.raises(NotFound):
        find_request(
            actor=cast.globex.administrator.actor,
            request_id=uuid.UUID(request_id),
            now=timezone.now(),
        )


def test_a_developer_finds_his_own_only(cast: Cast) -> None:
    own = make_completion(cast.acme, cast.acme.developer)
    alices = make_completion(cast.acme, cast.acme.administrator)
    actor = cast.acme.developer.actor

    assert (
        find_request(actor=actor, request_id=uuid.UUID(own), now=timezone.now()).request_id == own
    )
    with pytest.raises(NotFound):
        find_request(actor=actor, request_id=uuid.UUID(alices), now=timezone.now())


# In the last minute that Python can represent.
_LAST = uuid.UUID(int=to_unix_ms(datetime.max.replace(tzinfo=UTC)) << 80)


@pytest.mark.parametrize(
    "request_id", [uuid.uuid4(), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), _LAST]
)
def test_an_id_of_nothing_is_not_found(cast: Cast, request_id: uuid.UUID) -> None:
    with pytest.raises(NotFound):
        find_request(actor=cast.acme.platform, request_id=request_id, now=timezone.now())


def test_the_operator_finds_it_without_knowing_whose_it_is(cast: Cast) -> None:
    request_id = make_completion(cast.globex, cast.globex.developer)

    slug, found = find_request_as_operator(request_id=uuid.UUID(request_id), now=timezone.now())

    assert (slug, found.request_id) == (cast.globex.slug, request_id)


def test_under_another_tenant_s_name_the_operator_does_not(cast: Cast) -> None:
    request_id = make_completion(cast.globex, cast.globex.developer)

    with pytest.raises(NotFound):
        find_request_as_operator(
            request_id=uuid.UUID(request_id), now=timezone.now(), slug=cast.acme.slug
        )


def test_the_command_explains_it(cast: Cast) -> None:
    slow = {"cached_tokens": 88, "engine_ms": 400.0, "first_token_ms": 403.0, "total_ms": 480.0}
    request_id = make_completion(cast.acme, cast.acme.developer, **slow)

    text, parsed = StringIO(), StringIO()
    call_command("explain_request", request_id, stdout=text)
    call_command("explain_request", request_id, "--tenant", cast.acme.slug, "--json", stdout=parsed)

    assert "Cold cache: the engine prefilled 1,812 of 1,900 prompt tokens." in text.getvalue()
    told = json.loads(parsed.getvalue())
    assert told["tenant"] == cast.acme.slug
    assert told["explanation"]["is_slow"] is True


@pytest.mark.parametrize(
    "request_id", [str(uuid.uuid4()), "hunter2", ""], ids=["unknown", "no id", "empty"]
)
def test_the_command_refuses_what_it_does_not_find_in_one_sentence(request_id: str) -> None:
    with pytest.raises(CommandError):
        call_command("explain_request", request_id)


def looks_at(company: Company, request_id: str) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(
            AuditEntry.objects.filter(target=f"request:{request_id}").select_related("actor")
        )


def test_a_look_at_somebody_else_s_request_is_in_the_trail(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer)
    alice = cast.acme.administrator

    find_request(actor=alice.actor, request_id=uuid.UUID(request_id), now=timezone.now())

    (look,) = looks_at(cast.acme, request_id)
    assert (look.action, str(look.actor_id)) == ("request.explained", alice.user_id)


def test_a_look_at_one_s_own_request_is_not(cast: Cast) -> None:
    request_id = make_completion(cast.acme, cast.acme.developer)

    find_request(
        actor=cast.acme.developer.actor, request_id=uuid.UUID(request_id), now=timezone.now()
    )

    assert looks_at(cast.acme, request_id) == []


def test_the_operator_s_look_is_in_that_tenant_s_trail_with_a_reason(cast: Cast) -> None:
    request_id = make_completion(cast.globex, cast.globex.developer)

    call_command("explain_request", request_id, reason="ticket 7", stdout=StringIO())

    (look,) = looks_at(cast.globex, request_id)
    assert (look.actor_kind, look.reason) == ("platform", "ticket 7")
    assert looks_at(cast.acme, request_id) == []
