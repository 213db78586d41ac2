"""The retention pages: data classes and their days, legal holds, and deletion certificates."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, encode_multipart
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.templatetags.email_addresses import breakable
from console.views.retention import certificates
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.models import AuditEntry
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import get_policy
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION
from tenants.privacy.retention.certificates import issue_certificate
from tenants.privacy.retention.operations import NewHold, place_hold
from tenants.privacy.retention.queries import (
    CertificateView,
    list_certificates,
    list_data_class_reports,
    list_data_class_statuses,
    list_holds,
)
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_completion
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

DEFAULT_DAYS = DATA_CLASSES[DataClass.USAGE].default_days
PAGES = (
    "/retention",
    "/retention/holds",
    "/retention/purges",
    "/retention/certificates",
    "/retention/verify",
)
USAGE_PAGE = "/retention/classes/usage_records"
# A change of the usage records' retention. Version 0: the user has seen the default.
NEW_DAYS = {"days": "90", "reason": "Annex 2", "expected_version": "0"}


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def alice(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in_with_step_up(company.administrator)


def read_retention_days(company: Company, data_class: DataClass = DataClass.USAGE) -> int:
    statuses = list_data_class_statuses(actor=company.administrator.actor, now=timezone.now())
    return next(status.rule.days for status in statuses if status.data_class is data_class)


def issue_test_certificate(company: Company) -> CertificateView:
    facts = {"data_class": "usage_records", "method": "row deletion"}
    with tenant_scope(company.tenant_id):
        issue_certificate(tenant_id=company.tenant_id, facts=facts, now=timezone.now())
    return list_certificates(actor=company.administrator.actor, limit=1, cursor=None).rows[0]


def place_test_hold(company: Company, **fields: Any) -> str:
    hold = NewHold(name="Hooli v. Acme", reason="Letter of 3 May", **fields)
    return str(place_hold(actor=company.platform, new=hold, now=timezone.now()))


@pytest.mark.parametrize("path", [*PAGES, USAGE_PAGE, "/retention/holds/new"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/sign-in")


@pytest.mark.parametrize("role", list(Role))
def test_only_roles_that_read_retention_open_the_pages(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])
    expected = 200 if role_has_permission(role, Permission.READ_RETENTION) else 403

    for path in PAGES:
        with few_queries():
            assert (path, client.get(path).status_code) == (path, expected)


@pytest.mark.parametrize("role", list(Role))
def test_only_roles_that_may_change_retention_and_holds_open_the_forms(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    days_form, hold_form = client.get(f"{USAGE_PAGE}?days=90"), client.get("/retention/holds/new")

    assert days_form.status_code == (
        200 if role_has_permission(role, Permission.WRITE_RETENTION) else 403
    )
    assert hold_form.status_code == (
        200 if role_has_permission(role, Permission.WRITE_LEGAL_HOLDS) else 403
    )


def test_the_statuses_of_data_classes_agree_with_their_reports(company: Company) -> None:
    old = timezone.now() - timedelta(days=DEFAULT_DAYS + 10)
    for person in (company.developer, company.administrator):
        make_completion(company, person, occurred_at=old)
    place_test_hold(
        company,
        user_id=UUID(company.developer.user_id),
        until=timezone.now() - timedelta(days=300),  # DEFAULT_DAYS is more
    )
    actor, now = company.administrator.actor, timezone.now()

    statuses = list_data_class_statuses(actor=actor, now=now)

    # Only the administrator's record is overdue, because the developer's is on hold.
    assert sum(status.overdue for status in statuses) == 1
    for status, report in zip(statuses, list_data_class_reports(actor=actor, now=now), strict=True):
        assert (status.data_class, status.rule, status.overdue) == (
            report.data_class,
            report.rule,
            report.overdue,
        )
        assert status.oldest_at == (None if report.count is None else report.count.oldest_at)


def test_the_preview_counts_deletions_and_saves_nothing(company: Company, alice: Client) -> None:
    for days in (100, 0):
        occurred_at = timezone.now() - timedelta(days=days)
        make_completion(company, company.developer, occurred_at=occurred_at)

    with few_queries():
        page = alice.get(f"{USAGE_PAGE}?days=90").content.decode()

    (num_deletions,) = re.findall(
        r'<dt>To be deleted</dt>\s*<dd><span class="figure-value">(\d+)<', page
    )
    assert num_deletions == "1"
    assert read_retention_days(company) == DEFAULT_DAYS


def test_days_are_saved_with_a_reason(company: Company, alice: Client) -> None:
    answer = alice.post(USAGE_PAGE, NEW_DAYS)

    assert answer["Location"] == "/retention"
    assert read_retention_days(company) == 90
    assert "Annex 2" in alice.get("/retention").content.decode()
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.order_by("-sequence").first()
    assert entry is not None
    assert entry.action == "retention.changed"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"reason": ""}, 400),
        ({"days": "3"}, 400),
        ({"days": "many"}, 400),
        ({"expected_version": "4"}, 409),
    ],
)
def test_an_invalid_retention_setting_is_refused(
    company: Company, alice: Client, changes: dict[str, str], status: int
) -> None:
    answer = alice.post(USAGE_PAGE, NEW_DAYS | changes)

    assert answer.status_code == status
    assert read_retention_days(company) == DEFAULT_DAYS


@pytest.mark.parametrize("name", ["sessions", "captured_content", "no-data-class"])
def test_data_classes_without_configurable_days_have_no_page(alice: Client, name: str) -> None:
    assert alice.get(f"/retention/classes/{name}").status_code == 404


def test_a_hold_is_placed_listed_and_released(company: Company, alice: Client) -> None:
    fields = {
        "name": "Hooli v. Acme",
        "user_email": company.developer.email,
        "since": "2026-01-01",
        "until": "2026-01-31",
        "reason": "Letter",
    }
    alice.post("/retention/holds/new", fields | {"step": "place"})
    (hold,) = list_holds(actor=company.administrator.actor, limit=5, cursor=None).rows
    page = alice.get("/retention/holds").content.decode()
    alice.post(f"/retention/holds/{hold.id}/release", {"reason": "Settled"})

    assert "Hooli v. Acme" in page
    assert breakable(company.developer.email) in page
    assert str(hold.user_id) == company.developer.user_id
    assert hold.until is not None
    assert hold.until.isoformat() == "2026-02-01T00:00:00+00:00"  # the end of the last day
    (hold,) = list_holds(actor=company.administrator.actor, limit=5, cursor=None).rows
    assert hold.released_at is not None
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="hold.released")
    # As text, because True equals 1.
    assert str(entry.before) == "{'is_in_force': True}"
    assert str(entry.after) == "{'is_in_force': False}"


@pytest.mark.parametrize(
    "invalid_fields",
    [
        {"name": ""},
        {"reason": ""},
        {"user_email": "nobody@nowhere.example"},
        {"since": "2026-02-01", "until": "2026-01-01"},
        {"until": "9999-12-31"},  # Python has no next day
    ],
)
def test_an_invalid_hold_is_refused_and_keeps_the_input(
    company: Company, alice: Client, invalid_fields: dict[str, str]
) -> None:
    fields = {"name": "Kept name", "reason": "Kept reason", "step": "place"} | invalid_fields

    answer = alice.post("/retention/holds/new", fields)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Kept" in page
    assert not list_holds(actor=company.administrator.actor, limit=5, cursor=None).rows


def test_a_holds_effect_is_shown_before_it_is_placed(company: Company, alice: Client) -> None:
    """The hold covers the developer's records, but not the administrator's."""
    old = timezone.now() - timedelta(days=read_retention_days(company) + 10)
    for person in (company.developer, company.developer, company.administrator):
        make_completion(company, person, occurred_at=old)
    make_completion(company, company.developer)
    fields = {"name": "Matter", "reason": "Letter", "user_email": company.developer.email}

    page = alice.post("/retention/holds/new", fields).content.decode()

    assert "Without this hold, the next purge would delete 2 of these records." in page
    (usage,) = re.findall(r'<th scope="row">Usage records</th>(.*?)</tr>', page)
    assert re.findall(r">(\d+)</td>", usage) == ["3", "2"]  # covered, saved from the next purge
    assert not list_holds(actor=company.administrator.actor, limit=5, cursor=None).rows


def test_a_preview_needs_no_step_up_and_saving_does(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)

    preview = client.get(f"{USAGE_PAGE}?days=90")
    answer = client.post(USAGE_PAGE, NEW_DAYS)

    assert preview.status_code == 200
    assert answer["Location"].startswith("/account/confirm?next=")
    assert read_retention_days(company) == DEFAULT_DAYS


def test_a_hold_on_another_tenants_user_is_refused(
    cast: Cast, company: Company, alice: Client
) -> None:
    fields = {"name": "n", "reason": "r", "user_email": cast.globex.developer.email}

    for step in ("preview", "place"):
        answer = alice.post("/retention/holds/new", fields | {"step": step})
        assert "This user is not a member of the tenant." in answer.content.decode()
    assert not list_holds(actor=company.administrator.actor, limit=5, cursor=None).rows


def test_a_hold_is_released_once_and_only_with_a_reason(company: Company, alice: Client) -> None:
    path = f"/retention/holds/{place_test_hold(company)}/release"

    assert alice.post(path, {"reason": ""}).status_code == 400
    assert alice.post(path, {"reason": "r"}).status_code == 302
    assert alice.post(path, {"reason": "r"}).status_code == 400


def test_a_certificate_is_shown_verified_and_downloaded(company: Company, alice: Client) -> None:
    certificate = issue_test_certificate(company)
    path = f"/retention/certificates/{certificate.id}"

    certificate_list = alice.get("/retention/certificates").content.decode()
    page = alice.get(path).content.decode()
    file = alice.get(f"{path}/file")

    assert path in certificate_list
    assert "the signature is valid" in page
    assert "records of the class “Usage records” were deleted (row deletion)." in page
    assert file.content.decode() == certificate.document
    assert "attachment" in file["Content-Disposition"]


def test_an_uploaded_certificate_is_verified(company: Company, alice: Client) -> None:
    document = issue_test_certificate(company).document
    valid_file = SimpleUploadedFile("c.json", document.encode())
    changed_file = SimpleUploadedFile("c.json", document.replace("row", "raw").encode())
    no_certificate = SimpleUploadedFile("c.zip", b"PK\x03\x04 no archive")

    pages = [
        alice.post("/retention/verify", {"document": file}).content.decode()
        for file in (valid_file, changed_file, no_certificate)
    ]

    assert ["the signature is valid" in page for page in pages] == [True, False, False]
    assert alice.post("/retention/verify", {}).status_code == 400


def test_a_certificate_of_the_maximum_size_fits_in_a_request_and_a_larger_one_is_refused(
    alice: Client,
) -> None:
    largest = SimpleUploadedFile("c.json", b" " * certificates._MAX_FILE_BYTES)
    larger = SimpleUploadedFile("c.json", b" " * (certificates._MAX_FILE_BYTES + 1))
    body = encode_multipart(BOUNDARY, {"document": largest, "csrfmiddlewaretoken": "c" * 64})

    refused_file = alice.post("/retention/verify", {"document": larger})

    assert certificates._MAX_FILE_BYTES >= 1_000_000  # the page promises 1 MB
    assert len(body) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert refused_file.status_code == 400
    assert "This file is too large. Verify it offline." in refused_file.content.decode()


def test_days_that_the_policy_sets_are_marked_as_set_by_policy(
    company: Company, alice: Client
) -> None:
    content_capture = {
        "consent_text": TENANT_CONSENT_VERSION,
        "retention_days": 7,
        "training": False,
    }
    current_policy = serialize_policy(get_policy(actor=company.platform).policy)
    set_policy(
        actor=company.platform,
        document=current_policy | {"content_capture": content_capture},
        reason="A week",
        now=timezone.now(),
    )

    page = alice.get("/retention").content.decode()

    for data_class in (DataClass.CONTENT, DataClass.CONTENT_INDEX):
        assert read_retention_days(company, data_class) == 7
    assert page.count("Set by policy") == 2


def test_another_tenants_certificates_and_holds_are_not_found(cast: Cast, alice: Client) -> None:
    certificate = issue_test_certificate(cast.globex)
    hold_id = place_test_hold(cast.globex)

    for path in (
        f"/retention/certificates/{certificate.id}",
        f"/retention/certificates/{certificate.id}/file",
        f"/retention/certificates/{uuid4()}",
        f"/retention/holds/{hold_id}/release",
    ):
        assert alice.get(path).status_code == 404


def test_releasing_a_hold_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    path = f"/retention/holds/{place_test_hold(company)}/release"

    answer = sign_in(company.administrator).post(path, {"reason": "r"})

    assert answer["Location"].startswith("/account/confirm?next=")
    (hold,) = list_holds(actor=company.administrator.actor, limit=5, cursor=None).rows
    assert hold.released_at is None
