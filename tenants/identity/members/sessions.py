"""Ends sessions when a user's access ends or the sign-in method changes. Deletes expired ones."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, Q, QuerySet

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import user_scope
from tenants.identity.members.access_changes import announce_access_change
from tenants.models import Membership


def end_sessions_unless_member(*, user_id: UserId) -> None:
    """End the sessions of a user who is no longer a member of any tenant.

    If a membership remains, the sessions continue, but show nothing of tenants that the user has
    left.
    """
    user_uuid = uuid.UUID(user_id)
    with user_scope(user_id):
        if Membership.objects.filter(user_id=user_uuid, ended_at=None).exists():
            return
    for session in UserSession.objects.filter(user_id=user_uuid).order_by("id"):
        session.end()


def end_all_sessions(*, user_id: UserId) -> None:
    """End all sessions of a user, for example because the password was reset."""
    _end_sessions(UserSession.objects.filter(user_id=uuid.UUID(user_id)))
    announce_access_change(user_id)


def end_sessions_of_domains(*, domains: Iterable[str], exempt_session_key: str | None) -> None:
    """End the sessions of all users with e-mail addresses in the domains. Up to four queries.

    The session with the key `exempt_session_key` continues.
    """
    is_of_domains = Q(pk__in=[])  # without domains, no session matches
    for name in domains:
        is_of_domains |= Q(user__email__endswith=f"@{name}")
    _end_sessions(
        UserSession.objects.filter(is_of_domains).exclude(session_key=exempt_session_key or "")
    )


def delete_expired_sessions(*, now: datetime) -> int:
    """Delete the rows of expired sessions, and return the number of deleted rows of allauth.

    Neither Django nor allauth deletes them. The IP addresses and browsers in allauth's rows would
    otherwise stay forever.
    """
    Session.objects.filter(expire_date__lt=now).delete()
    in_force = Session.objects.filter(session_key=OuterRef("session_key"))
    return UserSession.objects.filter(~Exists(in_force)).delete()[0]  # type: ignore[no-any-return]


def _end_sessions(sessions: "QuerySet[UserSession]") -> None:
    session_keys = list(sessions.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=session_keys).delete()
    UserSession.objects.filter(session_key__in=session_keys).delete()
    announce_access_change(*session_keys)
