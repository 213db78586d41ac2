"""URLs of the onboarding pages."""

from django.urls import URLPattern, path

from console.views.onboarding import detail

urlpatterns: list[URLPattern] = [
    path("onboarding", detail.start, name="start"),
    path("onboarding/dismiss", detail.dismiss, name="start-put-away"),
    path("onboarding/restore", detail.bring_back, name="start-bring-back"),
]
