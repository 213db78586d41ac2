"""Plans, their price versions, and the subscriptions of tenants."""
