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
from tenants.identity.member_lifecycle import remove_member
from tenants.models import AuditEntry, ConsentReceipt
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tenants.privacy.consent.consent import NO_CONSENT, UserConsent
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    USER_CONSENT_VERSIONS,
    ConsentKind,
    get_consent_text,
)
from tenants.privacy.consent.queries import (
    ConsentReceiptView,
    OwnConsent,
    find_all_effective_consents,
    get_own_consent,
    list_receipts,
)
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent, withdraw_consent
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, Person, make_company

CAPTURE_CONSENT = UserConsent(content_capture=True, training=False)
CAPTURE_AND_TRAINING_CONSENT = UserConsent(content_capture=True, training=True)
CURRENT_CONSENT_TEXTS = frozenset(USER_CONSENT_VERSIONS.values())


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def consenting_company(acme: Company) -> Company:
    """Return a company that allows both kinds of consent. No user has consented yet."""
    allow_capture(acme, training=True)
    return acme


def allow_capture(company: Company, **content_capture: Any) -> None:
    """Allow content capture in the tenant's policy, but not training by default."""
    values = {"consent_text": TENANT_CONSENT_VERSION, "retention_days": 30, "training": False}
    change_policy(company, content_capture=values | content_capture)


def change_policy(company: Company, **changes: Any) -> None:
    """Change these fields of the policy. `content_capture=None` forbids content capture."""
    current_policy = find_policy_in_force(tenant_id=company.tenant_id).policy
    set_policy(
        actor=company.administrator.actor,
        document=serialize_policy(current_policy) | changes,
        reason="a test",
        now=timezone.now(),
    )


def save_consent(
    person: Person, consent: UserConsent, *, consent_texts: frozenset[str] = CURRENT_CONSENT_TEXTS
) -> OwnConsent:
    return set_consent(
        actor=person.actor, choice=ConsentChoice(consent, consent_texts), now=timezone.now()
    )


def read_receipts(company: Company, person: Person | None = None) -> list[ConsentReceiptView]:
    """Return the receipts that the person may see, newest first. None: the administrator."""
    actor = (person or company.administrator).actor
    return list_receipts(actor=actor, limit=200, cursor=None).rows


def read_consents(company: Company) -> dict[UserId, UserConsent]:
    """Return the consents in force, by user."""
    with tenant_scope(company.tenant_id):
        policy = find_policy_in_force(tenant_id=company.tenant_id).policy
        return find_all_effective_consents(tenant_id=company.tenant_id, policy=policy)


def test_users_have_not_consented_by_default(consenting_company: Company) -> None:
    own = get_own_consent(actor=consenting_company.developer.actor)

    assert (own.allowance, own.consent, own.retention_days) == (
        CAPTURE_AND_TRAINING_CONSENT,
        NO_CONSENT,
        30,
    )
    assert read_consents(consenting_company) == {}


def test_consent_counts_if_tenant_and_user_agree(consenting_company: Company) -> None:
    own = save_consent(consenting_company.developer, CAPTURE_AND_TRAINING_CONSENT)

    assert own.consent == CAPTURE_AND_TRAINING_CONSENT
    assert read_consents(consenting_company) == {
        consenting_company.developer.user_id: CAPTURE_AND_TRAINING_CONSENT
    }


@pytest.mark.parametrize("consent", [CAPTURE_CONSENT, CAPTURE_AND_TRAINING_CONSENT])
def test_users_cannot_consent_if_the_tenant_does_not_allow_it(
    acme: Company, consent: UserConsent
) -> None:
    with pytest.raises(Conflict):
        save_consent(acme.developer, consent)

    assert read_receipts(acme) == []


def test_training_needs_the_tenants_separate_permission(acme: Company) -> None:
    allow_capture(acme)

    with pytest.raises(Conflict):
        save_consent(acme.developer, CAPTURE_AND_TRAINING_CONSENT)

    assert save_consent(acme.developer, CAPTURE_CONSENT).consent == CAPTURE_CONSENT


