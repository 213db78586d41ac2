"""The page "Your data": the user's consent, its receipts, and the export of personal data."""

import io
from zipfile import ZipFile

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.models import AuditEntry, ConsentReceipt
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.privacy.consent.consent import NO_CONSENT, UserConsent
from tenants.privacy.consent.queries import get_own_consent
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

PAGE = "/account/my-data"
# `wording` has the versions of the consent texts that the page shows.
CONSENT_FORM = {"agrees": "on", "wording": ["content-capture-1", "training-1"]}


@pytest.fixture
def consenting_company() -> Company:
    """Make a company whose policy allows content capture and training. No user has consented."""
    company = make_company("acme", ACME_PEOPLE)
    content_capture = {"consent_text": "tenant-1", "retention_days": 30, "training": True}
    set_policy(
        actor=company.platform,
        document=serialize_policy(DEFAULT_POLICY) | {"content_capture": content_capture},
        reason="a test",
        now=timezone.now(),
    )
    return company


@pytest.fixture
def ada(consenting_company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Ada, the developer."""
    return sign_in(consenting_company.developer)


def find_consent(company: Company) -> UserConsent:
    return get_own_consent(actor=company.developer.actor).consent


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/consent/content_capture/withdraw"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/sign-in")


@pytest.mark.parametrize("role", list(Role))
def test_every_role_opens_the_page_with_the_sections_that_apply_to_it(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        answer = client.get(PAGE)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert ("Consent receipts" in page) is role_has_permission(role, Permission.MANAGE_OWN_CONSENT)
    assert ("data/bundle" in page) is role_has_permission(role, Permission.EXPORT_OR_ERASE_OWN_DATA)
    assert ("/policies/effective" in page) is role_has_permission(role, Permission.READ_POLICY)


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_roles_that_cannot_consent_are_refused(cast: Cast, sign_in: SignIn, role: Role) -> None:
    client = sign_in(cast.acme.people[role])

    assert client.post(f"{PAGE}/consent/content_capture", CONSENT_FORM).status_code == 403
    assert client.post(f"{PAGE}/consent/content_capture/withdraw").status_code == 403


def test_a_user_consents_to_each_kind_separately_and_sees_receipts(
    consenting_company: Company, ada: Client
) -> None:
    page_before = ada.get(PAGE).content.decode()
    ada.post(f"{PAGE}/consent/content_capture", CONSENT_FORM)
    first = find_consent(consenting_company)
    ada.post(f"{PAGE}/consent/training", CONSENT_FORM)

    page = ada.get(PAGE).content.decode()
    assert "the text around the cursor" in page_before
    assert first == UserConsent(content_capture=True, training=False)
    assert find_consent(consenting_company) == UserConsent(content_capture=True, training=True)
    assert page.count('data-label="Decision"') == 2
    with tenant_scope(consenting_company.tenant_id):
        assert AuditEntry.objects.filter(action="consent.changed").count() == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"wording": ["content-capture-1"]},  # without the tick
        {"agrees": "on"},
        {"agrees": "on", "wording": ["content-capture-0"]},  # an outdated consent text
    ],
)
def test_consent_requires_the_tick_and_the_current_consent_texts(
    consenting_company: Company, ada: Client, fields: dict[str, object]
) -> None:
    answer = ada.post(f"{PAGE}/consent/content_capture", fields, follow=True)

    assert "toast-error" in answer.content.decode()
    assert find_consent(consenting_company) == NO_CONSENT


def test_consent_that_the_tenant_does_not_allow_is_refused_with_a_message(
    cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)

    answer = client.post(f"{PAGE}/consent/content_capture", CONSENT_FORM, follow=True)

    assert "Your tenant does not allow this" in answer.content.decode()
    assert find_consent(cast.acme) == NO_CONSENT


def test_withdrawing_content_capture_withdraws_training_but_not_vice_versa(
    consenting_company: Company, ada: Client
) -> None:
    for kind in ("content_capture", "training"):
        ada.post(f"{PAGE}/consent/{kind}", CONSENT_FORM)

    confirmation = ada.get(f"{PAGE}/consent/training/withdraw").content.decode()
    ada.post(f"{PAGE}/consent/training/withdraw")
    without_training = find_consent(consenting_company)
    ada.post(f"{PAGE}/consent/training", CONSENT_FORM)
    ada.post(f"{PAGE}/consent/content_capture/withdraw")

    assert "not part of any training data set" in confirmation
    assert without_training == UserConsent(content_capture=True, training=False)
    assert find_consent(consenting_company) == NO_CONSENT


def test_withdrawing_consent_that_was_never_given_leaves_no_receipt(
    consenting_company: Company, ada: Client
) -> None:
    assert (
        "Nothing to withdraw"
        in ada.get(f"{PAGE}/consent/content_capture/withdraw").content.decode()
    )

    ada.post(f"{PAGE}/consent/content_capture/withdraw")

    with tenant_scope(consenting_company.tenant_id):
        assert not ConsentReceipt.objects.filter(
            user_id=consenting_company.developer.user_id
        ).exists()


def test_an_administrator_sees_only_their_own_receipts(
    consenting_company: Company, ada: Client, sign_in: SignIn
) -> None:
    ada.post(f"{PAGE}/consent/content_capture", CONSENT_FORM)

    page = sign_in(consenting_company.administrator).get(PAGE).content.decode()

    assert "You have not consented to anything" in page


@pytest.mark.parametrize("kind", ["x", "content-capture-1"])
def test_an_unknown_kind_of_consent_is_not_found(ada: Client, kind: str) -> None:
    assert ada.post(f"{PAGE}/consent/{kind}", CONSENT_FORM).status_code == 404
    assert ada.get(f"{PAGE}/consent/{kind}/withdraw").status_code == 404


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.AUDITOR, Role.BILLING])
def test_a_user_downloads_their_personal_data_as_an_archive(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    person = cast.acme.people[role]

    answer = sign_in(person).post(f"{PAGE}/bundle")

    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # a streamed file
    assert answer["Content-Type"] == "application/zip"
    with ZipFile(io.BytesIO(content)) as archive:
        assert person.email in archive.read("account.ndjson").decode()
    assert sign_in(person).get(f"{PAGE}/bundle").status_code == 405
