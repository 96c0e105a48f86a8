"""The one exception for bad input: the command line prints its sentence and ends with exit code 2."""


class InputError(ValueError):
    """Something that a person gave (a name, a number, a move, a position, a file) is not acceptable.

    The message is one sentence that names the argument or file, its value and what is accepted.
    """
