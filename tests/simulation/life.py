"""One life of a simulated sentinel process: it may end between any two steps that somebody else can see.

A step is the begin or the end of a transaction, of a room call, of an executor's start. From the moment of death on nothing
that is left of the process can do anything: every step raises.
"""


class Killed(BaseException):
    """The process is no more. Not an `Exception`: no handler of the sentinel's may take it for a fault."""


class Life:
    """Counts the steps of one process."""

    def __init__(self, on_death):
        self.is_dead = False
        self.steps = 0
        self.takes_power = False
        self._dies_in = None
        self._on_death = on_death

    def arm(self, steps):
        """Die at the `steps`th step from now."""
        self._dies_in = steps

    def disarm(self):
        """Live on."""
        self._dies_in = None

    def step(self, where):
        """Note a step; raises `Killed` when it is the last one, and at every later one."""
        self.must_live()
        self.steps += 1
        if self._dies_in is not None:
            self._dies_in -= 1
            if self._dies_in <= 0:
                self.die(where)

    def die(self, where):
        """End here."""
        self.is_dead = True
        self._on_death(where)
        raise Killed

    def must_live(self):
        """Raise `Killed` in what is left of a dead process."""
        if self.is_dead:
            raise Killed
