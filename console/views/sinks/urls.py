"""Addresses of the sinks' pages."""

from django.urls import URLPattern, path

from console.views.sinks import new, sink, sinks

urlpatterns: list[URLPattern] = [
    path("sinks", sinks.sinks, name="sinks"),
    path("sinks/new", new.new, name="sinks-new"),
    path("sinks/<uuid:sink_id>", sink.sink, name="sinks-sink"),
    path("sinks/<uuid:sink_id>/test", sink.test, name="sinks-test"),
    path("sinks/<uuid:sink_id>/replay", sink.replay, name="sinks-replay"),
    path("sinks/<uuid:sink_id>/delete", sink.delete, name="sinks-delete"),
]
