"""The addresses of django-allauth's pages, by the names that it knows them by."""

from allauth.account.views import reauthenticate
from allauth.mfa.base.views import authenticate, index
from allauth.mfa.base.views import reauthenticate as reauthenticate_by_code
from allauth.mfa.recovery_codes.views import (
    download_recovery_codes,
    generate_recovery_codes,
    view_recovery_codes,
)
from allauth.mfa.totp.views import activate_totp, deactivate_totp
from allauth.usersessions.views import list_usersessions
from django.urls import path

from console.sign_in.identity_provider import callback
from console.views import sign_in

urlpatterns = [
    path("sign-in", sign_in.sign_in, name="account_login"),
    path("sign-out", sign_in.sign_out, name="account_logout"),
    path("sign-in/code", authenticate, name="mfa_authenticate"),
    path("sign-in/provider/<provider_id>", callback, name="openid_connect_callback"),
    path("account/confirm", reauthenticate, name="account_reauthenticate"),
    path("account/confirm/code", reauthenticate_by_code, name="mfa_reauthenticate"),
    path("account/second-factor", index, name="mfa_index"),
    path("account/second-factor/app", activate_totp, name="mfa_activate_totp"),
    path("account/second-factor/app/remove", deactivate_totp, name="mfa_deactivate_totp"),
    path("account/recovery-codes", view_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/recovery-codes/new", generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path(
        "account/recovery-codes/file", download_recovery_codes, name="mfa_download_recovery_codes"
    ),
    path("account/sessions", list_usersessions, name="usersessions_list"),
]
