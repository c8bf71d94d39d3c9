"""Runs any number of random problems in processes, resumable, with a record.

Case i of a campaign is the i-th check and kind of a fixed cycle (``CYCLE``) with seed first + i.
Cases run in blocks. Each finished block is a line of ``blocks.jsonl`` in the folder of the
campaign, and a campaign that is started again in the same folder continues after these blocks.
"""

import fcntl
import json
import logging
import os
import platform
import signal
import subprocess
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import datetime, timezone
from multiprocessing import get_context
from numbers import Real
from pathlib import Path

import numpy as np
from cases import CASES, run

from bristlecone import __version__

# Every check and kind as often as its share, spread evenly.
CYCLE = sorted(
    ((k + 0.5) / case.share, name, kind)
    for name, case in CASES.items()
    for kind in case.draws
    for k in range(case.share)
)
BLOCK = 1000
# Only a case that hangs takes this long.
MOST_SECONDS = 120


def case_of(first, i):
    """Check, kind and seed of a case."""
    _, name, kind = CYCLE[i % len(CYCLE)]
    return name, kind, first + i


def drawn(problem):
    """The parameters of a problem, as words to count."""
    estimator = problem.estimator.__name__
    yield f"estimator {estimator}"
    for name, value in problem.parameters.items():
        yield f"{name}={described(value)}"
    for name, value in problem.fit.items():
        if value is not None and name not in ("y",):
            yield f"fit({name}=)"
    y = problem.fit.get("y")
    if getattr(getattr(y, "dtype", None), "names", None) and "entry" in y.dtype.names:
        yield "entry times"
    if problem.wide:
        yield "values or weights of wide range"
    if not problem.kept.all():
        yield "rows of weight zero"


def described(value):
    """A value, or its kind."""
    if value is None or isinstance(value, (str, bool)):
        return repr(value)
    if isinstance(value, Real):
        return "0" if value == 0 else type(value).__name__
    return type(value).__name__


class Hangs(BaseException):
    pass


def hang(*_):
    raise Hangs(f"takes longer than {MOST_SECONDS} seconds")


