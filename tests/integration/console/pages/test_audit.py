"""The audit log's pages: the changes, their actors, and the check of the chain."""

import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from caret.local.paths import REPOSITORY
from console.views.audit import list as list_page
from console.views.audit.sentences import ACTIONS
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.billing.budgets.operations import BudgetTarget
from tenants.identity.teams.operations import add_team_member, create_team, remove_team_member
from tenants.models import Membership
from tenants.security.audit import chain_check, resource_names
from tenants.security.audit.operations import record_change
from tenants.security.audit.queries import find_head
from tests.fakes.billing import make_budget, make_customer
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company, make_key
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

NAMED_KINDS = set(resource_names._QUERIES)  # kinds of objects for which the page looks up a name
READERS = {Role.OWNER, Role.ADMINISTRATOR, Role.AUDITOR}


@pytest.fixture
def company() -> Company:
    """Return a company whose audit log has an entry for each member."""
    return make_company("initech", ACME_PEOPLE, records_additions=True)


@pytest.fixture
def audrey(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Audrey, the auditor."""
    return sign_in(company.people[Role.AUDITOR])


def record_door_change(company: Company, number: int = 1, *, target: str = "") -> None:
    """Record the action "door.painted", which does not exist in Caret.

    The target is the door with this number, unless `target` names another object.
    """
    with tenant_scope(company.tenant_id):
        record_change(
            actor=company.administrator.actor,
            action="door.painted",
            target=target or f"door:{number}",
            change=({"colour": "red", "height": 2}, {"colour": "<b>blue", "height": 2}),
            now=timezone.now(),
            reason="It was time.",
        )


def audit_page(client: Client, **query: str) -> str:
    return client.get("/audit", query).content.decode()


def list_targets(page: str) -> list[str]:
    return re.findall(r'<b title="(door:\d+)">', page)


def list_sentences(page: str) -> list[str]:
    """Return the sentences that describe the entries, newest first, without markup."""
    html_sentences = re.findall(r'class="entry-sentence">(.*?)</span>', page)
    return [re.sub("<[^>]+>", "", sentence) for sentence in html_sentences]


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", ["/audit", "/audit/verify"])
def test_only_roles_that_read_the_audit_log_open_its_pages(
    company: Company, sign_in: SignIn, role: Role, path: str
) -> None:
    client = sign_in(company.people[role])

    assert client.get(path).status_code == (200 if role in READERS else 403)
    assert ('href="/audit"' in client.get("/").content.decode()) == (role in READERS)


def test_an_entry_shows_both_values_the_reason_and_the_actor(
    company: Company, audrey: Client
) -> None:
    record_door_change(company)

    page = audit_page(audrey, action="door.painted")

    assert "- colour: &quot;red&quot;" in page
    assert "+ colour: &quot;&lt;b&gt;blue&quot;" in page
    assert "height: 2" not in page  # it did not change
    assert "It was time." in page
    assert company.administrator.email in page


def remove_from_team(company: Company) -> uuid.UUID:
    """Create a team, add the developer to it, remove the developer, and return the team's ID."""
    actor, now, dan = company.administrator.actor, timezone.now(), company.developer
    team = create_team(actor=actor, name="Payments <3", now=now)
    add_team_member(actor=actor, team_id=team.id, user_id=dan.user_id, now=now)
    remove_team_member(actor=actor, team_id=team.id, user_id=dan.user_id, now=now)
    return team.id


def test_an_entry_is_a_sentence_with_names_whose_tooltips_are_ids(
    company: Company, audrey: Client
) -> None:
    team_id = remove_from_team(company)
    administrator, dan = company.administrator, company.developer

    page = audit_page(audrey, action="team.member_removed")

    assert list_sentences(page) == [
        f"{administrator.email} removed {dan.email} from the team Payments &lt;3."
    ]
    assert f'<b title="{dan.user_id}">{dan.email}</b>' in page
    assert f'<b title="team:{team_id}">' in page


def test_a_sentence_is_written_in_the_readers_language(company: Company, audrey: Client) -> None:
    remove_from_team(company)
    audrey.cookies["caret-language"] = "de"

    (sentence,) = list_sentences(audit_page(audrey, action="team.member_removed"))

    assert sentence == (
        f"{company.administrator.email} hat {company.developer.email} "
        "aus dem Team Payments &lt;3 entfernt."
    )


def test_each_recorded_action_has_a_sentence() -> None:
    """The page would show an action without a sentence as its code, such as "team.created"."""
    # Finds the action in action="...", in _record_change(..., "...") and in _record(..., "...").
    pattern = re.compile(r'(?:action=|_record_change\([^"]*?|_record\([^"]*?)"([a-z_]+\.[a-z_]+)"')
    sources = [path.read_text() for path in (REPOSITORY / "tenants").rglob("*.py")]

    recorded = {action for text in sources for action in pattern.findall(text)}

    assert len(recorded) > 50  # the pattern still finds the calls
    assert recorded - ACTIONS == set()


@pytest.mark.parametrize(
    ("filters", "expected_num"),
    [
        ({"action": "team.*"}, 3),
        ({"action": "tea.*"}, 0),  # a prefix ends at a dot
        ({"target": "team:*"}, 3),
        ({"target": "payments <3"}, 3),  # the team's name
        ({"target": "%:*"}, 0),  # % is no wildcard
    ],
)
def test_entries_are_found_by_prefix_and_by_name(
    company: Company, audrey: Client, filters: dict[str, str], expected_num: int
) -> None:
    remove_from_team(company)  # records three changes

    assert len(list_sentences(audit_page(audrey, **filters))) == expected_num


def test_an_erased_user_is_not_named(company: Company, audrey: Client) -> None:
    remove_from_team(company)
    with tenant_scope(company.tenant_id):
        Membership.objects.filter(user_id=company.developer.user_id).update(
            ended_at=timezone.now(), erased_at=timezone.now()
        )

    page = audit_page(audrey, action="team.member_removed")

    assert "removed Erased user from the team" in list_sentences(page)[0]
    assert company.developer.email not in page


def test_the_filter_suggests_the_tenants_people_and_teams_only(
    company: Company, audrey: Client
) -> None:
    remove_from_team(company)
    neighbour = make_company("hooli", GLOBEX_PEOPLE)

    page = audit_page(audrey)

    assert f'<option value="{company.developer.email}">' in page
    assert '<option value="Payments &lt;3">' in page
    assert neighbour.administrator.email not in page


def test_reading_the_log_adds_an_entry(company: Company, audrey: Client) -> None:
    first_page = audit_page(audrey, action="audit.read")
    second_page = audit_page(audrey, action="audit.read")

    assert list_sentences(first_page) == []
    assert len(list_sentences(second_page)) == 1


@pytest.mark.parametrize(
    ("filters", "is_listed"),
    [
        ({"target": "door:7"}, True),
        ({"target": "door:8"}, False),
        ({"actor": "platform"}, False),
        ({"actor": "nobody@initech.example"}, False),
        ({"first": "2020-01-01"}, True),
        ({"last": "2020-01-01"}, False),
    ],
)
def test_the_list_shows_only_entries_that_match_the_filters(
    company: Company, audrey: Client, filters: dict[str, str], is_listed: bool
) -> None:
    record_door_change(company, 7)

    targets = list_targets(audit_page(audrey, action="door.painted", **filters))

    assert targets == (["door:7"] if is_listed else [])


def test_entries_are_found_by_the_actors_email_address(company: Company, audrey: Client) -> None:
    record_door_change(company, 7)

    assert list_targets(audit_page(audrey, actor=company.administrator.email))
    assert not list_targets(audit_page(audrey, actor=company.developer.email))


@pytest.mark.parametrize(
    "filters",
    [
        {"actor": "what?"},
        {"first": "yesterday"},
        {"first": "2026-02-02", "last": "2026-01-01"},
        {"first": "0001-01-01"},
        {"last": "9999-12-31"},
        {"cursor": "zzz"},
        {"action": "x" * (list_page._MAX_ACTION_CHARS + 1)},
        {"target": "\0"},
    ],
)
def test_an_invalid_filter_is_rejected_and_stays_in_its_field(
    audrey: Client, filters: dict[str, str]
) -> None:
    answer = audrey.get("/audit", filters)

    assert answer.status_code == 400
    name, text = next(iter(filters.items()))
    if name != "cursor":  # the form has no field for the cursor
        assert f'value="{text}"' in answer.content.decode()


def test_a_link_leads_to_older_entries(company: Company, audrey: Client) -> None:
    for number in range(53):  # a page has 50
        record_door_change(company, number)

    first = audit_page(audrey, action="door.painted")
    older = re.search(r'href="([^"]+)"><span>Older', first)
    assert older is not None
    older_page = audrey.get(older[1].replace("&amp;", "&")).content.decode()

    assert [*list_targets(first), *list_targets(older_page)] == [
        f"door:{number}" for number in range(52, -1, -1)
    ]
    assert "Newest" in older_page


def test_an_htmx_request_gets_only_the_list(company: Company, audrey: Client) -> None:
    answer = audrey.get("/audit", headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in answer
    assert 'class="entries"' in answer


def test_a_list_with_all_kinds_of_objects_runs_few_queries(
    company: Company, audrey: Client
) -> None:
    for kind in sorted(NAMED_KINDS):
        record_door_change(company, target=f"{kind}:{uuid.uuid4()}")

    with few_queries():
        page = audit_page(audrey)

    assert set(re.findall(r'<b title="(\w+):', page)) >= NAMED_KINDS


def test_a_budget_has_the_name_of_its_holder(company: Company, audrey: Client) -> None:
    make_customer(company)
    team = create_team(actor=company.administrator.actor, name="Parser", now=timezone.now())
    holders = {
        "Parser": BudgetTarget(BudgetScope.TEAM, team.id),
        company.developer.email: BudgetTarget(
            BudgetScope.USER, uuid.UUID(company.developer.user_id)
        ),
        "the whole tenant": BudgetTarget(BudgetScope.TENANT),
    }
    budgets = {
        name: make_budget(company, limit_micros=1_000_000, holder=holder)
        for name, holder in holders.items()
    }

    page = audit_page(audrey, action="budget.created")

    for name, budget in budgets.items():
        assert f'<b title="budget:{budget.id}">{name}</b>' in page


def test_a_target_without_an_id_is_shown_unchanged(company: Company, audrey: Client) -> None:
    record_door_change(company, target="team:parser")

    assert '<b title="team:parser">parser</b>' in audit_page(audrey)


def test_names_of_another_tenants_objects_are_not_shown(company: Company, audrey: Client) -> None:
    neighbour = make_company("hooli", GLOBEX_PEOPLE)
    team = create_team(actor=neighbour.administrator.actor, name="Secret", now=timezone.now())
    key = make_key(neighbour, neighbour.developer, name="Secret key")
    for target in (
        f"team:{team.id}",
        f"key:{key.key.lookup_id}",
        f"user:{neighbour.developer.user_id}",
    ):
        record_door_change(company, target=target)

    page = audit_page(audrey)

    assert f'<b title="team:{team.id}">{team.id}</b>' in page
    assert "Secret" not in page
    assert neighbour.developer.email not in page


def test_another_tenant_does_not_see_the_entries(company: Company, sign_in: SignIn) -> None:
    record_door_change(company, 7)
    other_company = make_company("hooli", GLOBEX_PEOPLE)

    page = audit_page(sign_in(other_company.administrator), target="door:7")

    assert not list_targets(page)


def test_a_verification_that_stopped_continues_on_request(
    company: Company, audrey: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "MAX_ENTRIES", 4)  # of one verification; the log has more
    record_door_change(company, 3)

    first = audrey.post("/audit/verify").content.decode()
    second = audrey.post("/audit/verify", {"after": "4"}).content.decode()

    assert "Entries 1 to 4 form an unbroken chain" in first
    assert 'name="after" value="4"' in first
    assert "Entries 5 to 8 form an unbroken chain" in second


@pytest.mark.parametrize("after", ["-1", "x", "9" * 5_000, "10000000000000000000000"])
def test_a_verification_from_an_invalid_position_is_rejected(audrey: Client, after: str) -> None:
    assert audrey.post("/audit/verify", {"after": after}).status_code == 400


def test_a_second_verification_at_the_same_time_gets_a_conflict(
    company: Company, audrey: Client
) -> None:
    with redis_lock(connect_to_redis(), f"audit-check:{company.tenant_id}"):
        answer = audrey.post("/audit/verify")

    assert answer.status_code == 409
    assert "A verification is already running" in answer.content.decode()


def test_the_chain_is_verified_on_request(company: Company, audrey: Client) -> None:
    page_before = audrey.get("/audit/verify").content.decode()
    with tenant_scope(company.tenant_id):
        last = find_head(tenant_id=company.tenant_id).sequence

    page = audrey.post("/audit/verify").content.decode()

    assert "Verified: no entry was changed" not in page_before
    assert "Verified: no entry was changed" in page
    # The verification itself has added an entry.
    assert f"{last + 1} entries (1 to {last + 1})" in page
