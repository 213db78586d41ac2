"""URLs of the audit sinks' pages."""

from django.urls import URLPattern, path

from console.views.audit_sinks import detail
from console.views.audit_sinks import list as list_page

urlpatterns: list[URLPattern] = [
    path("audit-sinks", list_page.sinks, name="sinks"),
    path("audit-sinks/new", list_page.new, name="sinks-new"),
    path("audit-sinks/<uuid:sink_id>", detail.sink, name="sinks-sink"),
    path("audit-sinks/<uuid:sink_id>/test", detail.test, name="sinks-test"),
    path("audit-sinks/<uuid:sink_id>/replay", detail.replay, name="sinks-replay"),
    path("audit-sinks/<uuid:sink_id>/delete", detail.delete, name="sinks-delete"),
]
