"""Step-up of operators: before a change that affects customers, they enter an authenticator code.

After a valid code, no other code is needed for ten minutes (session.CONFIRMED_S).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import redis
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext

from console.limits.throttling import Secret, count_attempt, forgive_attempt
from console.operator_admin import session
from console.operator_admin.site import render_operator_page
from console.sign_in.devices import build_attempt
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView, verify_operator_code

_BAD_REQUEST: Final = 400
# Makes the change that the form of the request describes. Raises DomainError.
Apply = Callable[[HttpRequest, OperatorView], None]


@dataclass(frozen=True, slots=True)
class Change:
    apply: Apply
    done: Promise  # the message after the change


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """A page with forms. Each form makes one change, after a step-up.

    The template gets `title`, `done`, `error`, `needs_code`, and the values of `context`. It also
    gets `reason` and `form_data`, the input of the operator, to fill a rejected form again.
    """

    title: Promise
    template: str
    url_name: str
    changes: Mapping[str, Change]  # by the action in the form's URL
    context: Callable[[HttpRequest], Mapping[str, Any]]

    def render(self, request: HttpRequest, error: str = "") -> HttpResponse:
        change = self.changes.get(request.GET.get("done", ""))
        context = {
            "title": self.title,
            "done": None if change is None else change.done,
            "error": error,
            "form_data": request.POST,
            "reason": request.POST.get("reason", ""),
            "needs_code": not session.is_confirmed(request),
            **self.context(request),
        }
        status = _BAD_REQUEST if error else 200
        return render_operator_page(request, self.template, context, status=status)

    def change(self, request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
        """Check the operator's role and code, make the change, and redirect to the page.

        After an error, the response is the page with the error and the input of the operator.
        """
        if (change := self.changes.get(action)) is None:
            raise Http404
        if not operator.can_change:
            raise PermissionDenied
        error = check_code(request, operator)
        if error is None:
            try:
                change.apply(request, operator)
            except DomainError as refusal:
                error = translate_error(refusal)
        if error is not None:
            return self.render(request, error)
        return redirect(reverse(f"operators:{self.url_name}") + f"?done={action}")


class SetRunning(Protocol):
    """An operation that starts or stops an experiment or an index. Raises DomainError."""

    def __call__(
        self,
        connection: redis.Redis,
        /,
        *,
        operator: OperatorView,
        name: str,
        is_running: bool,
        reason: str,
        now: datetime,
    ) -> None: ...


def build_switch(set_running: SetRunning, *, is_running: bool) -> Apply:
    """Return a function that starts or stops the experiment or index which the form names.

    The form has the fields `name` and `reason`.
    """

    def apply(request: HttpRequest, operator: OperatorView) -> None:
        set_running(
            connect_to_redis(),
            operator=operator,
            name=request.POST.get("name", ""),
            is_running=is_running,
            reason=request.POST.get("reason", ""),
            now=timezone.now(),
        )

    return apply


def check_code(request: HttpRequest, operator: OperatorView) -> str | None:
    """Check the submitted code. Return an error message; None if it is right or not needed.

    After a right code, no other code is needed for CONFIRMED_S.
    """
    if session.is_confirmed(request):
        return None
    code = request.POST.get("code", "")
    wrong_code = gettext(
        "This code is wrong, expired or already used. Enter the current code from your app."
    )
    # An empty code is no guess, so it is not counted. Some forms are first sent without a code.
    if not code.strip():
        return wrong_code
    try:
        attempt = build_attempt(request, Secret.CODE, f"operator:{operator.handle}")
        if (throttle := count_attempt(attempt)) is not None:
            return throttle.message
        if not verify_operator_code(operator_id=operator.id, code=code, now=timezone.now()):
            return wrong_code
        forgive_attempt(attempt)
    except redis.RedisError:
        return gettext("We cannot check codes right now. Try again in a few seconds.")
    session.record_confirmation(request)
    return None
