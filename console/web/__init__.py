"""The HTTP side of the console: ASGI handler, middleware, static files, metrics."""
