"""The privacy pages: consent, its receipts, content capture, and data subject requests."""

import io
import re
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import pytest
from django.test import Client
from django.utils import timezone

from console.templatetags.email_addresses import breakable
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.compliance.data_subjects.queries import list_erasures
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, Person, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.forms import parse_form
from tests.integration.console.pages.queries import few_queries

CONSENT_PATHS = ("/privacy", "/privacy/receipts", "/privacy/withdrawals")
# The versions of the consent texts to which the developer consents.
CURRENT_CONSENT_TEXTS = frozenset({"content-capture-1", "training-1"})


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def consenting_company(company: Company) -> Company:
    """Allow content capture and training in the policy. The developer consents to the former."""
    content_capture = {"consent_text": "tenant-1", "retention_days": 30, "training": True}
    set_policy(
        actor=company.administrator.actor,
        document=serialize_policy(DEFAULT_POLICY) | {"content_capture": content_capture},
        reason="a test",
        now=timezone.now(),
    )
    choice = ConsentChoice(UserConsent(content_capture=True, training=False), CURRENT_CONSENT_TEXTS)
    set_consent(actor=company.developer.actor, choice=choice, now=timezone.now())
    return company


@pytest.fixture
def alice(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in_with_step_up(company.administrator)


def person_path(person: Person) -> str:
    return f"/privacy/data-subjects/{person.user_id}"


def list_user_erasures(company: Company) -> list[Any]:
    return list_erasures(actor=company.administrator.actor, limit=5, cursor=None).rows


@pytest.mark.parametrize(
    "path", [*CONSENT_PATHS, "/privacy/data-subjects", "/privacy/content-capture"]
)
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/sign-in")


@pytest.mark.parametrize("role", list(Role))
def test_access_to_each_page_follows_the_permissions(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])
    needed_permissions = dict.fromkeys(CONSENT_PATHS, Permission.READ_CONSENT) | {
        "/privacy/members": Permission.READ_CONSENT,
        "/privacy/erasures": Permission.READ_RETENTION,
        "/privacy/content-capture": Permission.WRITE_POLICY,
        "/privacy/data-subjects": Permission.EXPORT_DATA_SUBJECTS,
    }

    for path, permission in needed_permissions.items():
        with few_queries():
            answer = client.get(path)
        assert (path, answer.status_code) == (
            path,
            200 if role_has_permission(role, permission) else 403,
        )


def test_consent_is_counted_and_listed_by_member(
    consenting_company: Company, alice: Client
) -> None:
    overview = alice.get("/privacy").content.decode()
    members = alice.get("/privacy/members").content.decode()
    receipts = alice.get("/privacy/receipts").content.decode()

    assert "Users can consent" in overview
    assert "I allow Caret to store content of my completions" in overview
    (num_consented,) = re.findall(
        r'<dt>Consented to content capture</dt>\s*<dd><span class="figure-value">(\d+)<', overview
    )
    assert num_consented == "1"
    assert members.count("Consented") == 1
    assert breakable(consenting_company.developer.email) in members
    # Two receipts of the tenant, for content capture and for training, and one of the developer.
    assert receipts.count('data-label="Decision"') == 3


def test_enabling_content_capture_needs_a_review_and_leaves_a_receipt(
    company: Company, alice: Client
) -> None:
    fields = parse_form(alice.get("/privacy/content-capture").content.decode())
    review = alice.post(
        "/privacy/content-capture", fields | {"content_capture": "on", "retention_days": "9"}
    )
    draft = parse_form(review.content.decode())
    version_after_review = find_policy_in_force(tenant_id=company.tenant_id).version
    answer = alice.post("/policies/review", draft | {"step": "save", "reason": "Quality"})

    assert version_after_review == 1
    content_capture = find_policy_in_force(tenant_id=company.tenant_id).policy.content_capture
    assert answer["Location"] == "/privacy"
    assert content_capture is not None
    assert (content_capture.retention_days, content_capture.training) == (9, False)
    receipt = f"{company.administrator.email} · {TENANT_CONSENT_VERSION}"
    assert receipt in alice.get("/privacy").content.decode()


def test_a_content_capture_draft_can_be_edited_after_its_review(alice: Client) -> None:
    fields = parse_form(alice.get("/privacy/content-capture").content.decode())
    review = alice.post(
        "/privacy/content-capture", fields | {"content_capture": "on", "retention_days": "9"}
    )

    page = alice.post(
        "/privacy/content-capture", parse_form(review.content.decode()) | {"step": "edit"}
    ).content.decode()

    assert parse_form(page)["retention_days"] == "9"


