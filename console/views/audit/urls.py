"""URLs of the audit log's pages."""

from django.urls import URLPattern, path

from console.views.audit import list as list_page

urlpatterns: list[URLPattern] = [
    path("audit", list_page.entries, name="audit"),
    path("audit/verify", list_page.check, name="audit-check"),
]
