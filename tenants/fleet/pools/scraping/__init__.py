"""Figures that the control plane scrapes from the gateways."""
