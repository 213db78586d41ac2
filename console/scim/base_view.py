"""The common parts of all SCIM endpoints: bearer tokens, errors and entity tags."""

import json
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from pydantic import ValidationError
from scim2_models import (
    Context,
    Error,
    ForbiddenException,
    InvalidSyntaxException,
    InvalidValueException,
    NotFoundException,
    PayloadTooLargeException,
    PreconditionFailedException,
    Resource,
    ResponseParameters,
    SCIMException,
    UnauthorizedException,
    UniquenessException,
)

from caret.foundation.concurrency.bulkhead import Bulkhead, BulkheadFull
from caret.foundation.web.credential_notes import note_credential
from console.api.problems import ProblemRaised
from console.api.rate_limit import count_request
from console.sign_in.current_member import client_address
from tenants.base.errors import Conflict, DomainError, Forbidden, InvalidValue, NotFound
from tenants.identity.scim.resources import POLICY
from tenants.identity.scim.tokens import authenticate_scim_token
from tenants.security.authorization.actor import Actor

# The console serves 64 requests at once (caret.asgi). SCIM writes of one tenant wait for each
# other, and some SCIM requests compute for seconds. Therefore, one tenant may have 4 SCIM requests
# in flight, and all tenants together 32.
REQUEST_SLOTS: Final = Bulkhead(max_per_holder=4, max_total=32)
_RETRY_AFTER_BUSY_S: Final = 5  # Retry-After header if all slots are occupied
MEDIA_TYPE: Final = "application/scim+json"
View = Callable[..., HttpResponse]
# SCIM operations raise no other kinds of DomainError.
_SCIM_ERRORS: Final[dict[type[DomainError], type[SCIMException]]] = {
    Forbidden: ForbiddenException,
    NotFound: NotFoundException,
    InvalidValue: InvalidValueException,
    Conflict: UniquenessException,  # the SCIM error with status 409
}


def scim_endpoint(**methods: View) -> View:
    """Return the Django view of a URL, which authenticates and turns errors into SCIM errors.

    `methods` gives a view for each allowed HTTP method, in lower case. These views get the request,
    the actor and the arguments from the URL.
    """

    @csrf_exempt  # another site's page cannot make a browser send a bearer token
    def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        try:
            return _dispatch(request, methods, kwargs)
        except BulkheadFull:
            return _error_response(
                Error(status=429, detail="Too many requests at one time. Try again.")
            )
        except SCIMException as error:
            return _error_response(error.to_error())
        except DomainError as error:
            scim_error = _SCIM_ERRORS[type(error)](detail=_error_detail(error))
            return _error_response(scim_error.to_error())
        except ValidationError as error:
            return _error_response(Error.from_validation_error(error.errors()[0]))
        except RequestDataTooBig:
            return _error_response(
                PayloadTooLargeException(detail="The body must have at most 1 MiB.").to_error()
            )
        except ProblemRaised as error:
            problem = error.problem
            return _error_response(
                Error(status=problem.status, detail=problem.detail), problem.retry_after_s
            )

    return guarded


def _dispatch(
    request: HttpRequest, methods: dict[str, View], url_arguments: dict[str, Any]
) -> HttpResponse:
    """Authenticate the request and call the view of its HTTP method.

    Raises BulkheadFull, ProblemRaised, and the errors of views and operations.
    """
    with POLICY:  # the tolerance with which the models of scim2_models parse the request
        actor = _authenticate(request)
        view = methods.get((request.method or "").lower())
        if view is None:
            return _error_response(Error(status=405, detail="This method is not allowed here."))
        with REQUEST_SLOTS.acquire(actor.tenant_id):
            return view(request, actor, **url_arguments)


def body_of(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON object of the body. Raises InvalidSyntaxException, RequestDataTooBig."""
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise InvalidSyntaxException(detail="The body is not JSON.") from error
    if not isinstance(body, dict):
        raise InvalidSyntaxException(detail="The body is not a JSON object.")
    return body


def resource_response(
    resource: Resource[Any],
    parameters: "ResponseParameters[Any] | None" = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Return one resource. `parameters` choose its attributes; None: all.

    The ETag header is the resource's version. Status 201 also sets the Location header.
    """
    document = resource.model_dump(
        scim_ctx=Context.RESOURCE_QUERY_RESPONSE,
        response_parameters=parameters,
    )
    response = json_response(document, status=status)
    if resource.meta is not None and resource.meta.version:
        response["ETag"] = resource.meta.version
        if status == 201 and resource.meta.location:
            response["Location"] = resource.meta.location
    return response


def json_response(document: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return HttpResponse(json.dumps(document), status=status, content_type=MEDIA_TYPE)


def precondition_of(request: HttpRequest) -> Callable[[Resource[Any]], None]:
    """Return a check of a resource's version against `If-Match`.

    The check raises PreconditionFailedException. Without the header, every version passes.
    """
    if_match = request.headers.get("If-Match")

    def check(current: Resource[Any]) -> None:
        version = current.meta.version if current.meta else None
        tags = [tag.strip() for tag in (if_match or "*").split(",")]
        if "*" not in tags and version not in tags:
            raise PreconditionFailedException

    return check


def is_not_modified(request: HttpRequest, resource: Resource[Any]) -> bool:
    """Return whether `If-None-Match` contains the resource's version: the client has it already."""
    tags = [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]
    return resource.meta is not None and resource.meta.version in tags


def _authenticate(request: HttpRequest) -> Actor:
    """Return the actor of the bearer token, and count the request for the tenant's rate limit.

    Raises UnauthorizedException, and ProblemRaised if the tenant sent too many requests.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    actor = None
    if scheme.lower() == "bearer":
        actor = authenticate_scim_token(
            token.strip(),
            address=client_address(request),
            request_id=str(uuid4()),  # the same in all audit entries of the request
            now=timezone.now(),
        )
    if actor is None:
        raise UnauthorizedException
    note_credential(request)  # the server marks the connection as authenticated
    count_request(f"scim:{actor.tenant_id}")
    return actor


def _error_detail(error: DomainError) -> str:
    return f"{error.field}: {error.message}" if isinstance(error, InvalidValue) else error.message


def _error_response(error: Error, retry_after_s: int | None = None) -> HttpResponse:
    """Return the error.

    `retry_after_s` is the Retry-After header for status 429; None: the time for which a client
    should wait if all request slots are occupied.
    """
    response = json_response(error.model_dump(), status=error.status or 500)
    if error.status == 429:
        response["Retry-After"] = str(retry_after_s or _RETRY_AFTER_BUSY_S)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="scim"'
    return response
