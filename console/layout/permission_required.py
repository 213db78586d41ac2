"""Pages that require a permission.

The permission is checked before the step-up, in which the user authenticates again:

@member_required
@permission_required(Permission.WRITE_AUDIT_SINKS)
@step_up_required
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


def permission_required(*permissions: Permission) -> Callable[[_View[P]], _View[P]]:
    """Guard a view: the member needs one of the permissions.

    Without any of them, the guarded view raises Forbidden, which names the first permission.
    `member_required`, which turns the error into an error page, must stand above this decorator.
    """

    def guard(view: _View[P]) -> _View[P]:
        @wraps(view)
        def guarded(
            request: HttpRequest, member: CurrentMember, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponse:
            if not any(member.actor.has_permission(permission) for permission in permissions):
                member.actor.require(permissions[0])
            return view(request, member, *args, **kwargs)

        return cast(_View[P], guarded)

    return guard
