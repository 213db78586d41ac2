"""The local vLLM servers and the pools file that lists them."""
