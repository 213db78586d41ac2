"""Decisions of an erased user stay in force, but no page names the user as their author any more.

No page names the user even if their account still exists in another tenant. The decisions are a
policy version, a policy override, a retention rule, an invitation and an API key.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.compliance.data_subjects.erasure_worker import run_due_erasures
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.identity.api_keys.operations import create_key
from tenants.identity.api_keys.queries import find_key, list_keys
from tenants.identity.api_keys.search import KeyFilter, find_keys
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.invitations.operations import create_invitation
from tenants.identity.invitations.queries import read_page_of_invitations
from tenants.identity.members.operations import insert_membership
from tenants.models import User
from tenants.policy.data_classes import DataClass
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import (
    OverrideSubject,
    SubjectKind,
    find_override,
    list_overrides,
)
from tenants.policy.queries import get_policy, read_page_of_versions
from tenants.privacy.retention.operations import set_rule
from tenants.privacy.retention.rules_in_force import load_rules
from tests.fixtures.companies import ACME_PEOPLE, Company, Person, make_company
from tests.fixtures.users import Mailbox, make_colleague, make_team


@dataclass(frozen=True, slots=True)
class AuthoredDecisions:
    company: Company
    dan: Person  # the author of all decisions
    team: OverrideSubject
    lookup_id: Any  # of the API key

    def list_shown_authors(self) -> list[str | None]:
        """Return the author that each page and list shows for the decisions."""
        actor, now = self.company.people[Role.OWNER].actor, timezone.now()
        first_page: dict[str, Any] = {"actor": actor, "limit": 10, "cursor": None}
        with tenant_scope(self.company.tenant_id):
            rule = load_rules(tenant_id=self.company.tenant_id)[DataClass.USAGE]
        (listed_key,) = list_keys(**first_page, now=now).rows
        key_filter = KeyFilter(text=self.lookup_id)
        (found_key,) = find_keys(**first_page, key_filter=key_filter, now=now).rows
        keys = [listed_key, found_key, find_key(actor=actor, lookup_id=self.lookup_id, now=now)]
        return [
            get_policy(actor=actor).author_email,
            read_page_of_versions(**first_page).rows[0].author_email,
            find_override(actor=actor, subject=self.team).author_email,
            list_overrides(**first_page).rows[0].author_email,
            rule.author_email,
            read_page_of_invitations(**first_page, now=now).rows[0].invited_by_email,
            *(key.owner_email for key in keys),
            *(key.created_by_email for key in keys),
            *(key.issued_by_email for key in keys),
        ]


@pytest.fixture
def decisions() -> AuthoredDecisions:
    """Make decisions by Dan, an administrator of one company and a developer of another."""
    company, other_company = (
        make_company("initech", ACME_PEOPLE),
        make_company("hooli", ACME_PEOPLE),
    )
    dan, now = make_colleague(company, Role.ADMINISTRATOR), timezone.now()
    with tenant_scope(other_company.tenant_id):
        insert_membership(
            tenant_id=other_company.tenant_id, user_id=dan.user_id, role=Role.DEVELOPER, now=now
        )
    team = OverrideSubject(SubjectKind.TEAM, UUID(make_team(company)))
    common: dict[str, Any] = {"actor": dan.actor, "reason": "as agreed", "now": now}
    set_policy(document=serialize_policy(get_policy(actor=dan.actor).policy), **common)
    set_override(subject=team, document={"features": []}, **common)
    set_rule(data_class=DataClass.USAGE, days=100, **common)
    create_invitation(
        actor=dan.actor,
        email=f"{dan.user_id}@guest.example",
        role=Role.DEVELOPER,
        mailer=Mailbox(),
        now=now,
    )
    key_request = KeyRequest(
        kind=KeyKind.DEVELOPER, owner_id=dan.user_id, name="Laptop", expires_at=None
    )
    created = create_key(actor=dan.actor, new=key_request, now=now)
    return AuthoredDecisions(company, dan, team, created.key.lookup_id)


def erase_author(decisions: AuthoredDecisions) -> None:
    owner = decisions.company.people[Role.OWNER].actor
    erasure_request = ErasureRequest(decisions.dan.user_id, "their letter")
    request_user_erasure(actor=owner, erasure_request=erasure_request, now=timezone.now())
    assert run_due_erasures(now=timezone.now()) == 1


def test_an_erased_author_is_shown_nowhere_although_their_account_remains(
    decisions: AuthoredDecisions,
) -> None:
    assert set(decisions.list_shown_authors()) == {decisions.dan.email}

    erase_author(decisions)

    assert User.objects.get(id=decisions.dan.user_id).email == decisions.dan.email
    assert set(decisions.list_shown_authors()) == {None}


def test_searching_an_erased_users_email_finds_no_keys(decisions: AuthoredDecisions) -> None:
    owner = decisions.company.people[Role.OWNER].actor
    key_filter = KeyFilter(text=decisions.dan.email)
    query: dict[str, Any] = {"actor": owner, "key_filter": key_filter, "limit": 10, "cursor": None}
    before = find_keys(**query, now=timezone.now()).rows

    erase_author(decisions)

    assert [key.lookup_id for key in before] == [decisions.lookup_id]
    assert find_keys(**query, now=timezone.now()).rows == []
