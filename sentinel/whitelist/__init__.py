"""The one whitelist: what may be done, with which words, on which paths. Nobody re-implements it (spec 03 section 1)."""
