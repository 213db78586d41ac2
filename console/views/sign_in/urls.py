"""URLs of the pages before sign-in, of sign-out, and of the choice of a tenant."""

from django.urls import path

from console.views.sign_in import accept_invitation, passkey, password_reset, sign_in, sign_up

urlpatterns = [
    path("sign-in", sign_in.sign_in, name="sign-in"),
    path("sign-in/passkey", passkey.sign_in_by_passkey, name="sign-in-by-passkey"),
    path("forgot-password", password_reset.forgot_password, name="forgot-password"),
    path("forgot-password/sent", password_reset.link_requested, name="reset-requested"),
    path("reset-password/<uuid:user_id>/<token>", password_reset.open_link, name="reset-link"),
    path("reset-password", password_reset.new_password, name="reset-password"),
    path("sign-up", sign_up.sign_up, name="sign-up"),
    path("sign-up/sent", sign_up.link_sent, name="sign-up-sent"),
    path("sign-up/confirm", sign_up.confirm, name="sign-up-confirm"),
    path("sign-up/<token>", sign_up.open_link, name="sign-up-link"),
    path("sign-out", sign_in.sign_out, name="sign-out"),
    path("tenant", sign_in.switch_tenant, name="switch-tenant"),
    path("invitation/<token>", accept_invitation.open_link, name="invitation-link"),
    path("invitation", accept_invitation.show_invitation, name="invitation"),
]
