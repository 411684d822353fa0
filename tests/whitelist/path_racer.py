"""A process that makes two names change places as fast as it can, until it is killed.

Run as a program: `path_racer.py ONE OTHER`. It says `racing` after the first swap. Where the system has an atomic exchange
(Linux), that is used: no reader ever finds a name missing. Elsewhere three renames do it.
"""

import ctypes
import os
import subprocess
import sys
from contextlib import contextmanager

AT_FDCWD = -100
RENAME_EXCHANGE = 2


@contextmanager
def racer(one, other):
    """Let a process of its own swap `one` and `other` for the block."""
    child = subprocess.Popen([sys.executable, __file__, str(one), str(other)], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"racing\n"
        yield
        assert child.poll() is None, "the racer stopped before the race was over"
    finally:
        child.kill()
        child.communicate()


def _exchange(one, other):
    swap = ctypes.CDLL(None, use_errno=True).renameat2
    if swap(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


def _rename_thrice(one, other):
    beside = one + b".moving"
    os.rename(one, beside)
    os.rename(other, one)
    os.rename(beside, other)


def _main():
    one, other = (os.fsencode(name) for name in sys.argv[1:])
    if hasattr(ctypes.CDLL(None), "renameat2"):
        swap = ctypes.CDLL(None).renameat2
        _exchange(one, other)
        print("racing", flush=True)
        while True:
            swap(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
    _rename_thrice(one, other)
    print("racing", flush=True)
    while True:
        _rename_thrice(one, other)


if __name__ == "__main__":
    _main()
