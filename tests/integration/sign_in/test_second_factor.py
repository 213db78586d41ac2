"""Users set up second factors and sign in with them, and tenants can require them.

Users can also list and end their sessions.

A code works once, and `set_up_app` uses the current one. Therefore tests use the code of the next
30 seconds: `code_of(secret, later_by=1)`.
"""

from contextlib import ExitStack
from uuid import UUID

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.limits.password_hashing import MAX_HASHES, hashing_slot
from console.limits.throttling import MAX_ATTEMPTS, Secret
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.members.operations import insert_membership
from tenants.identity.sso.operations import set_second_factor_required
from tenants.models import User
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import OverrideSubject, SubjectKind
from tests.fixtures.companies import PASSWORD, Company, make_company
from tests.fixtures.users import make_colleague
from tests.integration.sign_in.browser import Browser, code_of, new_browser


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def browser(company: Company) -> Browser:
    return new_browser(company.people[Role.OWNER])


def forget_used_code(browser: Browser, code: str) -> None:
    """Let django-allauth forget that the code was used.

    Without this call, django-allauth forgets it after 30 s, although the code is valid for 90 s.
    """
    cache.delete(f"allauth.mfa.totp.used?user={browser.person.user_id}&code={code}")


def test_a_password_alone_is_not_enough_once_there_is_a_second_factor(browser: Browser) -> None:
    browser.sign_in()
    browser.set_up_app()
    other_browser = new_browser(browser.person)

    next_page = other_browser.sign_in()

    assert next_page == "/sign-in/code"
    assert not other_browser.is_signed_in()


