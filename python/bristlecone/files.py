"""Writing files completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

__all__ = ["check_target", "write_files"]


def check_target(path: str | os.PathLike[str]) -> Path:
    """Path to write to, links followed.

    Raises
    ------
    ValueError
        When its folder does not exist, or it is a folder or a device.
    """
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"cannot write {path}: it is not a regular file")
    return target


def write_files(documents: Mapping[str | os.PathLike[str], str]) -> None:
    """Write texts in UTF-8; an existing file is replaced only when every text was written.

    Parameters
    ----------
    documents : mapping of path to str
        Content of every file.

    Raises
    ------
    OSError, ValueError
        When a file cannot be written; no file has been replaced then.
    """
    with ExitStack() as cleanup:
        parts = []
        for path, text in documents.items():
            target = check_target(path)
            part = target.with_name(f".{target.name}.{os.getpid()}.part")
            cleanup.callback(part.unlink, missing_ok=True)
            part.write_text(text, encoding="utf-8", newline="\n")
            parts.append((part, target))
        for part, target in parts:
            part.replace(target)
