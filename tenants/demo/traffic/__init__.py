"""Generated requests and outcomes of the demo tenants."""
