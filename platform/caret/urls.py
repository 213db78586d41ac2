"""All URLs of the console process."""

from django.conf import settings
from django.urls import include, path

from console.operator_admin.urls import operators

urlpatterns = [
    path("api/v1/", include("console.api.urls")),
    path("scim/v2/", include("console.scim.urls")),
    path("", include("console.views.sign_in.allauth_urls")),
    path("", include("console.urls")),
]
if settings.OPERATORS_PATH is not None:  # None: this process has no pages for operators
    urlpatterns.insert(0, path(settings.OPERATORS_PATH, operators))
handler400 = "console.views.errors.bad_request"
handler403 = "console.views.errors.forbidden"
handler404 = "console.views.errors.not_found"
handler500 = "console.views.errors.failed"
