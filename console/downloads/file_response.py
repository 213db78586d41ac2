"""Downloads of files that are complete in memory."""

from django.http import HttpResponse


def file_response(body: str | bytes, *, name: str, content_type: str) -> HttpResponse:
    """Return the body as an attachment. `name` is the file name with its extension."""
    response = HttpResponse(body, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
