"""The law book: every decision of the system as a function of values (spec 07)."""
