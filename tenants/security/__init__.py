"""Authorization, audit log and encryption. All domains that write stand on them."""
