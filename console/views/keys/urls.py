"""Addresses of keys."""

from django.urls import URLPattern, path

from console.views.keys import key, listed, new, revoke, rotate, rules

urlpatterns: list[URLPattern] = [
    path("keys", listed.keys, name="keys"),
    path("keys/new", new.new_key, name="keys-new"),
    path("keys/rules", rules.rules, name="keys-rules"),
    path("keys/<lookup_id>", key.key, name="keys-key"),
    path("keys/<lookup_id>/rotate", rotate.rotate, name="keys-rotate"),
    path("keys/<lookup_id>/revoke", revoke.revoke, name="keys-revoke"),
]
