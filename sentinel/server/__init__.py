"""The embedded HOOP server and its page (spec 01 sections 2 and 3)."""
