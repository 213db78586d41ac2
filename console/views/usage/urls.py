"""URLs of the usage and quality pages."""

from django.urls import URLPattern, path

from console.views.usage.reports import quality, usage
from console.views.usage.requests.detail import show_request
from console.views.usage.requests.list import requests

urlpatterns: list[URLPattern] = [
    path("usage", usage, name="usage"),
    path("usage/quality", quality, name="usage-quality"),
    path("usage/requests", requests, name="usage-requests"),
    path("usage/requests/<uuid:request_id>", show_request, name="usage-request"),
]
