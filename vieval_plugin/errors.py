"""The one error of this package that is meant for a user's eyes."""


class VievalError(Exception):
    """Something the user can put right; the message is one line that names the file or option and what to do."""
