"""URLs of the onboarding pages."""

from django.urls import URLPattern, path

from console.views.onboarding import detail

urlpatterns: list[URLPattern] = [
    path("start", detail.start, name="start"),
    path("start/put-away", detail.dismiss, name="start-put-away"),
    path("start/bring-back", detail.bring_back, name="start-bring-back"),
]
