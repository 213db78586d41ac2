"""Fault injection on separate hosts (network namespaces), with a check of requests against
bills."""
