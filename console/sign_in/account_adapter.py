"""What django-allauth asks of us about accounts."""

from typing import Any, Final, Protocol

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from console.password_hashing import hashing_slot
from console.sign_in.current_member import client_address
from console.sign_in.devices import remember_place
from console.sign_in.next_page import is_own_path
from console.sign_in.session import set_session_provider
from tenants.identity.sso.queries import provider_for

# Among what a sign-in carries along: the tenant whose identity provider has let somebody in.
PROVIDER_TENANT: Final = "provider_tenant"
# ... and when he showed it who he is: Arrival.signed_in_at_s.
PROVIDER_SIGNED_IN_AT: Final = "provider_signed_in_at_s"


class _SocialUser(Protocol):
    email: str


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # people are invited, or come by their identity provider

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def is_safe_url(self, url: str) -> bool:
        return is_own_path(url)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Raises Busy."""
        with hashing_slot():
            return super().authenticate(request, **credentials)

    def post_login(
        self,
        request: HttpRequest,
        user: _SocialUser,
        *,
        signal_kwargs: dict[str, Any] | None,
        **kwargs: Any,
    ) -> HttpResponse:
        """Where every sign-in ends, however many pages it took. Whose the address is counts now,
        not when it began."""
        carried = signal_kwargs or {}
        by = carried.get(PROVIDER_TENANT)
        wanted = provider_for(user.email)
        if by != (wanted and wanted.tenant_id):
            logout(request)
            return redirect("account_login")
        set_session_provider(request, by, carried.get(PROVIDER_SIGNED_IN_AT))
        response: HttpResponse = super().post_login(
            request, user, signal_kwargs=signal_kwargs, **kwargs
        )
        remember_place(request, response, user.email)
        return response

    def add_message(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Ours are on the pages themselves."""

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Ours say what was done (tenants.identity.sso.mfa_events)."""
