"""URLs of the audit log's pages."""

from django.urls import URLPattern, path

from console.views.audit import list as list_page
from console.views.audit import verify

urlpatterns: list[URLPattern] = [
    path("audit", list_page.entries, name="audit"),
    path("audit/verify", verify.check, name="audit-check"),
]
