"""Ends the sessions of who has nowhere left to go."""

import uuid

from allauth.usersessions.models import UserSession

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenancy import acting_user
from tenants.models import Membership


def end_sessions(*, user_id: UserId) -> None:
    """Unless he is a member elsewhere: there they go on, and show nothing of this tenant."""
    named = uuid.UUID(user_id)
    with acting_user(user_id):
        if Membership.objects.filter(user_id=named, ended_at=None).exists():
            return
    for session in UserSession.objects.filter(user_id=named).order_by("id"):
        session.end()
