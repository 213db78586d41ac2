"""Who calls the API: a member, by the session of the console, with its CSRF token."""

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from ninja.security import SessionAuth

from console.api.problems import Problem, ProblemRaised
from console.api.rate_limit import take_request
from console.member import Member, find_member
from tenants.members.actor import Actor
from tenants.members.permissions import Permission

TOO_LARGE: Final = Problem(413, "too_large", "The body may have 1 MiB.")
NO_TENANT: Final = Problem(403, "no_tenant", "You belong to no tenant.")


class ApiRequest(HttpRequest):
    """A request that has passed MemberAuth."""

    auth: Member


class MemberAuth(SessionAuth):
    """django-ninja's, with the member in place of the user."""

    def __call__(self, request: HttpRequest) -> Any | None:
        # Before the token is looked for in it: nothing this large is read.
        if int(request.headers.get("Content-Length") or 0) > _max_body_bytes():
            raise ProblemRaised(TOO_LARGE)
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Member | None:
        if not request.user.is_authenticated:
            return None
        member = find_member(request)
        if member is None:
            raise ProblemRaised(NO_TENANT)
        take_request(member.actor.caller)
        return member


def actor_of(request: ApiRequest) -> Actor:
    return request.auth.actor


def open_to(*permissions: Permission) -> dict[str, Any]:
    """For the OpenAPI document: any one of `permissions` opens the endpoint. It is the operations
    and queries that enforce them; a test tries each endpoint with each role."""
    return {"x-permissions": sorted(permissions)}


def _max_body_bytes() -> int:
    return settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
