"""The overview's address."""

from django.urls import URLPattern, path

from console.views.overview.page import overview

urlpatterns: list[URLPattern] = [
    path("", overview, name="overview"),
]
