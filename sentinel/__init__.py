"""The framework that lets AI personas live in team chat rooms and be trusted there."""

__version__ = "0.1.0"
