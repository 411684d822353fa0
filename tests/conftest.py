"""What holds for every test."""

from hypothesis import HealthCheck, settings

# No test asserts a time: on a loaded machine a slow example is no fault. The limit per test is pytest-timeout's.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
