"""What happened, said once on the next page, with the way back where there is one."""

from django.contrib import messages
from django.http import HttpRequest


def toast(request: HttpRequest, text: str, *, undo_url: str = "") -> None:
    """`undo_url` is posted to by the toast's button."""
    messages.success(request, text, extra_tags=undo_url)
