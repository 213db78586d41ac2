"""The session of an operator, and the operator's reasons for access to tenants.

Times in the session are in seconds since the Unix epoch.
"""

import time
from typing import Any, Final, cast

from django.http import HttpRequest

from caret.foundation.ids import TenantId
from console.sign_in.sessions.operator_cookies import is_operator_path
from tenants.fleet.operators.accounts import OperatorView, find_operator

IDLE_S: Final = 30 * 60  # a session ends after this time without a request
MAX_SESSION_S: Final = 8 * 3600  # a session ends after this time, even if it is used
ACCESS_REASON_S: Final = 3600  # a reason is valid for this time
CONFIRMED_S: Final = 600  # after an authenticator code, no other code is needed for this time
# Names of values in the session.
_OPERATOR: Final = "operator"
_ACCESS_REASONS: Final = "access_reasons"  # by tenant ID: the reason and the end of its validity
_CONFIRMED_UNTIL: Final = "confirmed_until"
# Name of the request's attribute with the result of _find_operator.
_CACHED_OPERATOR: Final = "caret_operator"


def start_session(request: HttpRequest, operator: OperatorView) -> None:
    request.session.flush()  # a new ID: somebody else may know the old one (session fixation)
    request.session[_OPERATOR] = {
        "id": str(operator.id),
        "password_version": operator.password_version,
        "until": time.time() + MAX_SESSION_S,
    }
    request.session.set_expiry(IDLE_S)


def end_session(request: HttpRequest) -> None:
    request.session.flush()


def operator_of(request: HttpRequest) -> OperatorView | None:
    """Return the signed-in operator; None: nobody is signed in, or the operator was disabled.

    The first call in each request makes a query, so that the disabling of an operator takes effect
    at once. Further calls return the same result.
    """
    if _CACHED_OPERATOR not in request.__dict__:
        request.__dict__[_CACHED_OPERATOR] = _find_operator(request)
    return cast("OperatorView | None", request.__dict__[_CACHED_OPERATOR])


def record_access_reason(request: HttpRequest, tenant_id: TenantId, reason: str) -> None:
    reasons = _valid_reasons(request)
    reasons[tenant_id] = [reason, time.time() + ACCESS_REASON_S]
    request.session[_ACCESS_REASONS] = reasons


def find_access_reason(request: HttpRequest, tenant_id: TenantId) -> str | None:
    """Return the reason; None if the operator gave none within ACCESS_REASON_S."""
    reason_and_expiry = _valid_reasons(request).get(tenant_id)
    return None if reason_and_expiry is None else str(reason_and_expiry[0])


def record_confirmation(request: HttpRequest) -> None:
    """Remember that the operator has just entered a code of their authenticator app."""
    request.session[_CONFIRMED_UNTIL] = time.time() + CONFIRMED_S


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether the operator has entered a code within CONFIRMED_S."""
    until_s: float = request.session.get(_CONFIRMED_UNTIL, 0.0)
    return until_s > time.time()


def _valid_reasons(request: HttpRequest) -> dict[str, list[Any]]:
    """Return the reasons that have not expired, as they are in the session."""
    reasons = request.session.get(_ACCESS_REASONS, {})
    return {
        tenant_id: reason_and_expiry
        for tenant_id, reason_and_expiry in reasons.items()
        if reason_and_expiry[1] > time.time()
    }


def _find_operator(request: HttpRequest) -> OperatorView | None:
    """Return the operator of the session, and restart the session's idle timeout."""
    entry = request.session.get(_OPERATOR) if is_operator_path(request) else None
    if entry is None or entry["until"] < time.time():
        return None
    request.session.modified = True  # the session is saved, which restarts its idle timeout
    # A session of an earlier release has no password version, and ends.
    return find_operator(
        operator_id=entry["id"], password_version=entry.get("password_version", "")
    )
