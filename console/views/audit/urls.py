"""Addresses of the audit trail's pages."""

from django.urls import URLPattern, path

from console.views.audit import check, entries

urlpatterns: list[URLPattern] = [
    path("audit", entries.entries, name="audit"),
    path("audit/check", check.check, name="audit-check"),
]
