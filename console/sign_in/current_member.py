"""The signed-in user and the tenant that they currently work in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast
from uuid import uuid4

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from console.sign_in.mfa.adapter import has_verified_mfa, mfa_page_url
from console.sign_in.sessions.session import provider_tenant_of
from tenants.base.errors import Forbidden, InvalidValue, NotFound
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MembershipRow, find_memberships

_SESSION_TENANT: Final = "tenant_id"
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class CurrentMember:
    email: str
    name: str
    actor: Actor
    tenant: MembershipRow
    # True: the tenant requires a second factor that this session lacks. The user can then only set
    # it up or use it.
    is_mfa_missing: bool
    other_tenants: list[MembershipRow]  # sorted by name


def find_member(request: HttpRequest) -> CurrentMember | None:
    """Return the current member; None if nobody is signed in or the user belongs to no tenant.

    Makes at least one query in each request, so that an ended membership takes effect at once.
    """
    user = request.user
    if not user.is_authenticated:
        return None
    user_id = UserId(str(user.pk))
    memberships = _find_memberships(request)
    if not memberships:
        return None
    tenant_id = request.session.get(_SESSION_TENANT)
    tenant = next((row for row in memberships if row.tenant_id == tenant_id), memberships[0])
    actor = Actor(
        tenant_id=tenant.tenant_id,
        user_id=user_id,
        role=tenant.role,
        address=client_address(request),
        request_id=str(uuid4()),
        is_closing=tenant.status is TenantStatus.CLOSING,
    )
    other_tenants = [row for row in memberships if row is not tenant]
    return CurrentMember(
        user.get_username(),
        user.name,
        actor,
        tenant,
        _lacks_second_factor(request, tenant),
        other_tenants,
    )


def _find_memberships(request: HttpRequest) -> list[MembershipRow]:
    """Return the memberships that the session may use, by name.

    A session started by a tenant's identity provider is limited to that tenant.
    """
    rows = find_memberships(user_id=UserId(str(request.user.pk)))
    provider_tenant_id = provider_tenant_of(request)
    return [row for row in rows if provider_tenant_id in (None, row.tenant_id)]


def _lacks_second_factor(request: HttpRequest, tenant: MembershipRow) -> bool:
    """Return whether the session lacks the second factor that the tenant requires.

    The tenant's identity provider checks the second factor of its users itself.
    """
    if not tenant.is_mfa_required or provider_tenant_of(request) is not None:
        return False
    return not has_verified_mfa(request)


def set_session_tenant(request: HttpRequest, tenant_id: TenantId) -> bool:
    """Choose the session's tenant. Return False if the user or their session may not use it."""
    if tenant_id not in {row.tenant_id for row in _find_memberships(request)}:
        return False
    request.session[_SESSION_TENANT] = tenant_id
    return True


def client_address(request: HttpRequest) -> str:
    """Return the client's IP address. uvicorn has already replaced a trusted proxy's."""
    return str(request.META.get("REMOTE_ADDR") or "0.0.0.0")  # noqa: S104  # unknown; no bind


def member_required(
    view: Callable[Concatenate[HttpRequest, CurrentMember, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Require a signed-in member and pass them to the view.

    Errors that the view does not handle become error pages: 403, 404, or 400 for an invalid value
    such as a cursor.
    """

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        member = find_member(request)
        if member is None:
            return render(request, "console/sign_in/no_tenant.html", status=403)
        if member.is_mfa_missing:
            return redirect(mfa_page_url(request))
        with _translate_refusals():
            return view(request, member, *args, **kwargs)

    # For mypy, the result of `wraps` has another type.
    return cast(Callable[Concatenate[HttpRequest, P], HttpResponse], guarded)


@contextmanager
def _translate_refusals() -> Iterator[None]:
    try:
        yield
    except Forbidden as error:
        raise PermissionDenied from error
    except NotFound as error:
        raise Http404 from error
    except InvalidValue as error:
        raise BadRequest(error.message) from error