def test_a_code_completes_the_sign_in(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up_app()
    other_browser = new_browser(browser.person)
    other_browser.sign_in()

    response = other_browser.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert response["Location"] == "/"
    assert other_browser.is_signed_in()


def test_a_code_works_once(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up_app()
    code = code_of(secret, later_by=1)
    for use, expected in (("first", True), ("second", False)):
        other_browser = new_browser(browser.person)
        other_browser.sign_in()
        other_browser.client.post("/sign-in/code", {"code": code})
        assert other_browser.is_signed_in() is expected, use


def test_a_code_works_once_during_its_whole_validity(browser: Browser) -> None:
    browser.sign_in()
    code = code_of(browser.set_up_app(), later_by=1)
    first, second = new_browser(browser.person), new_browser(browser.person)
    first.sign_in()
    first.client.post("/sign-in/code", {"code": code})
    forget_used_code(browser, code)

    second.sign_in()
    second.client.post("/sign-in/code", {"code": code})

    assert (first.is_signed_in(), second.is_signed_in()) == (True, False)


def test_a_code_used_to_sign_in_cannot_be_used_for_a_step_up(browser: Browser) -> None:
    browser.sign_in()
    code = code_of(browser.set_up_app(), later_by=1)
    other_browser = new_browser(browser.person)
    other_browser.sign_in()
    other_browser.client.post("/sign-in/code", {"code": code})
    forget_used_code(browser, code)

    page = other_browser.client.post("/account/confirm/code?next=/", {"code": code})

    assert page.status_code == 200
    assert b"Incorrect code" in page.content


def test_a_wrong_code_is_refused(browser: Browser) -> None:
    browser.sign_in()
    browser.set_up_app()
    other_browser = new_browser(browser.person)
    other_browser.sign_in()

    page = other_browser.client.post("/sign-in/code", {"code": "000000"})

    assert b"Incorrect code" in page.content
    assert not other_browser.is_signed_in()


def test_guessing_codes_is_throttled(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up_app()
    other_browser = new_browser(browser.person)
    other_browser.sign_in()
    for _ in range(MAX_ATTEMPTS[Secret.CODE] + 1):
        other_browser.client.post("/sign-in/code", {"code": "000000"})

    right_code = code_of(secret, later_by=1)
    other_browser.client.post("/sign-in/code", {"code": right_code})

    assert not other_browser.is_signed_in()


def test_a_recovery_code_works_once(browser: Browser) -> None:
    browser.sign_in()
    browser.set_up_app()
    code = browser.client.get("/account/recovery-codes").context["unused_codes"][0]
    for expected in (True, False):
        other_browser = new_browser(browser.person)
        other_browser.sign_in()
        other_browser.client.post("/sign-in/code", {"code": code})
        assert other_browser.is_signed_in() is expected


def test_the_apps_secret_and_recovery_codes_are_not_stored_in_plain_text(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up_app()
    codes = browser.client.get("/account/recovery-codes").context["unused_codes"]

    rows = Authenticator.objects.filter(user_id=browser.person.user_id)

    assert rows.count() == 2  # the app, and its recovery codes
    assert codes
    assert not any(text in str(row.data) for row in rows for text in (secret, *codes))


def test_setting_up_an_app_requires_the_password_again(browser: Browser) -> None:
    browser.sign_in()

    response = browser.client.get("/account/second-factor/app")

    assert response["Location"].startswith("/account/confirm")


def test_a_step_up_asks_to_retry_while_all_hashing_slots_are_in_use(browser: Browser) -> None:
    browser.sign_in()
    browser.client.get("/account/second-factor/app")
    with ExitStack() as held_slots:
        for _ in range(MAX_HASHES):
            held_slots.enter_context(hashing_slot())
        refusal = browser.client.post("/account/confirm?next=/account/x", {"password": PASSWORD})

    accepted = browser.client.post("/account/confirm", {"password": PASSWORD})

    assert (refusal.status_code, refusal["Retry-After"]) == (503, "5")
    assert b"Too many people are signing in" in refusal.content
    assert b"/account/x" in refusal.content, "the page to return to is lost"
    assert PASSWORD.encode() not in refusal.content
    assert accepted.status_code == 302


def test_the_code_page_requires_the_password_first(browser: Browser) -> None:
    response = browser.client.get("/sign-in/code")

    assert response["Location"] == "/sign-in"


def require_factor(company: Company) -> None:
    set_second_factor_required(actor=company.platform, is_required=True, now=timezone.now())


def test_a_user_without_a_required_factor_can_only_set_it_up(
    company: Company, browser: Browser
) -> None:
    require_factor(company)
    browser.sign_in()

    page = browser.client.get("/")
    response = browser.client.get("/api/v1/keys")

    assert page["Location"] == "/account/second-factor"
    assert (response.status_code, response.json()["code"]) == (403, "second_factor_required")


@pytest.mark.parametrize("kind", ["policy", "override"])
def test_the_policy_or_an_override_can_require_a_second_factor(kind: str) -> None:
    company = make_company("hooli", {Role.OWNER: "hank", Role.DEVELOPER: "dana"})
    browser = new_browser(company.people[Role.OWNER])
    colleague = new_browser(company.people[Role.DEVELOPER])
    fields = {"is_mfa_required": True}
    if kind == "policy":
        document = serialize_policy(DEFAULT_POLICY) | fields
        set_policy(actor=company.platform, document=document, reason="test", now=timezone.now())
    else:
        subject = OverrideSubject(SubjectKind.USER, UUID(browser.person.user_id))
        set_override(
            actor=company.platform,
            subject=subject,
            document=fields,
            reason="test",
            now=timezone.now(),
        )
    browser.sign_in()
    colleague.sign_in()

    page = browser.client.get("/")
    response = browser.client.get("/api/v1/keys")

    assert page["Location"] == "/account/second-factor"
    assert (response.status_code, response.json()["code"]) == (403, "second_factor_required")
    # The override applies to the owner only.
    assert colleague.is_signed_in() == (kind == "override")
    browser.set_up_app()
    assert browser.is_signed_in()


def test_a_user_with_the_required_factor_has_access(company: Company, browser: Browser) -> None:
    require_factor(company)
    browser.sign_in()

    browser.set_up_app()

    assert browser.is_signed_in()
    assert browser.client.get("/").status_code == 200


def test_one_tenants_requirement_does_not_affect_another(
    company: Company, browser: Browser
) -> None:
    require_factor(make_company("hooli", {Role.OWNER: "hank"}))
    browser.sign_in()

    assert browser.is_signed_in()


def test_setting_up_an_app_ends_the_users_other_sessions(browser: Browser) -> None:
    other_browser = new_browser(browser.person)
    other_browser.sign_in()
    browser.sign_in()

    browser.set_up_app()

    assert (browser.is_signed_in(), other_browser.is_signed_in()) == (True, False)


def test_setting_up_an_app_keeps_other_users_sessions(browser: Browser) -> None:
    other_users_browser = new_browser(
        make_company("hooli", {Role.OWNER: "hank"}).people[Role.OWNER]
    )
    other_users_browser.sign_in()
    browser.sign_in()

    browser.set_up_app()

    assert other_users_browser.is_signed_in()


def session_without_code(browser: Browser) -> Browser:
    """Return a browser of the same user with an older session that was never asked for a code."""
    old_browser = new_browser(browser.person)
    old_browser.client.force_login(User.objects.get(id=browser.person.user_id))
    return old_browser


def test_a_session_without_a_code_does_not_meet_the_requirement(
    company: Company, browser: Browser
) -> None:
    browser.sign_in()
    browser.set_up_app()
    old_browser = session_without_code(browser)
    require_factor(company)

    page = old_browser.client.get("/")
    response = old_browser.client.get("/api/v1/keys")

    assert page["Location"] == "/account/confirm/code?next=%2F"
    assert (response.status_code, response.json()["code"]) == (403, "second_factor_required")


def test_a_session_can_meet_the_requirement_with_a_later_code(
    company: Company, browser: Browser
) -> None:
    browser.sign_in()
    secret = browser.set_up_app()
    old_browser = session_without_code(browser)
    require_factor(company)

    response = old_browser.client.post(
        "/account/confirm/code?next=/", {"code": code_of(secret, later_by=1)}
    )

    assert response["Location"] == "/"
    assert old_browser.is_signed_in()


def test_removing_the_app_ends_access_that_requires_it(company: Company, browser: Browser) -> None:
    browser.sign_in()
    browser.set_up_app()
    require_factor(company)

    browser.client.post("/account/second-factor/app/remove")

    assert not browser.is_signed_in()
    assert browser.client.get("/")["Location"] == "/account/second-factor"


def test_a_user_can_end_their_other_sessions(browser: Browser) -> None:
    other_browser = new_browser(browser.person)
    other_browser.sign_in()
    browser.sign_in()
    session_list = browser.client.get("/account/sessions")

    browser.client.post("/account/sessions")

    assert other_browser.client.defaults["REMOTE_ADDR"].encode() in session_list.content
    assert (browser.is_signed_in(), other_browser.is_signed_in()) == (True, False)


def test_forms_without_a_csrf_token_are_refused(browser: Browser) -> None:
    browser.sign_in()
    browser.client.handler.enforce_csrf_checks = True

    for address in ("/account/second-factor/app", "/account/sessions", "/account/confirm"):
        assert browser.client.post(address, {"code": "1"}).status_code == 403


def test_removing_a_member_ends_their_sessions(company: Company) -> None:
    make_colleague(company, Role.OWNER)  # the last owner cannot be removed
    removed_members_browser = new_browser(company.people[Role.OWNER])
    removed_members_browser.sign_in()

    remove_member(
        actor=company.platform,
        user_id=removed_members_browser.person.user_id,
        reason="",
        now=timezone.now(),
    )

    assert removed_members_browser.client.get("/")["Location"] == "/sign-in?next=/"


def test_a_removed_member_stays_signed_in_at_other_tenants(company: Company) -> None:
    make_colleague(company, Role.OWNER)  # the last owner cannot be removed
    other_company = make_company("hooli", {Role.OWNER: "hank"})
    removed_members_browser = new_browser(company.people[Role.OWNER])
    with tenant_scope(other_company.tenant_id):
        insert_membership(
            tenant_id=other_company.tenant_id,
            user_id=removed_members_browser.person.user_id,
            role=Role.AUDITOR,
            now=timezone.now(),
        )
    removed_members_browser.sign_in()

    remove_member(
        actor=company.platform,
        user_id=removed_members_browser.person.user_id,
        reason="",
        now=timezone.now(),
    )

    assert removed_members_browser.client.get("/api/v1/tenant").json()["slug"] == other_company.slug
