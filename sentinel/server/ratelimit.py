"""Token buckets: how often a key (an account, an address, a name) may do a thing. Pure: the clock is an argument."""

from dataclasses import dataclass, field

_SWEEP_ABOVE = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


@dataclass(slots=True)
class Limiter:
    """One bucket a key: `burst` at once, then `per_s`. Full buckets are forgotten, so strangers cost no memory."""

    per_s: float
    burst: float
    _buckets: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])

    def take(self, key: str, *, now_s: float) -> float:
        """Take one token. Return 0 if there was one, else the seconds until there is (nothing was taken)."""
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) > _SWEEP_ABOVE:
                self._forget_full(now_s)
            bucket = self._buckets[key] = _Bucket(self.burst, now_s)
        bucket.tokens = min(self.burst, bucket.tokens + max(0.0, now_s - bucket.at_s) * self.per_s)
        bucket.at_s = now_s
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / self.per_s
        bucket.tokens -= 1.0
        return 0.0

    def _forget_full(self, now_s: float) -> None:
        self._buckets = {
            key: one
            for key, one in self._buckets.items()
            if one.tokens + (now_s - one.at_s) * self.per_s < self.burst
        }