@pytest.mark.parametrize(
    "invalid_fields",
    [
        {"retention_days": ""},
        {"retention_days": "400"},  # too many
        {"wording": "tenant-0"},  # an outdated consent text
    ],
)
def test_an_invalid_content_capture_setting_is_refused(
    company: Company, alice: Client, invalid_fields: dict[str, str]
) -> None:
    fields = parse_form(alice.get("/privacy/content-capture").content.decode()) | {
        "content_capture": "on"
    }

    answer = alice.post("/privacy/content-capture", fields | invalid_fields)

    assert answer.status_code == 400
    assert answer.content.decode().count('class="wrong"') == 1
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 1


def test_after_an_outdated_consent_text_the_form_has_the_current_version(alice: Client) -> None:
    fields = parse_form(alice.get("/privacy/content-capture").content.decode())

    answer = alice.post(
        "/privacy/content-capture", fields | {"content_capture": "on", "wording": "tenant-0"}
    )

    assert parse_form(answer.content.decode())["wording"] == fields["wording"]


def test_a_user_is_found_by_email_address(company: Company, alice: Client) -> None:
    ada = company.developer

    # In capital letters: addresses are compared without regard to case.
    answer = alice.get("/privacy/data-subjects", {"email": ada.email.upper()})

    assert answer["Location"] == person_path(ada)
    with few_queries():
        assert ada.email in alice.get(person_path(ada)).content.decode()


def test_an_unknown_address_gets_an_error_message(cast: Cast, alice: Client) -> None:
    for email in ("nobody@nowhere.example", cast.globex.developer.email):
        answer = alice.get("/privacy/data-subjects", {"email": email})
        page = answer.content.decode()
        assert (answer.status_code, page.count('class="wrong"')) == (400, 1)
        assert email in page


def test_exporting_a_users_data_requires_a_reason(company: Company, alice: Client) -> None:
    path = f"{person_path(company.developer)}/bundle"

    refused_export = alice.post(path, {"reason": ""})
    answer = alice.post(path, {"reason": "Article 15"})

    assert refused_export.status_code == 400
    with ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:  # type: ignore[attr-defined]  # a streamed file
        assert company.developer.email in archive.read("account.ndjson").decode()


def test_erasing_a_user_requires_their_address_and_a_reason(
    company: Company, alice: Client
) -> None:
    path = f"{person_path(company.developer)}/erase"
    address = company.developer.email

    wrong_address = alice.post(path, {"typed": "x@y.example", "reason": "Article 17"})
    no_reason = alice.post(path, {"typed": address, "reason": ""})
    before = list_user_erasures(company)
    answer = alice.post(path, {"typed": address, "reason": "Article 17"})
    second_erasure = alice.post(path, {"typed": address, "reason": "Article 17"})

    assert (wrong_address.status_code, no_reason.status_code, before) == (400, 400, [])
    assert answer["Location"] == "/privacy/erasures"
    assert [str(row.user_id) for row in list_user_erasures(company)] == [company.developer.user_id]
    assert second_erasure.status_code == 400
    page = alice.get("/privacy/erasures").content.decode()
    assert company.developer.user_id in page
    assert "In progress" in page


def test_an_auditor_can_neither_export_nor_erase_a_users_data(
    cast: Cast, sign_in_with_step_up: SignIn
) -> None:
    client = sign_in_with_step_up(cast.acme.people[Role.AUDITOR])
    path = person_path(cast.acme.developer)

    assert client.get(path).status_code == 403
    assert client.post(f"{path}/bundle", {"reason": "r"}).status_code == 403
    assert client.get(f"{path}/erase").status_code == 403


def test_another_tenants_users_are_not_found(cast: Cast, alice: Client) -> None:
    for user_id in (cast.globex.developer.user_id, str(uuid4())):
        path = f"/privacy/data-subjects/{user_id}"
        assert alice.get(path).status_code == 404
        assert alice.post(f"{path}/bundle", {"reason": "r"}).status_code == 404
        assert alice.get(f"{path}/erase").status_code == 404


def test_erasing_a_user_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    ada = company.developer
    fields = {"typed": ada.email, "reason": "Article 17"}

    answer = sign_in(company.administrator).post(f"{person_path(ada)}/erase", fields)

    assert answer["Location"].startswith("/account/confirm?next=")
    assert list_user_erasures(company) == []