def test_training_without_content_capture_is_refused(consenting_company: Company) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        save_consent(
            consenting_company.developer, UserConsent(content_capture=False, training=True)
        )

    assert exc_info.value.field == "training"


@pytest.mark.parametrize(
    "consent_texts", [frozenset(), {"content-capture-0"}, {TENANT_CONSENT_VERSION}]
)
def test_consent_requires_the_current_consent_text(
    consenting_company: Company, consent_texts: frozenset[str]
) -> None:
    with pytest.raises(InvalidValue, match="content-capture-1") as exc_info:
        save_consent(
            consenting_company.developer, CAPTURE_CONSENT, consent_texts=frozenset(consent_texts)
        )

    assert exc_info.value.field == "consent_texts"


def test_consent_leaves_a_receipt_with_version_and_digest_of_the_text(
    consenting_company: Company,
) -> None:
    ada = consenting_company.developer

    save_consent(ada, CAPTURE_CONSENT)

    # In a receipt, `wording` is the version of the consent text.
    (receipt,) = read_receipts(consenting_company, ada)
    assert (receipt.user_email, receipt.actor_email) == (ada.email, ada.email)
    assert (receipt.kind, receipt.is_granted, receipt.wording) == (
        ConsentKind.CONTENT_CAPTURE,
        True,
        "content-capture-1",
    )
    assert receipt.wording_sha256 == get_consent_text("content-capture-1").sha256
    assert receipt.address == ada.actor.address


def test_a_withdrawal_leaves_a_receipt(consenting_company: Company) -> None:
    save_consent(consenting_company.developer, CAPTURE_AND_TRAINING_CONSENT)

    own = withdraw_consent(actor=consenting_company.developer.actor, now=timezone.now())

    assert own.consent == NO_CONSENT
    receipt_facts = [
        (receipt.kind, receipt.is_granted)
        for receipt in read_receipts(consenting_company, consenting_company.developer)[:2]
    ]
    assert set(receipt_facts) == {
        (ConsentKind.TRAINING, False),
        (ConsentKind.CONTENT_CAPTURE, False),
    }
    assert read_consents(consenting_company) == {}


def test_the_end_of_a_membership_ends_the_consent(consenting_company: Company) -> None:
    developer = consenting_company.developer
    save_consent(developer, CAPTURE_CONSENT)

    remove_member(
        actor=consenting_company.platform,
        user_id=UserId(developer.user_id),
        reason="left",
        now=timezone.now(),
    )

    latest = read_receipts(consenting_company, developer)[0]
    assert (latest.kind, latest.is_granted) == (ConsentKind.CONTENT_CAPTURE, False)


def test_a_clock_that_jumps_back_does_not_restore_consent(consenting_company: Company) -> None:
    save_consent(consenting_company.developer, CAPTURE_CONSENT)

    set_consent(
        actor=consenting_company.developer.actor,
        choice=ConsentChoice(NO_CONSENT, CURRENT_CONSENT_TEXTS),
        now=timezone.now() - timedelta(days=1),
    )

    assert read_consents(consenting_company) == {}


def test_repeating_a_consent_changes_nothing(consenting_company: Company) -> None:
    for _ in range(2):
        save_consent(consenting_company.developer, CAPTURE_CONSENT)

    assert len(read_receipts(consenting_company, consenting_company.developer)) == 1


def test_the_tenants_decisions_leave_receipts_with_the_policy_version(acme: Company) -> None:
    allow_capture(acme, training=True)
    change_policy(acme, content_capture=None)

    decisions = [
        (receipt.user_email, receipt.kind, receipt.is_granted, receipt.policy_version)
        for receipt in read_receipts(acme)
    ]
    assert sorted(decisions, key=str) == sorted(
        [
            (None, ConsentKind.CONTENT_CAPTURE, True, 2),
            (None, ConsentKind.TRAINING, True, 2),
            (None, ConsentKind.CONTENT_CAPTURE, False, 3),
            (None, ConsentKind.TRAINING, False, 3),
        ],
        key=str,
    )


