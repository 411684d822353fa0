"""The fixtures of the real executors (see `real_world.py`)."""

from real_world import _adopting, _loopback_only, make_world

__all__ = ["_adopting", "_loopback_only", "make_world"]
