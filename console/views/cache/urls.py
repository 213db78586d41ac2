"""URLs of the prefix cache's pages."""

from django.urls import URLPattern, path

from console.views.cache.detail import cache, purge

urlpatterns: list[URLPattern] = [
    path("cache", cache, name="cache"),
    path("cache/purge", purge, name="cache-purge"),
]
