"""URLs of the onboarding pages."""

from django.urls import URLPattern, path

from console.views.onboarding import detail

urlpatterns: list[URLPattern] = [
    path("onboarding", detail.show_steps, name="start"),
    path("onboarding/dismiss", detail.dismiss_card, name="start-dismiss"),
    path("onboarding/restore", detail.restore_card, name="start-restore"),
]
