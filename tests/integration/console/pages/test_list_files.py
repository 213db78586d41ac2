"""A list's CSV file has all rows of the list, and none of another tenant."""

import csv
import io
import re
import uuid
from typing import Final

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from caret.contracts.policy import PolicyOverride
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.layout.lists import csv_response
from tenants.base.pagination import MAX_PAGE
from tenants.base.permissions import Role
from tenants.compliance.audit_sinks.operations import NewSink, create_sink
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.models import ContentErasure
from tenants.policy.data_classes import DataClass
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.overrides.document import serialize_override
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import OverrideSubject, SubjectKind
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import USER_CONSENT_VERSIONS, ConsentKind
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent
from tenants.privacy.retention.purge import purge_data_class
from tests.fakes.billing import ensure_invoice, make_budget
from tests.fakes.retention import make_certificate, make_hold
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company, make_completion
from tests.fixtures.users import make_colleague, make_invitation, make_team
from tests.integration.console.conftest import SignIn
from tests.stack.services import Services

# The path of each list, and the columns of its file.
LISTS: Final = {
    "/account/my-data": "user,kind,decision,consent_text,consent_text_sha256,changed_by,created_at",
    "/budgets": "name,scope,spent_micros,limit_micros,currency,is_hard,created_at",
    "/content-exclusion/denials": "reason,mode,user,count,last_seen_at",
    "/members/invitations": "email,role,state,invited_by,created_at,mailed_at,expires_at",
    "/policies/overrides": "kind,name,version,override,author,reason,created_at",
    "/policies/versions": "version,created_at,author,reason",
    "/privacy/erasures": "user,reason,rows,requested_at,erased_at",
    "/privacy/members": "email,name,content_capture,training,member_since",
    "/privacy/receipts": "user,kind,decision,consent_text,consent_text_sha256,"
    "changed_by,created_at",
    "/privacy/withdrawals": (
        "user,reason,items,bytes,destroyed_encryption_keys,unreadable_since,deleted_at"
    ),
    "/retention/certificates": "number,what,method,created_at,id",
    "/retention/holds": "matter,reason,user,since,until,created_at,released_at",
    "/retention/purges": "class,began_at,finished_at,days,before,created,deleted,after,on_hold",
    "/audit-sinks": "name,kind,origin,delivered_sequence,waiting,delivered_at,failed_since,"
    "created_at",
}


@pytest.fixture(scope="module")
def company(services: Services, django_db_blocker: DjangoDbBlocker) -> Company:
    """Make a company with at least one row in each list."""
    with django_db_blocker.unblock():
        company = make_company("initech", ACME_PEOPLE)
        add_a_row_to_each_list(company)
    return company


def add_a_row_to_each_list(company: Company) -> None:
    now = timezone.now()
    ensure_invoice(company)
    make_budget(company)
    make_certificate(company)
    make_hold(company)
    make_invitation(company)
    make_completion(company, company.developer, finish_reason="error", error_code="path_excluded")
    purge_data_class(tenant_id=company.tenant_id, data_class=DataClass.IDEMPOTENCY, now=now)
    content_capture = {"consent_text": "tenant-1", "retention_days": 30, "training": True}
    document = serialize_policy(DEFAULT_POLICY) | {"content_capture": content_capture}
    set_policy(actor=company.platform, document=document, reason="-1", now=now)  # like a formula
    choice = ConsentChoice(
        UserConsent(content_capture=True, training=False),
        frozenset({USER_CONSENT_VERSIONS[ConsentKind.CONTENT_CAPTURE]}),
    )
    set_consent(actor=company.people[Role.OWNER].actor, choice=choice, now=now)
    subject = OverrideSubject(SubjectKind.TEAM, uuid.UUID(make_team(company)))
    override = serialize_override(PolicyOverride(is_mfa_required=True))
    set_override(actor=company.platform, subject=subject, document=override, reason="r", now=now)
    sink = NewSink(name="Splunk", address="https://siem.example.com/hook", from_sequence=None)
    create_sink(actor=company.people[Role.OWNER].actor, new=sink, now=now)
    leaver = ErasureRequest(make_colleague(company).user_id, "asked for")
    request_user_erasure(actor=company.administrator.actor, erasure_request=leaver, now=now)
    add_withdrawals(company)


def add_withdrawals(company: Company, *, num: int = 1) -> None:
    rows = [
        ContentErasure(
            tenant_id=company.tenant_id,
            user_id=company.developer.user_id,
            reason="withdrawn",
            num_objects=1,
            num_items=2,
            num_bytes=3,
            keys=[],
            requested_at=timezone.now(),
        )
        for _ in range(num)
    ]
    with tenant_scope(company.tenant_id):
        ContentErasure.objects.bulk_create(rows)


