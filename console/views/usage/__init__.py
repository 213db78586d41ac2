"""Usage and quality in groups, the list of requests, and each request's stages."""
