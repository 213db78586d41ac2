"""All addresses of the console's process."""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("console.api.urls")),
    path("scim/v2/", include("console.scim.urls")),
    path("", include("console.sign_in.urls")),
    path("", include("console.urls")),
]
handler400 = "console.views.errors.bad_request"
handler403 = "console.views.errors.forbidden"
handler404 = "console.views.errors.not_found"
handler500 = "console.views.errors.failed"
