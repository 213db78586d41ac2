"""URLs of the onboarding pages."""

from django.urls import URLPattern, path

from console.views.onboarding import detail

urlpatterns: list[URLPattern] = [
    path("onboarding", detail.start, name="start"),
    path("onboarding/dismiss", detail.dismiss, name="start-dismiss"),
    path("onboarding/restore", detail.restore, name="start-restore"),
]
