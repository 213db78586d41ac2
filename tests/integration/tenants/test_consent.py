"""Consent to content capture: permissions, and the receipts."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError
from django.utils import timezone

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.models import AuditEntry, ConsentReceipt
from tenants.policy.document import write_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy
from tenants.privacy.consent.consent import NO_CONSENT, UserConsent
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_TEXT,
    USER_WORDINGS,
    ConsentKind,
    get_consent_text,
)
from tenants.privacy.consent.queries import (
    ConsentReceiptView,
    OwnConsent,
    find_consents,
    get_own_consent,
    list_receipts,
)
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent, withdraw_consent
from tests.fixtures.companies import ACME, GLOBEX, Company, Person, make_company

YES, BOTH = UserConsent(telemetry=True, training=False), UserConsent(telemetry=True, training=True)
READ = frozenset(USER_WORDINGS.values())


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME)


@pytest.fixture
def willing(acme: Company) -> Company:
    """Allow both kinds of consent."""
    allow(acme, training=True)
    return acme


def allow(company: Company, **telemetry: Any) -> None:
    values = {"wording": TENANT_CONSENT_TEXT, "retention_days": 30, "training": False}
    change_policy(company, telemetry=values | telemetry)


def change_policy(company: Company, **changes: Any) -> None:
    held = find_policy(tenant_id=company.tenant_id).policy
    set_policy(
        actor=company.administrator.actor,
        document=write_policy(held) | changes,
        reason="a test",
        now=timezone.now(),
    )


def say(person: Person, consent: UserConsent, *, wordings: frozenset[str] = READ) -> OwnConsent:
    return set_consent(
        actor=person.actor, choice=ConsentChoice(consent, wordings), now=timezone.now()
    )


def receipts(company: Company, person: Person | None = None) -> list[ConsentReceiptView]:
    actor = (person or company.administrator).actor
    return list_receipts(actor=actor, limit=200, cursor=None).rows


def consents(company: Company) -> dict[UserId, UserConsent]:
    with tenant_scope(company.tenant_id):
        policy = find_policy(tenant_id=company.tenant_id).policy
        return find_consents(tenant_id=company.tenant_id, policy=policy)


def test_nobody_has_agreed_to_anything_at_first(willing: Company) -> None:
    own = get_own_consent(actor=willing.developer.actor)

    assert (own.allowance, own.given, own.retention_days) == (BOTH, NO_CONSENT, 30)
    assert consents(willing) == {}


def test_with_both_keys_turned_consent_counts(willing: Company) -> None:
    own = say(willing.developer, BOTH)

    assert own.given == BOTH
    assert consents(willing) == {willing.developer.user_id: BOTH}


@pytest.mark.parametrize("consent", [YES, BOTH])
def test_without_the_tenants_key_nobody_can_agree(acme: Company, consent: UserConsent) -> None:
    with pytest.raises(Conflict):
        say(acme.developer, consent)

    assert receipts(acme) == []


def test_training_is_a_yes_of_its_own(acme: Company) -> None:
    allow(acme)

    with pytest.raises(Conflict):
        say(acme.developer, BOTH)

    assert say(acme.developer, YES).given == YES


def test_training_without_telemetry_is_refused(willing: Company) -> None:
    with pytest.raises(InvalidValue) as caught:
        say(willing.developer, UserConsent(telemetry=False, training=True))

    assert caught.value.field == "training"


@pytest.mark.parametrize("wordings", [frozenset(), {"telemetry-0"}, {TENANT_CONSENT_TEXT}])
def test_who_has_not_read_the_wording_has_not_agreed(
    willing: Company, wordings: frozenset[str]
) -> None:
    with pytest.raises(InvalidValue, match="telemetry-1") as caught:
        say(willing.developer, YES, wordings=frozenset(wordings))

    assert caught.value.field == "wordings"


def test_a_yes_leaves_a_receipt_with_the_wordings_version_and_digest(willing: Company) -> None:
    ada = willing.developer

    say(ada, YES)

    (receipt,) = receipts(willing, ada)
    assert (receipt.user_email, receipt.actor_email) == (ada.email, ada.email)
    assert (receipt.kind, receipt.is_given, receipt.wording) == (
        ConsentKind.TELEMETRY,
        True,
        "telemetry-1",
    )
    assert receipt.wording_sha256 == get_consent_text("telemetry-1").sha256
    assert receipt.address == ada.actor.address


def test_a_no_leaves_a_receipt_too(willing: Company) -> None:
    say(willing.developer, BOTH)

    own = withdraw_consent(actor=willing.developer.actor, now=timezone.now())

    assert own.given == NO_CONSENT
    said = [(each.kind, each.is_given) for each in receipts(willing, willing.developer)[:2]]
    assert set(said) == {(ConsentKind.TRAINING, False), (ConsentKind.TELEMETRY, False)}
    assert consents(willing) == {}


def test_a_clock_that_jumps_back_brings_no_consent_back(willing: Company) -> None:
    say(willing.developer, YES)

    set_consent(
        actor=willing.developer.actor,
        choice=ConsentChoice(NO_CONSENT, READ),
        now=timezone.now() - timedelta(days=1),
    )

    assert consents(willing) == {}


def test_saying_it_again_changes_nothing(willing: Company) -> None:
    for _ in range(2):
        say(willing.developer, YES)

    assert len(receipts(willing, willing.developer)) == 1


def test_the_tenants_yes_and_no_leave_receipts_with_the_policys_version(acme: Company) -> None:
    allow(acme, training=True)
    change_policy(acme, telemetry=None)

    found = [
        (each.user_email, each.kind, each.is_given, each.policy_version) for each in receipts(acme)
    ]
    assert sorted(found, key=str) == sorted(
        [
            (None, ConsentKind.TELEMETRY, True, 2),
            (None, ConsentKind.TRAINING, True, 2),
            (None, ConsentKind.TELEMETRY, False, 3),
            (None, ConsentKind.TRAINING, False, 3),
        ],
        key=str,
    )


def test_another_change_of_the_policy_leaves_no_receipt(willing: Company) -> None:
    before = receipts(willing)

    change_policy(willing, max_concurrent_completions=9)
    allow(willing, training=True, retention_days=7)

    assert receipts(willing) == before


def test_the_tenants_no_ends_its_users_consent_for_good(willing: Company) -> None:
    say(willing.developer, BOTH)

    change_policy(willing, telemetry=None)
    ended = consents(willing)
    allow(willing, training=True)

    assert ended == consents(willing) == {}
    assert get_own_consent(actor=willing.developer.actor).given == NO_CONSENT
    assert [each.is_given for each in receipts(willing, willing.developer)] == [False] * 2 + [
        True
    ] * 2


def test_the_tenants_no_to_training_leaves_telemetry(willing: Company) -> None:
    say(willing.developer, BOTH)

    allow(willing, training=False)
    allow(willing, training=True)

    assert consents(willing) == {willing.developer.user_id: YES}


def test_a_policy_by_another_wording_is_refused(acme: Company) -> None:
    with pytest.raises(InvalidValue, match=TENANT_CONSENT_TEXT) as caught:
        allow(acme, wording="tenant-0")

    assert caught.value.field == "telemetry.wording"
    assert receipts(acme) == []


@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_retention_out_of_bounds_is_refused(acme: Company, days: int) -> None:
    with pytest.raises(InvalidValue) as caught:
        allow(acme, retention_days=days)

    assert caught.value.field == "telemetry.retention_days"


def test_the_platform_agrees_for_nobody(willing: Company) -> None:
    with pytest.raises(Forbidden):
        set_consent(actor=willing.platform, choice=ConsentChoice(YES, READ), now=timezone.now())


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_who_completes_nothing_agrees_to_nothing(willing: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        say(willing.people[role], YES)


def test_a_developer_sees_his_own_receipts_only(willing: Company) -> None:
    say(willing.developer, YES)
    say(willing.administrator, YES)

    own, all_of_them = receipts(willing, willing.developer), receipts(willing)

    assert {each.user_email for each in own} == {willing.developer.email}
    assert len(all_of_them) == 4


def test_the_neighbour_sees_no_receipt_and_no_consent_of_ours(willing: Company) -> None:
    globex = make_company("globex", GLOBEX)
    allow(globex)
    say(willing.developer, YES)

    assert {each.user_email for each in receipts(globex)} == {None}
    assert consents(globex) == {}


def test_a_change_is_in_the_trail(willing: Company) -> None:
    say(willing.developer, YES)

    with tenant_scope(willing.tenant_id):
        entry = AuditEntry.objects.get(action="consent.changed")
    assert entry.before == {"telemetry": False, "training": False}
    assert entry.after == {"telemetry": True, "training": False}


def test_receipts_are_never_changed_nor_deleted(willing: Company) -> None:
    say(willing.developer, YES)

    for change in (_update, _delete):
        with pytest.raises(ProgrammingError, match="permission"), tenant_scope(willing.tenant_id):
            change()


def _update() -> None:
    ConsentReceipt.objects.update(is_given=False)


def _delete() -> None:
    ConsentReceipt.objects.all().delete()
