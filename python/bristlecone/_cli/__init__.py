"""The command line: ``fit``, ``predict``, ``show``, ``export``, ``verify`` and ``datasets``.

Exit status: 0 after success, 1 if a check of ``verify`` fails, 2 after an error (one line on
standard error, no file written), 130 after Ctrl-C; a ``fit`` that Ctrl-C stopped still reports the
best tree it had found.

Each command is a module with a function ``run``. Little is imported here, so that ``--version`` and
``--help`` answer at once.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from bristlecone._cli.arguments import parse
from bristlecone._cli.kinds import OF_TUNING, SENSITIVE, WEIGHT

__all__ = ["main"]

_ERROR, _INTERRUPTED = 2, 130

# Parameters whose options may have other names.
_OPTIONS = OF_TUNING | {role.argument: role.name for role in (SENSITIVE, WEIGHT)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; those of the process by default.

    Returns
    -------
    int
        Exit status.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of columns and categories may not exist in the terminal's encoding.
            stream.reconfigure(errors="backslashreplace")
    options: Collection[str] = ()
    try:
        arguments = parse(argv)
        if arguments is None:
            return 0
        options = arguments.parser.options
        with _interrupt_ends_the_process():
            command = import_module(f"bristlecone._cli.{arguments.command}")
        with _warnings_as_lines(options):
            status: int = command.run(arguments)
        print(end="", flush=True)  # does nothing if standard output is closed
        return status
    except BrokenPipeError:
        # The reader has closed the pipe; without this, Python prints another error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")
    except (ValueError, TypeError, ImportError, MemoryError, RuntimeError) as error:
        text = str(error) if _is_ours(error) else _with_options(str(error), options)
        return _fail(text or type(error).__name__)


def _fail(message: str) -> int:
    # Messages about the file name its lines, those about the rows read from it the rows.
    if re.search(r"\brow \d", message):
        message += " (row 0 is the first row of the data)"
    print(f"bristlecone: error: {' '.join(message.split())}", file=sys.stderr)
    return _ERROR


def _with_options(message: str, options: Collection[str]) -> str:
    """A message of Python, with options in place of parameters, such as ``max_depth=2``.

    Words in quotes are names and values of the data.
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name == "y":
            name = "event" if "event" in message else "target"
        flag = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        # A single word is a parameter only as the subject of the message, perhaps after a place.
        before, after = message[: found.start()], message[found.end() :]
        is_subject = re.search("(^|[:;] )$", before) and re.match(" (must|has|is|holds) ", after)
        if flag not in options or (value is None and "_" not in name and not is_subject):
            return found[0]
        if value is None:
            return flag
        shown = value.strip("'") if "'" in value else value.lower()
        return f"{flag} {shown}"

    encoder = r"(?:encoder=)?BinaryEncoder\((\w+=.*?)\)"
    message = re.sub(encoder, lambda found: found[1].replace(", ", " "), message)
    parameter = r"(?<![\w.'\"(/-])([a-z_]+)(?:=('[^']*'|[\w.-]+))?(?![\w.'\"/=])"
    return re.sub(parameter, option, message)


def _is_ours(error: BaseException) -> bool:
    """Whether a module of the command line raised it, in its own words."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals["__name__"].startswith(__name__)


@contextmanager
def _interrupt_ends_the_process() -> Iterator[None]:
    """During imports, because some libraries turn a KeyboardInterrupt into another error."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _warnings_as_lines(options: Collection[str]) -> Iterator[None]:
    """Print every warning as one line."""
    from bristlecone.exceptions import BristleconeWarning

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = _with_options(str(message), options)
        print(f"bristlecone: warning: {' '.join(text.split())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", BristleconeWarning)
        warnings.showwarning = show
        yield
