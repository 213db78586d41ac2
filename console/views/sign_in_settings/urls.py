"""URLs of the sign-in settings."""

from django.urls import URLPattern, path

from console.views.sign_in_settings import detail, domains, identity_provider, scim_tokens

urlpatterns: list[URLPattern] = [
    path("sign-in-settings", detail.show_settings, name="access"),
    path(
        "sign-in-settings/second-factor/required",
        detail.make_factor_required,
        name="access-require-factor",
    ),
    path(
        "sign-in-settings/second-factor/optional",
        detail.make_factor_optional,
        name="access-make-factor-optional",
    ),
    path(
        "sign-in-settings/groups/<uuid:group_id>/role",
        detail.change_group_role,
        name="access-group-role",
    ),
    path("sign-in-settings/domains", domains.claim, name="access-claim"),
    path("sign-in-settings/domains/<uuid:domain_id>/verify", domains.verify, name="access-verify"),
    path(
        "sign-in-settings/domains/<uuid:domain_id>/release", domains.release, name="access-release"
    ),
    path(
        "sign-in-settings/provider/openid", identity_provider.set_up_open_id, name="access-openid"
    ),
    path("sign-in-settings/provider/saml", identity_provider.set_up_saml, name="access-saml"),
    path(
        "sign-in-settings/provider/remove", identity_provider.remove, name="access-remove-provider"
    ),
    path("sign-in-settings/scim", scim_tokens.create, name="access-scim"),
    path(
        "sign-in-settings/scim/<uuid:token_id>/revoke",
        scim_tokens.revoke,
        name="access-revoke-token",
    ),
]
