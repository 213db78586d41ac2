"""The installation's gateways, pools and replicas, as the platform's operators see and steer it."""
