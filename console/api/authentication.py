"""Authentication at the REST API: a service key as bearer token, or a member's console session.

With a session, every request that is not a GET also needs a CSRF token. If a request has a bearer
token, its session is ignored. Operator keys and leak reports have their own authentication
(platform_tenants.OperatorKeyAuth, leak_report_auth).
"""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer, SessionAuth

from caret.foundation.web.credential_notes import note_credential
from console.api.problems import Problem, ProblemRaised
from console.api.rate_limit import count_request
from console.sign_in.current_member import CurrentMember, client_address, find_member
from tenants.base.permissions import Permission
from tenants.identity.api_keys.authentication import authenticate_key
from tenants.security.authorization.actor import Actor

# The limit is settings.DATA_UPLOAD_MAX_MEMORY_SIZE.
TOO_LARGE: Final = Problem(413, "too_large", "The body must not exceed 1 MiB.")
NO_SECOND_FACTOR: Final = Problem(
    403,
    "second_factor_required",
    "Your tenant requires two-factor authentication. Set it up in the console.",
)
NO_TENANT: Final = Problem(403, "no_active_tenant", "You are not a member of any tenant.")
_CALLER: Final = "_caret_caller"  # request attribute: the caller found by require_authentication


@dataclass(frozen=True, slots=True)
class ServiceKeyCaller:
    """A caller that authenticated with a service key."""

    actor: Actor


class AuthenticatedRequest(HttpRequest):
    """A request that passed KeyAuth or MemberAuth."""

    auth: CurrentMember | ServiceKeyCaller


class KeyAuth(HttpBearer):
    """`Authorization: Bearer cpk_svc_...`. It uses no session, so it needs no CSRF token."""

    def __call__(self, request: HttpRequest) -> ServiceKeyCaller | None:
        caller = vars(request).get(_CALLER)
        if isinstance(caller, ServiceKeyCaller):
            return caller
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.authenticate(request, token.strip()) if scheme.lower() == "bearer" else None

    def authenticate(self, request: HttpRequest, token: str) -> ServiceKeyCaller:
        """Return the key's caller, and count the request for the rate limit.

        Raises Unauthenticated, and ProblemRaised if the caller sent too many requests.
        """
        address = client_address(request)
        actor = authenticate_key(text=token, address=address, now=timezone.now())
        note_credential(request)  # the server marks the connection as authenticated
        count_request(actor.rate_limit_key)
        return ServiceKeyCaller(actor)


class MemberAuth(SessionAuth):
    """django-ninja's session authentication. It returns the current member instead of the user."""

    def __call__(self, request: HttpRequest) -> Any | None:
        caller = vars(request).get(_CALLER)
        if isinstance(caller, CurrentMember):
            return caller
        # This check comes first, because the CSRF check may read the whole body.
        num_bytes = int(request.headers.get("Content-Length") or 0)
        if num_bytes > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise ProblemRaised(TOO_LARGE)
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> CurrentMember | None:
        """Return the member, and count the request for the rate limit; None: nobody is signed in.

        Raises ProblemRaised if the user has no tenant, lacks a required second factor, or sent too
        many requests. `key`, the session cookie, is not used: the middleware has already read it.
        """
        if not request.user.is_authenticated:
            return None
        member = find_member(request)
        if member is None:
            raise ProblemRaised(NO_TENANT)
        if member.is_mfa_missing:
            raise ProblemRaised(NO_SECOND_FACTOR)
        count_request(member.actor.rate_limit_key)
        return member


def require_authentication(request: HttpRequest) -> Actor:
    """Authenticate the caller before the endpoint does. The endpoint then reuses the result.

    Raises the same errors as the endpoint: AuthenticationError, HttpError, Unauthenticated,
    ProblemRaised.
    """
    caller = KeyAuth()(request) or MemberAuth()(request)
    if caller is None:
        raise AuthenticationError
    vars(request)[_CALLER] = caller
    return caller.actor


def actor_of(request: AuthenticatedRequest) -> Actor:
    return request.auth.actor


def document_permissions(*permissions: Permission) -> dict[str, Any]:
    """Return the entry of the OpenAPI document: any one of `permissions` gives access.

    Operations and queries enforce the permissions. A test tries each endpoint with each role.
    """
    return {"x-permissions": sorted(permissions)}
