"""The REST API, built with django-ninja, for service keys and for members' console sessions.

Each module has one router. The schemas of requests and responses are next to the endpoints that use
them. Operations and queries enforce the permissions; endpoints only document them in OpenAPI as
`x-permissions`.
"""
