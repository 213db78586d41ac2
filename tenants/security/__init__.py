"""Authorization, audit log and encryption: the base of all domains that write."""
