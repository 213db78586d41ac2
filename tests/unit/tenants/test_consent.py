"""Consent requires both the tenant's and the user's, to the current wordings."""

import hashlib
from itertools import product
from pathlib import Path

import pytest

from caret.contracts.policy import ContentCapturePolicy
from caret.foundation.ids import UserId
from tenants.privacy.consent import consent_texts
from tenants.privacy.consent.consent import (
    NO_CONSENT,
    ConsentStatement,
    UserConsent,
    consent_of,
    effective_consent,
    tenant_consent,
)
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_TEXT,
    USER_WORDINGS,
    ConsentKind,
    get_consent_text,
)
from tenants.privacy.consent.receipts import answers_of_choice, answers_of_policy

ADA = UserId("ada")
YES, BOTH = UserConsent(telemetry=True, training=False), UserConsent(telemetry=True, training=True)


def policy(*, training: bool = False, wording: str = TENANT_CONSENT_TEXT) -> ContentCapturePolicy:
    return ContentCapturePolicy(wording=wording, retention_days=30, training=training)


def said(
    kind: ConsentKind, *, is_given: bool = True, wording: str | None = None
) -> ConsentStatement:
    return ConsentStatement(kind, is_given=is_given, wording=wording or USER_WORDINGS[kind])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, NO_CONSENT),
        (policy(), YES),
        (policy(training=True), BOTH),
        (policy(training=True, wording="tenant-0"), NO_CONSENT),
    ],
)
def test_the_tenant_allows_what_its_policy_says_by_the_wording_in_force(
    policy: ContentCapturePolicy | None, expected: UserConsent
) -> None:
    assert tenant_consent(policy) == expected


@pytest.mark.parametrize(
    ("receipts", "expected"),
    [
        ([], NO_CONSENT),
        ([said(ConsentKind.TELEMETRY)], YES),
        ([said(ConsentKind.TELEMETRY), said(ConsentKind.TRAINING)], BOTH),
        ([said(ConsentKind.TRAINING)], NO_CONSENT),
        ([said(ConsentKind.TELEMETRY), said(ConsentKind.TELEMETRY, is_given=False)], NO_CONSENT),
        ([said(ConsentKind.TELEMETRY, is_given=False), said(ConsentKind.TELEMETRY)], YES),
        ([said(ConsentKind.TELEMETRY, wording="telemetry-0")], NO_CONSENT),
        ([said(ConsentKind.TELEMETRY), said(ConsentKind.TRAINING, wording="training-0")], YES),
    ],
)
def test_the_last_receipt_of_a_kind_counts(
    receipts: list[ConsentStatement], expected: UserConsent
) -> None:
    assert consent_of(receipts) == expected


def test_nothing_is_allowed_that_not_both_have_said() -> None:
    every = [NO_CONSENT, YES, BOTH]

    for consent, lets in product(every, every):
        both = effective_consent(consent, lets)
        assert both.telemetry == (consent.telemetry and lets.telemetry)
        assert both.training == (consent.training and lets.training)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], YES, [(ConsentKind.TELEMETRY, True)]),
        ([], NO_CONSENT, []),
        ([said(ConsentKind.TELEMETRY)], YES, []),
        ([said(ConsentKind.TELEMETRY)], BOTH, [(ConsentKind.TRAINING, True)]),
        ([said(ConsentKind.TELEMETRY)], NO_CONSENT, [(ConsentKind.TELEMETRY, False)]),
        (
            [said(ConsentKind.TELEMETRY, wording="telemetry-0")],
            YES,
            [(ConsentKind.TELEMETRY, True)],
        ),
        (
            [said(ConsentKind.TELEMETRY, wording="telemetry-0")],
            NO_CONSENT,
            [(ConsentKind.TELEMETRY, False)],
        ),
        # Ended with the previous wording; the earlier consent to training must not become valid
        # again.
        (
            [said(ConsentKind.TELEMETRY, wording="telemetry-0"), said(ConsentKind.TRAINING)],
            YES,
            [(ConsentKind.TELEMETRY, True), (ConsentKind.TRAINING, False)],
        ),
    ],
)
def test_a_choice_is_answered_by_what_is_news(
    before: list[ConsentStatement], after: UserConsent, expected: list[tuple[ConsentKind, bool]]
) -> None:
    answers = answers_of_choice(ADA, before, after)

    assert [(each.kind, each.is_given) for each in answers] == expected
    assert {each.wording for each in answers} <= set(USER_WORDINGS.values())


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, None, []),
        (None, policy(), [(ConsentKind.TELEMETRY, True)]),
        (policy(), policy(), []),
        (policy(), policy(training=True), [(ConsentKind.TRAINING, True)]),
        (policy(training=True), policy(), [(ConsentKind.TRAINING, False)]),
        (
            policy(training=True),
            None,
            [(ConsentKind.TELEMETRY, False), (ConsentKind.TRAINING, False)],
        ),
        (policy(wording="tenant-0"), policy(), [(ConsentKind.TELEMETRY, True)]),
    ],
)
def test_a_policy_is_answered_by_what_is_news(
    before: ContentCapturePolicy | None,
    after: ContentCapturePolicy | None,
    expected: list[tuple[ConsentKind, bool]],
) -> None:
    answers = answers_of_policy(before, after)

    assert [(each.kind, each.is_given) for each in answers] == expected
    assert {each.wording for each in answers} <= {TENANT_CONSENT_TEXT}


# Published wordings must not change: users have consented to exactly this text.
_PUBLISHED = {
    "telemetry-1": "c12c24fa1dbc5af861dcd8ce89e4e718454b538707f3a17a50c081c0ad00b041",
    "tenant-1": "e090bfb4e02d64f2e483860be542dadb5e2631e2b13c407fe020b620a16552bf",
    "training-1": "09fa61ee3d47ae39be58ab92f3a8531d7ee0731e05fe00a9d818d3eb63e69b45",
}


def test_a_published_wording_is_never_edited() -> None:
    folder = Path(consent_texts.__file__).parent / "wordings"

    assert {
        file.stem: get_consent_text(file.stem).sha256 for file in folder.glob("*.txt")
    } == _PUBLISHED


def test_a_wordings_digest_is_that_of_its_text() -> None:
    found = get_consent_text(TENANT_CONSENT_TEXT)

    assert found.sha256 == hashlib.sha256(found.text.encode()).hexdigest()
