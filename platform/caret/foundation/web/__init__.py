"""Generic components for ASGI servers."""
