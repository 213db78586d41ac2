"""Addresses of first steps."""

from django.urls import URLPattern, path

from console.views.start import start

urlpatterns: list[URLPattern] = [
    path("start", start.start, name="start"),
    path("start/put-away", start.put_away, name="start-put-away"),
    path("start/bring-back", start.bring_back, name="start-bring-back"),
]
