"""URLs of the audit sinks' pages."""

from django.urls import URLPattern, path

from console.views.audit_sinks import create, detail
from console.views.audit_sinks import list as list_page

urlpatterns: list[URLPattern] = [
    path("sinks", list_page.sinks, name="sinks"),
    path("sinks/new", create.new, name="sinks-new"),
    path("sinks/<uuid:sink_id>", detail.sink, name="sinks-sink"),
    path("sinks/<uuid:sink_id>/test", detail.test, name="sinks-test"),
    path("sinks/<uuid:sink_id>/replay", detail.replay, name="sinks-replay"),
    path("sinks/<uuid:sink_id>/delete", detail.delete, name="sinks-delete"),
]
