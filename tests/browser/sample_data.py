"""Sample data for the pages: a company, and sessions of users in each sign-in state.

Users with a second factor are made at their first use and then kept. `example_urls` makes the
company's objects.
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import cached_property
from typing import Final

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.conf import settings
from django.http import HttpRequest

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.operator_admin.session import record_access_reason
from console.sign_in.sessions.session_store import SessionStore
from tenants.base.permissions import Role
from tenants.models import AuditSink, User
from tests.browser.sessions import Session, operators_session, session_of
from tests.fakes.exports import end_all_exports
from tests.fakes.passkey import SoftPasskey
from tests.fixtures.companies import Company, Person, make_company
from tests.integration.sign_in import browser, with_passkey


class Visitor(Enum):
    """The kind of user that opens a page."""

    NOBODY = auto()  # not signed in
    MEMBER = auto()  # the company's owner, who may see everything
    HAS_APP = auto()  # a member with an authenticator app
    GAVE_PASSWORD = auto()  # the same member, after the password and before the app's code
    HAS_PASSKEY = auto()  # a member with a passkey
    OPERATOR = auto()
    OPERATOR_WITH_REASON = auto()  # with a reason to view the company


class Scene:
    """The company that pages show, and the sessions of their visitors.

    Visitors with a second factor belong to a company of their own.
    """

    def __init__(self, company: Company) -> None:
        self.company = company

    def session(self, visitor: Visitor) -> Session | None:
        return _SESSIONS[visitor](self)

    def session_of_role(self, role: Role) -> Session:
        """Return a session of the company's user with this role."""
        return session_of(self.company.people[role])

    def clear(self) -> None:
        """Delete everything that a worker would keep processing."""
        with tenant_scope(self.company.tenant_id):
            AuditSink.objects.all().delete()
        end_all_exports(self.company)

    @cached_property
    def _second_factor_company(self) -> Company:
        """Make a company whose owner will get an app, and whose developer will get a passkey."""
        return make_company("initech", {Role.OWNER: "olga", Role.DEVELOPER: "dan"})

    @cached_property
    def member_with_app(self) -> Person:
        person = self._second_factor_company.people[Role.OWNER]
        user = User.objects.get(id=person.user_id)
        TOTP.activate(user, generate_totp_secret())
        RecoveryCodes.activate(user)
        return person

    @cached_property
    def member_with_passkey(self) -> Person:
        person = self._second_factor_company.people[Role.DEVELOPER]
        members_browser = with_passkey.Browser(person)
        members_browser.sign_in()
        members_browser.add(SoftPasskey())
        return person

    @property
    def passkey_id(self) -> int:
        owned = Authenticator.objects.filter(
            user_id=self.member_with_passkey.user_id, type="webauthn"
        )
        return int(owned.get().pk)

    def session_before_code(self) -> Session:
        """Return a session after the password and before the app's code."""
        members_browser = browser.new_browser(self.member_with_app)
        members_browser.sign_in()
        name = settings.SESSION_COOKIE_NAME
        return name, members_browser.client.cookies[name].value

    def operators_session_with_reason(self) -> Session:
        name, token = operators_session()
        request = HttpRequest()
        request.session = SessionStore.from_token(token)
        record_access_reason(request, self.company.tenant_id, "Ticket 4711")
        request.session.save()
        return name, token


_SESSIONS: Final[dict[Visitor, Callable[[Scene], Session | None]]] = {
    Visitor.NOBODY: lambda scene: None,
    Visitor.MEMBER: lambda scene: scene.session_of_role(Role.OWNER),
    Visitor.HAS_APP: lambda scene: session_of(scene.member_with_app),
    Visitor.GAVE_PASSWORD: lambda scene: scene.session_before_code(),
    Visitor.HAS_PASSKEY: lambda scene: session_of(scene.member_with_passkey),
    Visitor.OPERATOR: lambda scene: operators_session(),
    Visitor.OPERATOR_WITH_REASON: lambda scene: scene.operators_session_with_reason(),
}
