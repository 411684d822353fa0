"""What happened, line by line: the same seed gives the same bytes."""

_LONGEST = 90


class Trace:
    """Events with their time, kept as values and written only when somebody wants to read them."""

    def __init__(self, seconds, *, home):
        """`home`: a path of this machine, which is written as `~` so that traces of two runs are equal."""
        self._seconds, self._home = seconds, str(home)
        self._events = []

    def note(self, what, **fields):
        self._events.append((self._seconds(), what, fields))

    def lines(self):
        """Yield one line an event: seconds, what, and its fields."""
        for seconds, what, fields in self._events:
            told = " ".join(f"{name}={self._short(value)}" for name, value in fields.items())
            yield f"{seconds:11.3f}  {what:<24} {told}".rstrip()

    def text(self):
        return "\n".join(self.lines()) + "\n"

    def _short(self, value):
        if isinstance(value, float):
            return f"{value:g}"
        text = value if isinstance(value, str) else repr(value)
        text = text.replace("\n", "\\n").replace(self._home, "~")
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
