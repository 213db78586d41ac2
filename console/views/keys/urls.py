"""URLs of the pages of the tenant's API keys."""

from django.urls import URLPattern, path

from console.views.keys import detail, key_policy, rotate, try_key
from console.views.keys import list as list_page

urlpatterns: list[URLPattern] = [
    path("keys", list_page.keys, name="keys"),
    path("keys/new", list_page.new_key, name="keys-new"),
    path("keys/policy", key_policy.rules, name="keys-policy"),
    path("keys/test", try_key.try_key, name="keys-test"),
    path("keys/<lookup_id>", detail.key, name="keys-key"),
    path("keys/<lookup_id>/rotate", rotate.rotate, name="keys-rotate"),
    path("keys/<lookup_id>/revoke", detail.revoke, name="keys-revoke"),
]