@pytest.fixture
def owner(company: Company, sign_in: SignIn) -> Client:
    """Return the owner's browser."""
    return sign_in(company.people[Role.OWNER])


def rows_of(client: Client, path: str, **query: str) -> list[list[str]]:
    """Download the list's CSV file, and return its rows. The first row is the header."""
    answer = client.get(path, {**query, "as": "csv"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(answer.content.decode())))


@pytest.mark.parametrize("path", LISTS)
def test_a_csv_file_has_the_rows_of_its_page(owner: Client, path: str) -> None:
    page = owner.get(path).content.decode()

    header, *rows = rows_of(owner, path)

    assert f'href="{path}?as=csv"' in page
    assert ",".join(header) == LISTS[path]
    assert len(rows) == page.count('scope="row"') > 0  # each row of the page has one such cell


@pytest.mark.parametrize("path", LISTS)
def test_an_invalid_cursor_is_a_bad_request(owner: Client, path: str) -> None:
    assert owner.get(path, {"cursor": "x"}).status_code == 400


@pytest.mark.parametrize("path", LISTS)
def test_another_tenants_file_has_no_rows_of_this_tenant(
    company: Company, owner: Client, sign_in: SignIn, path: str
) -> None:
    _, *rows = rows_of(owner, path)
    other_tenant = make_company("hooli", {Role.OWNER: "gavin"})

    _, *other_rows = rows_of(sign_in(other_tenant.people[Role.OWNER]), path)

    assert [row for row in other_rows if row in rows] == []
    assert company.slug not in str(other_rows)
    assert company.developer.user_id not in str(other_rows)


def test_a_csv_file_has_the_rows_of_all_pages(company: Company, owner: Client) -> None:
    for _ in range(26):
        make_invitation(company)

    page = owner.get("/members/invitations").content.decode()
    _, *rows = rows_of(owner, "/members/invitations")

    assert page.count('scope="row"') == 25  # a full page
    assert len(rows) >= 27  # these 26, and that of the fixture


def test_a_truncated_file_ends_with_a_note(
    company: Company, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_response, "MAX_ROWS", MAX_PAGE)
    add_withdrawals(company, num=MAX_PAGE)

    _, *rows, note = rows_of(owner, "/privacy/withdrawals")

    assert len(rows) == MAX_PAGE
    assert note[0].startswith(f"Truncated: a file has at most {MAX_PAGE} rows.")


def test_the_ledgers_file_has_both_sides_and_obeys_the_filter(owner: Client) -> None:
    header, *rows = rows_of(owner, "/billing/ledger")
    _, *filtered_rows = rows_of(owner, "/billing/ledger", account="revenue.rounding")

    transaction, account, amount = map(header.index, ("transaction", "account", "amount_micros"))
    rounded = {row[transaction] for row in rows if row[account] == "revenue.rounding"}
    assert rounded
    # The filter finds transactions with this account, and the file has all their sides.
    assert filtered_rows == [row for row in rows if row[transaction] in rounded]
    assert len(filtered_rows) < len(rows)
    assert sum(int(row[amount]) for row in rows) == 0


def test_a_csv_file_escapes_formulas(owner: Client) -> None:
    header, *rows = rows_of(owner, "/policies/versions")

    assert "'-1" in [row[header.index("reason")] for row in rows]


def test_blocked_requests_are_sorted_by_the_chosen_column(company: Company, owner: Client) -> None:
    for mode in ("chat", "chat", "docstring"):
        make_completion(
            company,
            company.developer,
            finish_reason="error",
            error_code="feature_disabled",
            mode=mode,
        )

    def list_rows(**query: str) -> list[list[str]]:
        return rows_of(owner, "/content-exclusion/denials", **query)[1:]

    # The columns are reason, mode, user, count and last_seen_at. The last two have the sort keys
    # `num_denials` and `last`.
    numbers = [int(row[3]) for row in list_rows(sort="num_denials")]
    assert numbers == sorted(numbers)
    assert [int(row[3]) for row in list_rows()] == numbers[::-1]
    assert [row[1] for row in list_rows(sort="mode")] == sorted(row[1] for row in list_rows())
    page = owner.get("/content-exclusion/denials", {"sort": "-last"}).content.decode()
    assert re.search(r'aria-sort="descending"><a href="[^"]*">Last seen<', page)


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/keys", {"kind": "none-such"}, "kind: "),
        ("/members", {"role": "none-such"}, "role: "),
        ("/teams", {"q": "x" * 1_000}, "q: "),
    ],
)
def test_an_invalid_filter_makes_no_file(
    owner: Client, path: str, query: dict[str, str], message: str
) -> None:
    answer = owner.get(path, {**query, "as": "csv"})

    assert answer.status_code == 400
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode().startswith(message)
