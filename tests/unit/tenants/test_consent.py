"""Content capture needs the consent of the tenant and of the user to the current consent texts."""

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
    compute_effective_consent,
    compute_user_consent,
    get_tenant_consent,
)
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    USER_CONSENT_VERSIONS,
    ConsentKind,
    get_consent_text,
)
from tenants.privacy.consent.receipts import draft_receipts_of_choice, draft_receipts_of_policy

# The names of current consent texts end in 1. Those that end in 0 stand for outdated texts.
ADA = UserId("ada")
CAPTURE, CAPTURE_AND_TRAINING = (
    UserConsent(content_capture=True, training=False),
    UserConsent(content_capture=True, training=True),
)


def policy(
    *, training: bool = False, wording: str = TENANT_CONSENT_VERSION
) -> ContentCapturePolicy:
    return ContentCapturePolicy(consent_text=wording, retention_days=30, training=training)


def statement(
    kind: ConsentKind, *, is_granted: bool = True, wording: str | None = None
) -> ConsentStatement:
    return ConsentStatement(
        kind, is_granted=is_granted, wording=wording or USER_CONSENT_VERSIONS[kind]
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, NO_CONSENT),
        (policy(), CAPTURE),
        (policy(training=True), CAPTURE_AND_TRAINING),
        (policy(training=True, wording="tenant-0"), NO_CONSENT),
    ],
)
def test_the_tenant_consents_by_its_policy_and_the_current_text(
    policy: ContentCapturePolicy | None, expected: UserConsent
) -> None:
    assert get_tenant_consent(policy) == expected


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], NO_CONSENT),
        ([statement(ConsentKind.CONTENT_CAPTURE)], CAPTURE),
        (
            [statement(ConsentKind.CONTENT_CAPTURE), statement(ConsentKind.TRAINING)],
            CAPTURE_AND_TRAINING,
        ),
        ([statement(ConsentKind.TRAINING)], NO_CONSENT),
        (
            [
                statement(ConsentKind.CONTENT_CAPTURE),
                statement(ConsentKind.CONTENT_CAPTURE, is_granted=False),
            ],
            NO_CONSENT,
        ),
        (
            [
                statement(ConsentKind.CONTENT_CAPTURE, is_granted=False),
                statement(ConsentKind.CONTENT_CAPTURE),
            ],
            CAPTURE,
        ),
        ([statement(ConsentKind.CONTENT_CAPTURE, wording="content-capture-0")], NO_CONSENT),
        (
            [
                statement(ConsentKind.CONTENT_CAPTURE),
                statement(ConsentKind.TRAINING, wording="training-0"),
            ],
            CAPTURE,
        ),
    ],
)
def test_the_last_statement_of_a_kind_counts(
    statements: list[ConsentStatement], expected: UserConsent
) -> None:
    assert compute_user_consent(statements) == expected


def test_user_and_tenant_must_both_consent() -> None:
    consents = [NO_CONSENT, CAPTURE, CAPTURE_AND_TRAINING]

    for user, tenant in product(consents, consents):
        effective = compute_effective_consent(user, tenant)
        assert effective.content_capture == (user.content_capture and tenant.content_capture)
        assert effective.training == (user.training and tenant.training)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], CAPTURE, [(ConsentKind.CONTENT_CAPTURE, True)]),
        ([], NO_CONSENT, []),
        ([statement(ConsentKind.CONTENT_CAPTURE)], CAPTURE, []),
        (
            [statement(ConsentKind.CONTENT_CAPTURE)],
            CAPTURE_AND_TRAINING,
            [(ConsentKind.TRAINING, True)],
        ),
        (
            [statement(ConsentKind.CONTENT_CAPTURE)],
            NO_CONSENT,
            [(ConsentKind.CONTENT_CAPTURE, False)],
        ),
        (
            [statement(ConsentKind.CONTENT_CAPTURE, wording="content-capture-0")],
            CAPTURE,
            [(ConsentKind.CONTENT_CAPTURE, True)],
        ),
        (
            [statement(ConsentKind.CONTENT_CAPTURE, wording="content-capture-0")],
            NO_CONSENT,
            [(ConsentKind.CONTENT_CAPTURE, False)],
        ),
        # The earlier consent to training ended with the previous wording of content capture, on
        # which it depends. It must not become valid again.
        (
            [
                statement(ConsentKind.CONTENT_CAPTURE, wording="content-capture-0"),
                statement(ConsentKind.TRAINING),
            ],
            CAPTURE,
            [(ConsentKind.CONTENT_CAPTURE, True), (ConsentKind.TRAINING, False)],
        ),
    ],
)
def test_a_choice_creates_statements_only_for_changes(
    before: list[ConsentStatement], after: UserConsent, expected: list[tuple[ConsentKind, bool]]
) -> None:
    statements = draft_receipts_of_choice(ADA, before, after)

    assert [(statement.kind, statement.is_granted) for statement in statements] == expected
    assert {statement.wording for statement in statements} <= set(USER_CONSENT_VERSIONS.values())


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, None, []),
        (None, policy(), [(ConsentKind.CONTENT_CAPTURE, True)]),
        (policy(), policy(), []),
        (policy(), policy(training=True), [(ConsentKind.TRAINING, True)]),
        (policy(training=True), policy(), [(ConsentKind.TRAINING, False)]),
        (
            policy(training=True),
            None,
            [(ConsentKind.CONTENT_CAPTURE, False), (ConsentKind.TRAINING, False)],
        ),
        (policy(wording="tenant-0"), policy(), [(ConsentKind.CONTENT_CAPTURE, True)]),
    ],
)
def test_a_policy_creates_statements_only_for_changes(
    before: ContentCapturePolicy | None,
    after: ContentCapturePolicy | None,
    expected: list[tuple[ConsentKind, bool]],
) -> None:
    statements = draft_receipts_of_policy(before, after)

    assert [(statement.kind, statement.is_granted) for statement in statements] == expected
    assert {statement.wording for statement in statements} <= {TENANT_CONSENT_VERSION}


# Published texts must not change: users have consented to exactly this text.
_PUBLISHED = {
    "content-capture-1": "c12c24fa1dbc5af861dcd8ce89e4e718454b538707f3a17a50c081c0ad00b041",
    "tenant-1": "e090bfb4e02d64f2e483860be542dadb5e2631e2b13c407fe020b620a16552bf",
    "training-1": "09fa61ee3d47ae39be58ab92f3a8531d7ee0731e05fe00a9d818d3eb63e69b45",
}


def test_a_published_text_is_never_edited() -> None:
    folder = Path(consent_texts.__file__).parent / "wordings"

    assert {
        file.stem: get_consent_text(file.stem).sha256 for file in folder.glob("*.txt")
    } == _PUBLISHED


def test_the_digest_of_a_text_is_the_hash_of_its_content() -> None:
    consent_text = get_consent_text(TENANT_CONSENT_VERSION)

    assert consent_text.sha256 == hashlib.sha256(consent_text.text.encode()).hexdigest()
