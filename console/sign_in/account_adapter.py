"""Our implementation of django-allauth's hooks for accounts."""

from typing import Any, Final, Protocol

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from console.limits.password_hashing import hashing_slot
from console.sign_in.current_member import client_address
from console.sign_in.devices import remember_device
from console.sign_in.next_page import is_own_path
from console.sign_in.sessions.session import update_session_provider
from tenants.identity.passwords.operations import compute_password_version
from tenants.identity.sso.queries import find_provider_for_email

# Names in the dictionary `signal_kwargs`, which django-allauth keeps until a sign-in is complete.
# ID of the tenant whose identity provider authenticated the user; absent for other sign-ins.
PROVIDER_TENANT: Final = "provider_tenant"
# Unix time of the authentication at that provider (SsoLogin.signed_in_at_s).
PROVIDER_SIGNED_IN_AT: Final = "provider_signed_in_at_s"
# Version of the password with which the sign-in began; absent if it began without a password.
PASSWORD_VERSION: Final = "password_version"  # noqa: S105  # a name, not a password


class _SignedInUser(Protocol):
    email: str
    password: str  # hash of the password


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # closes allauth's sign-up page; the console has its own

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def is_safe_url(self, url: str) -> bool:
        return is_own_path(url)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Check the credentials in a hashing slot. Raises TooManyHashes."""
        with hashing_slot():
            return super().authenticate(request, **credentials)

    def post_login(
        self,
        request: HttpRequest,
        user: _SignedInUser,
        *,
        signal_kwargs: dict[str, Any] | None,
        **kwargs: Any,
    ) -> HttpResponse:
        """Complete a sign-in and remember the browser. Every way to sign in ends here.

        The user may have waited before the second factor. If the password or the identity provider
        of the user's domain has changed in the meantime, the user must sign in again.
        """
        login_state = signal_kwargs or {}
        provider_tenant_id = login_state.get(PROVIDER_TENANT)
        provider = find_provider_for_email(user.email)
        current_provider_tenant_id = None if provider is None else provider.tenant_id
        has_provider_changed = provider_tenant_id != current_provider_tenant_id
        version = compute_password_version(user.password)
        has_password_changed = login_state.get(PASSWORD_VERSION, version) != version
        if has_provider_changed or has_password_changed:
            logout(request)
            return redirect("account_login")
        update_session_provider(request, provider_tenant_id, login_state.get(PROVIDER_SIGNED_IN_AT))
        response: HttpResponse = super().post_login(
            request, user, signal_kwargs=signal_kwargs, **kwargs
        )
        remember_device(request, response, user.email)
        return response

    def add_message(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Add nothing: our pages show their own messages."""

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send nothing: tenants.identity.sso.mfa_events sends our own notifications."""
