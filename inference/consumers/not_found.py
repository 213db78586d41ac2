"""The response for unknown paths."""

from inference.consumers.http import HttpConsumer
from inference.consumers.openai_schemas import error_body
from inference.errors import BadRequest, CompletionError


class NotFoundConsumer(HttpConsumer):
    def authorize(self) -> None:
        raise BadRequest("not_found", "This path does not exist.", http_status=404)

    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)
