"""The URL of the overview."""

from django.urls import URLPattern, path

from console.views.overview.detail import overview

urlpatterns: list[URLPattern] = [
    path("", overview, name="overview"),
]
