"""django-allauth's views for second factors, passkeys and step-up, with our limits and audit log.

A change of a factor and its audit entry are in one transaction.
"""

from http import HTTPStatus
from typing import Any, Final

from allauth.account.views import ReauthenticateView
from allauth.mfa.base.views import AuthenticateView, IndexView
from allauth.mfa.base.views import ReauthenticateView as ReauthenticateByCodeView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn import views
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext

from caret.foundation.ids import UserId
from console.limits.password_hashing import BUSY, TooManyHashes
from console.limits.throttling import Secret, SecretAttempt, count_attempt, forgive_attempt
from console.sign_in.current_member import client_address
from console.sign_in.devices import build_attempt
from console.sign_in.mfa.adapter import record_new_factor
from tenants.identity.sso.mfa_events import MfaChange, MfaEvent, MfaFactor, record_mfa_change

_FACTOR_LIST_URL: Final = reverse_lazy("mfa_index")
_RETRY_AFTER_BUSY_S: Final = 5  # Retry-After header if no hashing slot is free


class _FactorListView(IndexView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        passkeys = context["authenticators"].get("webauthn", [])
        return {
            **context,
            "passkeys": sorted(passkeys, key=lambda passkey: passkey.instance.created_at),
        }


class _GuessLimitMixin:
    """Counts a guess of a password or code before django-allauth's view checks it.

    Passkeys are not counted, not even for the network. Nobody can guess them, and only users who
    entered the right password can present one here. They must work while codes are throttled and
    while Redis does not respond (ADR 0101).
    """

    secret: Secret
    field: str  # name of the form field that contains the guess
    attempt: SecretAttempt | None = None  # None: the request contains no guess

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.field in request.POST:
            self.attempt = build_attempt(request, self.secret, self.user().email)
            if (throttle := count_attempt(self.attempt)) is not None:
                response = self.render_refusal(throttle.message, HTTPStatus.TOO_MANY_REQUESTS)
                response["Retry-After"] = str(throttle.wait_s)
                return response
        return super().post(request, *args, **kwargs)  # type: ignore[misc,no-any-return]  # allauth's

    def form_valid(self, form: Any) -> HttpResponse:
        """Uncount the guess, which was right."""
        if self.attempt is not None:
            forgive_attempt(self.attempt)
        return super().form_valid(form)  # type: ignore[misc,no-any-return]  # allauth's view

    def render_refusal(self, notice: str, status: int) -> HttpResponse:
        """Return the page with a message and an empty form.

        A form that contains the guess would check the guess.
        """
        view: Any = self
        context = view.get_context_data(form=view.get_form_class()(user=self.user()), notice=notice)
        response: HttpResponse = view.render_to_response(context, status=status)
        return response

    def user(self) -> Any:
        """Return the user whose secret is guessed."""
        return self.request.user  # type: ignore[attr-defined]  # attribute of the view


class _SecondStepView(_GuessLimitMixin, AuthenticateView):  # type: ignore[misc]  # allauth has no types
    secret = Secret.CODE
    field = "code"

    def user(self) -> Any:
        return self.stage.login.user  # not signed in yet

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        authenticators = Authenticator.objects.filter(user=self.stage.login.user)
        factor_types = set(authenticators.values_list("type", flat=True))
        return {
            **context,
            **kwargs,  # allauth's method leaves them out
            "has_app": Authenticator.Type.TOTP in factor_types,
            "has_passkey": Authenticator.Type.WEBAUTHN in factor_types,
        }


class _AddPasskeyView(views.AddWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        options = context["js_data"]["creation_options"]["publicKey"]
        # A passkey that verifies its user (by PIN or fingerprint) is enough to sign in. Any other
        # passkey is only a second factor. Users may register both kinds.
        selection = {"residentKey": "preferred", "userVerification": "preferred"}
        passkey_options = {"publicKey": {**options, "authenticatorSelection": selection}}
        # allauth's method leaves out kwargs.
        return {**context, **kwargs, "passkey_options": passkey_options}

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            record_new_factor(self.request, Authenticator.Type.WEBAUTHN)
            _record_event(self.request, MfaFactor.PASSKEY, MfaEvent.ADDED)
        return response


class _SetUpAppView(ActivateTOTPView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            record_new_factor(self.request, Authenticator.Type.TOTP)
            _record_event(self.request, MfaFactor.APP, MfaEvent.ADDED)
        return response


class _RemovePasskeyView(views.RemoveWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            _record_event(self.request, MfaFactor.PASSKEY, MfaEvent.REMOVED)
        return response


class _RemoveAppView(DeactivateTOTPView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            _record_event(self.request, MfaFactor.APP, MfaEvent.REMOVED)
        return response


class _GenerateRecoveryCodesView(GenerateRecoveryCodesView):  # type: ignore[misc]  # no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            _record_event(self.request, MfaFactor.RECOVERY_CODES, MfaEvent.RENEWED)
        return response


class _PasswordStepUpView(_GuessLimitMixin, ReauthenticateView):  # type: ignore[misc]  # no types
    secret = Secret.STEP_UP_PASSWORD
    field = "password"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().post(request, *args, **kwargs)
        except TooManyHashes:
            if self.attempt is not None:
                forgive_attempt(self.attempt)
            response = self.render_refusal(gettext(BUSY), HTTPStatus.SERVICE_UNAVAILABLE)
            response["Retry-After"] = str(_RETRY_AFTER_BUSY_S)
            return response


class _CodeStepUpView(_GuessLimitMixin, ReauthenticateByCodeView):  # type: ignore[misc]  # no types
    secret = Secret.CODE
    field = "code"


class _PasskeyStepUpView(views.ReauthenticateWebAuthnView):  # type: ignore[misc]  # no types
    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the errors on this page. allauth's view would redirect to the sign-in page."""
        response: HttpResponse = self.render_to_response(self.get_context_data(form=form))
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        # allauth's method leaves out kwargs.
        return {**context, **kwargs, "passkey_options": context["js_data"]["request_options"]}


def _record_event(request: HttpRequest, factor: MfaFactor, event: MfaEvent) -> None:
    record_mfa_change(
        user_id=UserId(str(request.user.pk)),
        change=MfaChange(factor, event),
        address=client_address(request),
        now=timezone.now(),
    )


authenticate = _SecondStepView.as_view()
list_factors = _FactorListView.as_view()
set_up_app = _SetUpAppView.as_view()
add_passkey = _AddPasskeyView.as_view()
confirm_by_password = _PasswordStepUpView.as_view()
confirm_by_code = _CodeStepUpView.as_view()
confirm_by_passkey = _PasskeyStepUpView.as_view()
rename_passkey = views.EditWebAuthnView.as_view(success_url=_FACTOR_LIST_URL)
remove_passkey = _RemovePasskeyView.as_view(success_url=_FACTOR_LIST_URL)
remove_app = _RemoveAppView.as_view()
generate_recovery_codes = _GenerateRecoveryCodesView.as_view()
