"""URLs of content exclusion."""

from django.urls import URLPattern, path

from console.views.content_exclusion import denials, edit

urlpatterns: list[URLPattern] = [
    path("exclusion", edit.exclusion, name="exclusion"),
    path("exclusion/denials", denials.denials, name="exclusion-denials"),
]
