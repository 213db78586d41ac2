"""The pages of the help. The documents are the same for every member."""

import json
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from console.layout.content_security_policy import policy_with_data_images
from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember, member_required
from console.views.help.documents import document_groups, documents_by_name

# HTTP methods for which Swagger UI shows the button "Try it out". The button sends the user's
# session, so methods that change data have no button.
_TRY_IT_OUT_METHODS: Final = ["get"]


@require_GET
@member_required
def contents(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return render_page(request, member, "console/help/list.html", {"groups": document_groups()})


@require_GET
@member_required
def document(request: HttpRequest, member: CurrentMember, name: str) -> HttpResponse:
    help_document = documents_by_name().get(name)
    if help_document is None:
        raise Http404
    context = {"document": help_document, "groups": document_groups()}
    return render_page(request, member, "console/help/detail.html", context)


@require_GET
@member_required
def rest_api(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show Swagger UI, which django-ninja contains, inside a page of the console."""
    swagger = {
        "url": reverse("api:openapi-json"),
        "layout": "BaseLayout",
        "deepLinking": True,
        "docExpansion": "none",
        "supportedSubmitMethods": _TRY_IT_OUT_METHODS,
    }
    context = {"swagger": json.dumps(swagger)}
    response = render_page(request, member, "console/help/rest_api.html", context)
    # The style sheet of Swagger UI contains images.
    response["Content-Security-Policy"] = policy_with_data_images()
    return response