def test_an_unrelated_policy_change_leaves_no_receipt(consenting_company: Company) -> None:
    before = read_receipts(consenting_company)

    change_policy(consenting_company, max_concurrent_completions=9)
    allow_capture(consenting_company, training=True, retention_days=7)

    assert read_receipts(consenting_company) == before


def test_the_tenants_withdrawal_ends_its_users_consent_permanently(
    consenting_company: Company,
) -> None:
    save_consent(consenting_company.developer, CAPTURE_AND_TRAINING_CONSENT)

    change_policy(consenting_company, content_capture=None)
    consents_after = read_consents(consenting_company)
    allow_capture(consenting_company, training=True)

    assert consents_after == read_consents(consenting_company) == {}
    assert get_own_consent(actor=consenting_company.developer.actor).consent == NO_CONSENT
    assert [
        receipt.is_granted
        for receipt in read_receipts(consenting_company, consenting_company.developer)
    ] == [False] * 2 + [True] * 2


def test_the_tenants_ban_on_training_keeps_the_consent_to_capture(
    consenting_company: Company,
) -> None:
    save_consent(consenting_company.developer, CAPTURE_AND_TRAINING_CONSENT)

    allow_capture(consenting_company, training=False)
    allow_capture(consenting_company, training=True)

    assert read_consents(consenting_company) == {
        consenting_company.developer.user_id: CAPTURE_CONSENT
    }


def test_a_policy_with_an_unknown_consent_text_is_refused(acme: Company) -> None:
    with pytest.raises(InvalidValue, match=TENANT_CONSENT_VERSION) as exc_info:
        allow_capture(acme, consent_text="tenant-0")

    assert exc_info.value.field == "content_capture.consent_text"
    assert read_receipts(acme) == []


@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_retention_out_of_bounds_is_refused(acme: Company, days: int) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        allow_capture(acme, retention_days=days)

    assert exc_info.value.field == "content_capture.retention_days"


def test_the_platform_cannot_consent_for_a_user(consenting_company: Company) -> None:
    with pytest.raises(Forbidden):
        set_consent(
            actor=consenting_company.platform,
            choice=ConsentChoice(CAPTURE_CONSENT, CURRENT_CONSENT_TEXTS),
            now=timezone.now(),
        )


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_roles_without_completions_cannot_consent(consenting_company: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        save_consent(consenting_company.people[role], CAPTURE_CONSENT)


def test_a_developer_sees_only_their_own_receipts(consenting_company: Company) -> None:
    save_consent(consenting_company.developer, CAPTURE_CONSENT)
    save_consent(consenting_company.administrator, CAPTURE_CONSENT)

    own_receipts = read_receipts(consenting_company, consenting_company.developer)
    all_receipts = read_receipts(consenting_company)

    assert {receipt.user_email for receipt in own_receipts} == {consenting_company.developer.email}
    # The tenant allowed two kinds of consent, and two users consented to one of them.
    assert len(all_receipts) == 4


def test_another_tenant_sees_neither_receipts_nor_consents(consenting_company: Company) -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)
    allow_capture(globex)
    save_consent(consenting_company.developer, CAPTURE_CONSENT)

    assert {receipt.user_email for receipt in read_receipts(globex)} == {None}
    assert read_consents(globex) == {}


def test_a_change_is_audited(consenting_company: Company) -> None:
    save_consent(consenting_company.developer, CAPTURE_CONSENT)

    with tenant_scope(consenting_company.tenant_id):
        entry = AuditEntry.objects.get(action="consent.changed")
    assert entry.before == {"content_capture": False, "training": False}
    assert entry.after == {"content_capture": True, "training": False}


def test_receipts_can_be_neither_changed_nor_deleted(consenting_company: Company) -> None:
    save_consent(consenting_company.developer, CAPTURE_CONSENT)

    for change in (_update, _delete):
        with (
            pytest.raises(ProgrammingError, match="permission"),
            tenant_scope(consenting_company.tenant_id),
        ):
            change()


def _update() -> None:
    ConsentReceipt.objects.update(is_granted=False)


def _delete() -> None:
    ConsentReceipt.objects.all().delete()
