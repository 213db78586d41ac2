"""Retrieval in the gateway: snippets that are already known, and queries in the background.

snippet_cache.py         recent results
send_queue.py            bounded queue of files and queries
background_snippets.py   implements the port: reads the cache, fills the queue
redis_client.py          sends the queue to Redis and receives results
redaction.py             removes secrets before text leaves the gateway
retrieval.py             composes these parts
"""
