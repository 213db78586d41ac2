"""Each change of a policy creates a version with its author and reason."""

import json
from threading import Thread

import pytest
from django.db import connection
from django.utils import timezone

from caret.contracts.policy import Mode
from caret.contracts.snapshot import SNAPSHOTS, decode_snapshot
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.models import AuditEntry, PolicyVersion
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import get_policy
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def make_policy(*modes: Mode) -> dict[str, object]:
    """Return a policy that allows only these modes; without modes, it allows no completions."""
    return serialize_policy(DEFAULT_POLICY) | {"features": list(modes)}


def convert_to_json_types(document: dict[str, object]) -> object:
    """Return the document as it is read from the database, for example with lists for tuples."""
    return json.loads(json.dumps(document))


def test_a_new_tenant_has_the_default_policy(company: Company) -> None:
    current = get_policy(actor=company.administrator.actor)

    assert (current.version, current.policy, current.author_email) == (1, DEFAULT_POLICY, None)


def test_a_change_creates_the_next_version_with_its_author(company: Company) -> None:
    bob = company.administrator

    changed_policy = set_policy(
        actor=bob.actor, document=make_policy(Mode.FIM), reason="only FIM", now=timezone.now()
    )

    assert (changed_policy.version, changed_policy.author_email, changed_policy.reason) == (
        2,
        bob.email,
        "only FIM",
    )
    assert changed_policy.policy.features == {Mode.FIM}


def test_a_change_is_published_to_gateways(company: Company) -> None:
    set_policy(
        actor=company.platform,
        document=make_policy(Mode.FIM),
        reason="only FIM",
        now=timezone.now(),
    )

    data = connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    assert decode_snapshot(data).policy.features == {Mode.FIM}


def test_another_tenants_policy_is_unchanged(company: Company, cast: Cast) -> None:
    before = get_policy(actor=cast.globex.administrator.actor)

    set_policy(actor=company.platform, document=make_policy(), reason="off", now=timezone.now())

    assert get_policy(actor=cast.globex.administrator.actor) == before


def test_the_audit_entry_has_the_policy_before_and_after(company: Company) -> None:
    set_policy(actor=company.platform, document=make_policy(), reason="off", now=timezone.now())

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="policy.changed")
    assert entry.before == {"policy": convert_to_json_types(serialize_policy(DEFAULT_POLICY))}
    assert entry.after == {"policy": convert_to_json_types(make_policy())}
    assert entry.reason == "off"


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_changing_policies_requires_permission(cast: Cast, role: Role) -> None:
    with pytest.raises(Forbidden):
        set_policy(
            actor=cast.acme.people[role].actor,
            document=make_policy(),
            reason="x",
            now=timezone.now(),
        )


@pytest.mark.parametrize("reason", ["", "  ", "x" * (MAX_REASON_CHARS + 1)])
def test_a_missing_or_too_long_reason_is_rejected(company: Company, reason: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        set_policy(
            actor=company.platform, document=make_policy(), reason=reason, now=timezone.now()
        )

    assert exc_info.value.field == "reason"


def test_a_malformed_policy_creates_no_version(company: Company) -> None:
    with pytest.raises(InvalidValue):
        set_policy(actor=company.platform, document={"x": 1}, reason="x", now=timezone.now())

    assert get_policy(actor=company.administrator.actor).version == 1


def test_replacing_an_outdated_version_is_a_conflict(company: Company) -> None:
    actor, now = company.platform, timezone.now()
    set_policy(actor=actor, document=make_policy(), reason="first", now=now, expected_version=1)

    with pytest.raises(Conflict, match="current version is 2"):
        set_policy(
            actor=actor,
            document=make_policy(Mode.FIM),
            reason="late",
            now=now,
            expected_version=1,
        )

    assert get_policy(actor=company.administrator.actor).version == 2


def test_concurrent_changes_are_applied_one_after_the_other(company: Company) -> None:
    def change() -> None:
        set_policy(actor=company.platform, document=make_policy(), reason="off", now=timezone.now())
        connection.close()

    threads = [Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with tenant_scope(company.tenant_id):
        versions = sorted(PolicyVersion.objects.values_list("version", flat=True))
    assert versions == [1, 2, 3, 4, 5]
