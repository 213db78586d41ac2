"""The addresses of django-allauth's pages, by the names that it knows them by."""

from allauth.account.views import reauthenticate
from allauth.mfa.base.views import authenticate, index
from allauth.mfa.base.views import reauthenticate as reauthenticate_by_code
from allauth.mfa.recovery_codes.views import (
    download_recovery_codes,
    generate_recovery_codes,
    view_recovery_codes,
)
from allauth.mfa.totp.views import deactivate_totp
from allauth.usersessions.views import list_usersessions
from django.urls import path

from console.sign_in.identity_provider import callback
from console.sign_in.second_factor import ActivateApp
from console.sign_in.session import begun_by_password
from console.views import sign_in

urlpatterns = [
    path("sign-in", sign_in.sign_in, name="account_login"),
    path("sign-out", sign_in.sign_out, name="account_logout"),
    path("sign-in/code", authenticate, name="mfa_authenticate"),
    path("sign-in/provider/<provider_id>", callback, name="openid_connect_callback"),
    path("account/confirm", begun_by_password(reauthenticate), name="account_reauthenticate"),
    path(
        "account/confirm/code", begun_by_password(reauthenticate_by_code), name="mfa_reauthenticate"
    ),
    path("account/second-factor", begun_by_password(index), name="mfa_index"),
    path(
        "account/second-factor/app",
        begun_by_password(ActivateApp.as_view()),
        name="mfa_activate_totp",
    ),
    path(
        "account/second-factor/app/remove",
        begun_by_password(deactivate_totp),
        name="mfa_deactivate_totp",
    ),
    path(
        "account/recovery-codes",
        begun_by_password(view_recovery_codes),
        name="mfa_view_recovery_codes",
    ),
    path(
        "account/recovery-codes/new",
        begun_by_password(generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/recovery-codes/file",
        begun_by_password(download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("account/sessions", list_usersessions, name="usersessions_list"),
]
