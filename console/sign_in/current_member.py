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
from tenants.policy.overrides.queries import load_effective_policy
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MembershipRow, find_memberships

_SESSION_TENANT: Final = "tenant_id"  # name in the session: ID of the tenant that the user chose
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class CurrentMember:
    email: str
    name: str  # of the user
    actor: Actor
    tenant: MembershipRow
    # True: the tenant requires a second factor, and this session has verified none. The user can
    # then only set up or verify a second factor.
    is_mfa_missing: bool
    other_tenants: list[MembershipRow]  # that the session may switch to, sorted by name


def find_member(request: HttpRequest) -> CurrentMember | None:
    """Return the current member; None if nobody is signed in or the session may use no tenant.

    Without a chosen tenant, the current one is the first by name. The memberships are queried in
    each call, so that the end of a membership takes effect at once.
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
        request_id=str(uuid4()),  # the same in all audit entries of the request
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
    """Return the memberships that the session may use, sorted by the tenant's name.

    A session started by a tenant's identity provider is limited to that tenant.
    """
    rows = find_memberships(user_id=UserId(str(request.user.pk)))
    provider_tenant_id = provider_tenant_of(request)
    return [row for row in rows if provider_tenant_id in (None, row.tenant_id)]


def _lacks_second_factor(request: HttpRequest, tenant: MembershipRow) -> bool:
    """Return whether the session lacks the second factor that the tenant requires.

    The sign-in settings, the policy, or an override of the policy can require it. A session that an
    identity provider started lacks none: the provider checks second factors.
    """
    if provider_tenant_of(request) is not None:
        return False
    return not has_verified_mfa(request) and _is_mfa_required(request, tenant)


def _is_mfa_required(request: HttpRequest, tenant: MembershipRow) -> bool:
    """Return whether the user needs a second factor. At most two queries."""
    if tenant.is_mfa_required:
        return True
    user_id = UserId(str(request.user.pk))
    return load_effective_policy(tenant_id=tenant.tenant_id, user_id=user_id).is_mfa_required


def set_session_tenant(request: HttpRequest, tenant_id: TenantId) -> bool:
    """Set the tenant in which the user works. Return False if the session may not use it."""
    if tenant_id not in {row.tenant_id for row in _find_memberships(request)}:
        return False
    request.session[_SESSION_TENANT] = tenant_id
    return True


def client_address(request: HttpRequest) -> str:
    """Return the client's IP address; 0.0.0.0 if it is unknown.

    Behind a trusted proxy, uvicorn has already replaced the proxy's address with the client's.
    """
    return str(request.META.get("REMOTE_ADDR") or "0.0.0.0")  # noqa: S104  # binds to no address


def member_required(
    view: Callable[Concatenate[HttpRequest, CurrentMember, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Require a signed-in member, and pass the member to the view as its second argument.

    If nobody is signed in, redirect to the sign-in page. If a required second factor is missing,
    redirect to its page. If the session may use no tenant, answer with a page and status 403. If
    the view raises Forbidden, NotFound or InvalidValue, answer with error page 403, 404 or 400.
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
        with _translate_errors():
            return view(request, member, *args, **kwargs)

    # For mypy, the result of `wraps` has another type.
    return cast(Callable[Concatenate[HttpRequest, P], HttpResponse], guarded)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate domain errors into Django's exceptions, for which Django shows error pages."""
    try:
        yield
    except Forbidden as error:
        raise PermissionDenied from error
    except NotFound as error:
        raise Http404 from error
    except InvalidValue as error:
        raise BadRequest(error.message) from error
