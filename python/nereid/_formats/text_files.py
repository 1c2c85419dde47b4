"""Files that the programs of this folder read and write: sizes are limited, and what is written is whole or
is not there."""

import pathlib


class NotWritten(Exception):
    """Why a file could not be written; the message is for the user."""


def limited_text(path, most, wrong):
    """The text of a file of at most `most` bytes; `wrong` is raised where it is larger or no text."""
    if path.stat().st_size > most:
        raise wrong(f"expected at most {most >> 20} MiB")
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise wrong(str(error)) from None


def write_text(path, text):
    path = pathlib.Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        if path.is_file():
            path.unlink()
        raise NotWritten(f"{path}: {error.strerror}") from None
