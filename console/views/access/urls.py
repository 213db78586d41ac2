"""Addresses of sign-in's settings."""

from django.urls import URLPattern, path

from console.views.access import domains, provider, rules, scim

urlpatterns: list[URLPattern] = [
    path("access", rules.access, name="access"),
    path("access/second-factor/required", rules.require_factor, name="access-require-factor"),
    path("access/second-factor/optional", rules.free_factor, name="access-free-factor"),
    path("access/groups/<uuid:group_id>/role", rules.group_role, name="access-group-role"),
    path("access/domains", domains.claim, name="access-claim"),
    path("access/domains/<uuid:domain_id>/verify", domains.verify, name="access-verify"),
    path("access/domains/<uuid:domain_id>/give-up", domains.give_up, name="access-give-up"),
    path("access/provider/openid", provider.open_id, name="access-openid"),
    path("access/provider/saml", provider.saml, name="access-saml"),
    path("access/provider/remove", provider.remove, name="access-remove-provider"),
    path("access/scim", scim.create, name="access-scim"),
    path("access/scim/<uuid:token_id>/revoke", scim.revoke, name="access-revoke-token"),
]
