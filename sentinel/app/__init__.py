"""Wiring only: builds running things from the parts (spec 07)."""
