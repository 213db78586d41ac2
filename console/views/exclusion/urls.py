"""Addresses of content exclusion."""

from django.urls import URLPattern, path

from console.views.exclusion import denials, pages

urlpatterns: list[URLPattern] = [
    path("exclusion", pages.exclusion, name="exclusion"),
    path("exclusion/denials", denials.denials, name="exclusion-denials"),
]
