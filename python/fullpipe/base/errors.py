"""What can go wrong, by whose fault. The command line maps these to exit statuses."""

from __future__ import annotations


class UserError(Exception):
    """Bad input: a file, a key, a value or an argument. The message is one line that says what
    was wrong, where, and what would be right. Exit status 2."""


class AlgorithmError(UserError):
    """The code of an algorithm from a file failed or had to be stopped: one run, of which a command
    with several makes a failure and goes on."""


class RunError(Exception):
    """A run failed although its input was good (an engine broke or is missing something).
    Exit status 1."""
