"""The addresses of the pages."""

from django.urls import path

from console import assets
from console.views import (
    export_file,
    health,
    invitation,
    new_key,
    overview,
    passkey,
    revoke_key,
    sign_in,
    signing_keys,
)

app_name = "console"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sign-in", sign_in.sign_in, name="sign-in"),
    path("sign-in/passkey", passkey.sign_in_by_passkey, name="sign-in-by-passkey"),
    path("sign-out", sign_in.sign_out, name="sign-out"),
    path("tenant", sign_in.switch_tenant, name="switch-tenant"),
    path("invitation/<token>", invitation.open_link, name="invitation-link"),
    path("invitation", invitation.invitation, name="invitation"),
    path("keys/new", new_key.new_key, name="new-key"),
    path("keys/<lookup_id>/revoke", revoke_key.revoke, name="revoke-key"),
    path("exports/file/<token>", export_file.export_file, name="export-file"),
    path("assets/<digest>/<name>", assets.serve, name="asset"),
    path("healthz", health.healthz, name="healthz"),
    path(".well-known/caret-signing-keys.json", signing_keys.public_keys, name="signing-keys"),
]
