"""URLs of the sign-in settings."""

from django.urls import URLPattern, path

from console.views.sign_in_settings import detail, domains, identity_provider, scim_tokens

urlpatterns: list[URLPattern] = [
    path("access", detail.access, name="access"),
    path("access/second-factor/required", detail.require_factor, name="access-require-factor"),
    path("access/second-factor/optional", detail.free_factor, name="access-free-factor"),
    path("access/groups/<uuid:group_id>/role", detail.group_role, name="access-group-role"),
    path("access/domains", domains.claim, name="access-claim"),
    path("access/domains/<uuid:domain_id>/verify", domains.verify, name="access-verify"),
    path("access/domains/<uuid:domain_id>/give-up", domains.release, name="access-give-up"),
    path("access/provider/openid", identity_provider.open_id, name="access-openid"),
    path("access/provider/saml", identity_provider.saml, name="access-saml"),
    path("access/provider/remove", identity_provider.remove, name="access-remove-provider"),
    path("access/scim", scim_tokens.create, name="access-scim"),
    path("access/scim/<uuid:token_id>/revoke", scim_tokens.revoke, name="access-revoke-token"),
]
