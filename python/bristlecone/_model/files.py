"""Writing files completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path


def check_target(path: str | os.PathLike[str]) -> Path:
    """Path to write to, with links resolved.

    Raises
    ------
    ValueError
        If its folder does not exist, or it is a folder or a device.
    """
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"cannot write {path}: it is not a regular file")
    return target


def write_files(documents: Mapping[str | os.PathLike[str], str | bytes]) -> None:
    """Write bytes, or texts in UTF-8, by path; files are replaced only after all were written.

    A file that is replaced keeps its permissions, so a private file stays private.

    Raises
    ------
    OSError, ValueError
        If a file cannot be written; no file has been replaced then.
    """
    with ExitStack() as cleanup:
        parts = []
        for path, content in documents.items():
            target = check_target(path)
            # Short, even if the target has a long name.
            part = target.with_name(f".{secrets.token_hex(8)}.part")
            cleanup.callback(part.unlink, missing_ok=True)
            try:
                with open(part, "xb", opener=_like(target)) as file:
                    file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
            except OSError as error:
                # The user knows the name of the target, not that of the part.
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error
            parts.append((part, target))
        for part, target in parts:
            part.replace(target)


def _like(target: Path) -> Callable[[str, int], int]:
    """Opener that gives a new file the permissions of an existing one, or else the usual ones."""

    def create(path: str, flags: int) -> int:
        try:
            mode = stat.S_IMODE(target.stat().st_mode)
        except FileNotFoundError:
            return os.open(path, flags, 0o666)
        descriptor = os.open(path, flags, 0o600)
        try:
            # The umask may have removed permissions; nothing was written yet.
            os.chmod(path, mode)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    return create
