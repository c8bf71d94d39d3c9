"""Describe the machine and the software that a record was made with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Instruction sets that the kernels choose between.
ISA = ("sse4_2", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "neon", "asimd")


def machine() -> dict[str, Any]:
    """Return CPU, instruction sets, cores, memory, kernels, system and versions."""
    from bristlecone import _core

    cpu = _cpu_info()
    flags = (cpu.get("flags") or cpu.get("Features") or "").split()
    return {
        "cpu": cpu.get("model name", platform.processor() or platform.machine()),
        "cpu_family_model_stepping": [cpu.get(key) for key in ("cpu family", "model", "stepping")],
        "isa": [name for name in ISA if name in flags],
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "kernels": list(_core.backends()),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("bristlecone", "numpy", "scikit-learn")},
        "revision": _revision(),
    }


def _cpu_info() -> dict[str, str]:
    """Return the first processor's lines of /proc/cpuinfo, nothing outside Linux."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _memory_gb() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(total / 1e9, 1)


def _revision() -> str | None:
    """Return the git commit, "+" when the tree differs from it, None outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
