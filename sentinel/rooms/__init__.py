"""The Room port over the wire (spec 01)."""
