"""The installation's gateways, pools and replicas: status, and changes by operators."""
