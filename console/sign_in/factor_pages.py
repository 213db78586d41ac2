"""The pages on which somebody sees to his second factors and passkeys: django-allauth's views, with
our forms and rules."""

from typing import Any, Final

from allauth.account.views import ReauthenticateView
from allauth.mfa.base.views import AuthenticateView, IndexView
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
from console.member import client_address
from console.password_checks import BUSY, Busy
from console.sign_in.second_factor import note_new_factor
from tenants.identity.factors import Change, Event, Factor, note_change

_LIST: Final = reverse_lazy("mfa_index")


class _Index(IndexView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        passkeys = context["authenticators"].get("webauthn", [])
        return {
            **context,
            "passkeys": sorted(passkeys, key=lambda passkey: passkey.instance.created_at),
        }


class _Ask(AuthenticateView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        owned = Authenticator.objects.filter(user=self.stage.login.user)
        types = set(owned.values_list("type", flat=True))
        return {
            **context,
            "has_app": Authenticator.Type.TOTP in types,
            "has_passkey": Authenticator.Type.WEBAUTHN in types,
        }


class _AddPasskey(views.AddWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        options = context["js_data"]["creation_options"]["publicKey"]
        # A key that can know its user signs in alone; one that cannot is a second factor.
        selection = {"residentKey": "preferred", "userVerification": "preferred"}
        question = {"publicKey": {**options, "authenticatorSelection": selection}}
        return {**context, **kwargs, "question": question}

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            note_new_factor(self.request, Authenticator.Type.WEBAUTHN)
            _note(self.request, Factor.PASSKEY, Event.ADDED)
        return response


class _SetUpApp(ActivateTOTPView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            note_new_factor(self.request, Authenticator.Type.TOTP)
            _note(self.request, Factor.APP, Event.ADDED)
        return response


class _RemovePasskey(views.RemoveWebAuthnView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            _note(self.request, Factor.PASSKEY, Event.REMOVED)
        return response


class _RemoveApp(DeactivateTOTPView):  # type: ignore[misc]  # allauth has no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            _note(self.request, Factor.APP, Event.REMOVED)
        return response


class _MakeRecoveryCodes(GenerateRecoveryCodesView):  # type: ignore[misc]  # no types
    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            _note(self.request, Factor.RECOVERY_CODES, Event.RENEWED)
        return response


class _ConfirmByPassword(ReauthenticateView):  # type: ignore[misc]  # allauth has no types
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            response: HttpResponse = super().post(request, *args, **kwargs)
        except Busy:
            form = self.get_form_class()(user=request.user)  # none of the password in it
            context = self.get_context_data(form=form, busy=gettext(BUSY))
            response = self.render_to_response(context, status=503)
            response["Retry-After"] = "5"
        return response


class _ConfirmByPasskey(views.ReauthenticateWebAuthnView):  # type: ignore[misc]  # no types
    def form_invalid(self, form: Any) -> HttpResponse:
        response: HttpResponse = self.render_to_response(self.get_context_data(form=form))
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return {**context, **kwargs, "question": context["js_data"]["request_options"]}


def _note(request: HttpRequest, factor: Factor, event: Event) -> None:
    note_change(
        user_id=UserId(str(request.user.pk)),
        change=Change(factor, event),
        address=client_address(request),
        now=timezone.now(),
    )


ask = _Ask.as_view()
index = _Index.as_view()
set_up_app = _SetUpApp.as_view()
add_passkey = _AddPasskey.as_view()
confirm_by_password = _ConfirmByPassword.as_view()
confirm_by_passkey = _ConfirmByPasskey.as_view()
rename_passkey = views.EditWebAuthnView.as_view(success_url=_LIST)
remove_passkey = _RemovePasskey.as_view(success_url=_LIST)
remove_app = _RemoveApp.as_view()
make_recovery_codes = _MakeRecoveryCodes.as_view()
