"""Plans and their price versions, and which tenant has which."""
