"""URLs of django-allauth's pages and of our replacements, with django-allauth's URL names."""

from allauth.mfa.recovery_codes.views import download_recovery_codes, view_recovery_codes
from allauth.usersessions.views import list_usersessions
from django.urls import URLPattern, path

from console.sign_in.mfa import views as mfa_views
from console.sign_in.sessions.session import password_session_required
from console.sign_in.sso import saml
from console.sign_in.sso.oidc import callback
from console.views.sign_in import sign_in

# URL path below account/ -> view and URL name. The pages change credentials of the account. All
# tenants of the user accept these credentials, so a session of one tenant's identity provider must
# not open the pages.
_CREDENTIAL_PAGES = {
    "confirm": (mfa_views.confirm_by_password, "account_reauthenticate"),
    "confirm/code": (mfa_views.confirm_by_code, "mfa_reauthenticate"),
    "confirm/passkey": (mfa_views.confirm_by_passkey, "mfa_reauthenticate_webauthn"),
    "second-factor": (mfa_views.list_factors, "mfa_index"),
    "second-factor/app": (mfa_views.set_up_app, "mfa_activate_totp"),
    "second-factor/app/remove": (mfa_views.remove_app, "mfa_deactivate_totp"),
    "passkeys/new": (mfa_views.add_passkey, "mfa_add_webauthn"),
    "passkeys/<int:pk>": (mfa_views.rename_passkey, "mfa_edit_webauthn"),
    "passkeys/<int:pk>/remove": (mfa_views.remove_passkey, "mfa_remove_webauthn"),
    "recovery-codes": (view_recovery_codes, "mfa_view_recovery_codes"),
    "recovery-codes/new": (mfa_views.generate_recovery_codes, "mfa_generate_recovery_codes"),
    "recovery-codes/file": (download_recovery_codes, "mfa_download_recovery_codes"),
}

urlpatterns: list[URLPattern] = [
    path("sign-in", sign_in.sign_in, name="account_login"),
    path("sign-out", sign_in.sign_out, name="account_logout"),
    path("sign-in/code", mfa_views.authenticate, name="mfa_authenticate"),
    path("sign-in/provider/<provider_id>", callback, name="openid_connect_callback"),
    path("sign-in/saml/<uuid:tenant_id>", saml.consume_response, name="saml_consume"),
    path("sign-in/saml/<uuid:tenant_id>/done", saml.finish_login, name="saml_done"),
    path("sign-in/saml/<uuid:tenant_id>/metadata", saml.metadata, name="saml_metadata"),
    path("account/sessions", list_usersessions, name="usersessions_list"),
    *(
        path(f"account/{url_path}", password_session_required(view), name=name)
        for url_path, (view, name) in _CREDENTIAL_PAGES.items()
    ),
]
