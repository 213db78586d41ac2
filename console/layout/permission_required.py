"""A page for who may: asked before anything else, confirming who is there included.

@for_members
@allowed(Permission.WRITE_AUDIT_SINKS)
@confirmed
def delete(request, member, sink_id): ...
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.http import HttpRequest, HttpResponse

from console.sign_in.current_member import CurrentMember
from tenants.base.permissions import Permission

P = ParamSpec("P")
_View = Callable[Concatenate[HttpRequest, CurrentMember, P], HttpResponse]


def permission_required(permission: Permission) -> Callable[[_View[P]], _View[P]]:
    """For views within `for_members`, which answers what is refused and what is not there."""

    def guard(view: _View[P]) -> _View[P]:
        @wraps(view)
        def guarded(
            request: HttpRequest, member: CurrentMember, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponse:
            member.actor.require(permission)
            return view(request, member, *args, **kwargs)

        return cast(_View[P], guarded)

    return guard