def start(folder):
    """Sets up a worker: no logging, and a file with the current case, in case of a crash."""
    global at
    logging.getLogger("bristlecone").addHandler(logging.NullHandler())
    logging.getLogger("bristlecone").propagate = False
    signal.signal(signal.SIGALRM, hang)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    at = os.open(folder / f"at-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def run_block(first, block, cases):
    """Run the cases of a block and return its line of the state."""
    began, cpu = time.perf_counter(), time.process_time()
    counts, checks, seconds, failures = Counter(), Counter(), Counter(), []
    for i in range(block * BLOCK, min((block + 1) * BLOCK, cases)):
        name, kind, seed = case_of(first, i)
        os.pwrite(at, f"{name}/{kind}/{seed}\n".ljust(80).encode(), 0)
        from_here = time.process_time()
        signal.alarm(MOST_SECONDS)
        try:
            problem, more = run(name, kind, seed)
            counts.update(drawn(problem))
            counts.update(f"{name}: {word}" for word in more)
        # A panic of the engine is not a subclass of Exception.
        except BaseException as error:
            failures.append({"case": f"{name}/{kind}/{seed}", "error": shown(error)})
        finally:
            signal.alarm(0)
        checks[f"{name}/{kind}"] += 1
        seconds[name] += time.process_time() - from_here
    return {
        "block": block,
        "cases": sum(checks.values()),
        "seconds": round(time.perf_counter() - began, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "finished": now(),
        **about(),
        "checks": checks,
        "cpu_seconds_by_check": {name: round(value, 3) for name, value in seconds.items()},
        "drawn": counts,
        "failures": failures,
    }


def shown(error):
    """The last lines of an error and of its traceback."""
    lines = traceback.format_exception(error.__cause__ or error)
    reported = "".join(lines[-2:])[-1500:] + "\n" + str(error)[:1500]
    return reported.replace(f"{Path(__file__).parents[2]}/", "")


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def about():
    """The versions and the machine of a campaign."""
    here = Path(__file__).parent
    asked = ["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return {"version": __version__, "commit": commit}


def machine():
    names = [line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def cpu_lines():
    info = Path("/proc/cpuinfo")
    return info.read_text().splitlines() if info.exists() else []


def finished(folder):
    """The last line of every block, and the failures of its earlier lines.

    Truncated lines are ignored.
    """
    found, mended = {}, []
    path = folder / "blocks.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            block = json.loads(line)
        except ValueError:
            continue
        before = found.get(block["block"], {"failures": []})
        mended += [{**failure, "commit": before["commit"]} for failure in before["failures"]]
        found[block["block"]] = block
    return found, mended


def settle(folder, first, cases):
    """Store the first seed of a campaign; raise an error if it differs from the stored one."""
    path = folder / "campaign.json"
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists():
        known = json.loads(path.read_text())
        if known["first_seed"] != first or known["cycle"] != len(CYCLE):
            raise SystemExit(
                f"{folder} has a campaign of first seed {known['first_seed']} and "
                f"{known['cycle']} kinds of cases: take another folder"
            )
    path.write_text(json.dumps({"first_seed": first, "cycle": len(CYCLE), "cases": cases}) + "\n")


def campaign(cases, jobs, first, folder, minutes=None, again=False, tell=print):
    """Run the rest of a campaign and write its record; return the number of failed cases.

    With ``again``, blocks with a failure are repeated, for example after a correction.
    """
    settle(folder, first, cases)
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(f"another process runs the campaign of {folder}") from None
    done, _ = finished(folder)
    left = [
        block
        for block in range(-(-cases // BLOCK))
        if block not in done
        or done[block]["cases"] < min(BLOCK, cases - block * BLOCK)
        or (again and done[block]["failures"])
    ]
    tell(f"{cases} cases, {len(left)} of {-(-cases // BLOCK)} blocks to do")
    ends = time.monotonic() + 60 * minutes if minutes else float("inf")
    before = time.monotonic()
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, start, (folder,)) as pool:
        waiting, ours = list(reversed(left)), set()
        try:
            while waiting or ours:
                while waiting and len(ours) < jobs and time.monotonic() < ends:
                    ours.add(pool.submit(run_block, first, waiting.pop(), cases))
                if not ours:
                    break
                one = next(as_completed(ours))
                ours.discard(one)
                block = one.result()
                done[block["block"]] = block
                with (folder / "blocks.jsonl").open("a") as state:
                    state.write(json.dumps(block) + "\n")
                for failure in block["failures"]:
                    tell(f"FAILED {failure['case']}\n{failure['error']}")
                total = sum(each["cases"] for each in done.values())
                failed = sum(len(each["failures"]) for each in done.values())
                rate = block["cases"] / block["seconds"] * jobs
                tell(f"{now()} {total} cases, {failed} failed, {rate:.0f} a second")
                if time.monotonic() - before > 60 or not ours:
                    before = time.monotonic()
                    record(folder, first, cases, jobs)
        except KeyboardInterrupt:
            tell("stopped: the blocks that are done are kept")
            pool.shutdown(cancel_futures=True)
    for path in folder.glob("at-*"):
        path.unlink()
    record(folder, first, cases, jobs)
    return sum(len(each["failures"]) for each in done.values())


def record(folder, first, cases, jobs):
    """Write ``record.json`` and ``record.md`` for the finished blocks."""
    done, mended = finished(folder)
    blocks = [done[key] for key in sorted(done)]
    summed = {
        name: dict(sorted(sum((Counter(b[name]) for b in blocks), Counter()).items()))
        for name in ("checks", "cpu_seconds_by_check", "drawn")
    }
    found = {
        "asked": cases,
        "cases": sum(block["cases"] for block in blocks),
        "first_seed": first,
        "seconds": round(sum(block["seconds"] for block in blocks)),
        "cpu_seconds": round(sum(block["cpu_seconds"] for block in blocks)),
        "began_to_finish": [min(b["finished"] for b in blocks), max(b["finished"] for b in blocks)]
        if blocks
        else [],
        "versions": dict(Counter(f"{b['version']} ({b['commit']})" for b in blocks)),
        "machine": machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "processes": jobs,
        **summed,
        "failures": [failure for block in blocks for failure in block["failures"]],
        "mended": mended,
    }
    (folder / "record.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    (folder / "record.md").write_text(markdown(found))


def markdown(found):
    """The record as a page."""
    kinds = sorted({key.split("/")[1] for key in found["checks"]})
    rows = []
    for name in CASES:
        counts = [found["checks"].get(f"{name}/{kind}", 0) for kind in kinds]
        each = 1000 * found["cpu_seconds_by_check"].get(name, 0.0) / max(1, sum(counts))
        rows.append([name, *(f"{n:,}" if n else "" for n in counts), f"{each:.1f}"])
    when = " to ".join(found["began_to_finish"])
    versions = ", ".join(f"{name} in {n} blocks" for name, n in found["versions"].items())
    lines = [
        "# Campaign of random problems",
        "",
        f"{found['cases']:,} of {found['asked']:,} cases, {len(found['failures'])} failures; "
        f"first seed {found['first_seed']}; {found['cpu_seconds']:,} seconds of CPU, "
        f"{found['seconds']:,} seconds of {found['processes']} process(es), {when}.",
        "",
        f"Version {versions}; {found['machine']}; Python {found['python']}, NumPy "
        f"{found['numpy']}. A case is one random problem with one check; what they are is in "
        "`tests/brute_force/cases.py`.",
        "",
        table(["check", *kinds, "CPU ms each"], rows),
        "",
        "## What was drawn",
        "",
        table(["", "cases"], [[f"`{name}`", f"{n:,}"] for name, n in found["drawn"].items()]),
        "",
        "## Failures",
        "",
    ]
    for failure in found["failures"]:
        lines += [f"* `python tests/brute_force --replay '{failure['case']}'`"]
    if not found["failures"]:
        lines.append("None.")
    if found["mended"]:
        lines += ["", "Before, in blocks that were run again after a mend:", ""]
    for failure in found["mended"]:
        lines.append(f"* `{failure['case']}` at {failure['commit']}")
    return "\n".join(lines) + "\n"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
