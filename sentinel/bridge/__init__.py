"""Before the turn: fetch. After it: deliver (spec 02 section 4)."""
