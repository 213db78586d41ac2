"""URLs of the sign-in from an editor."""

from django.urls import URLPattern, path

from console.views.device_sign_in import detail, oauth

urlpatterns: list[URLPattern] = [
    path("device", detail.device, name="device"),
    path("oauth/device_authorization", oauth.device_authorization, name="device-authorization"),
    path("oauth/token", oauth.token, name="device-token"),
]
