"""Runs scripts in pages with headless Chromium, without any other dependency."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed")

# Inserted at the start of the page: records errors and requests.
WATCH = """
window.troubles = [];
addEventListener("error", (event) => troubles.push(String(event.message)), true);
addEventListener("securitypolicyviolation", (event) => troubles.push(event.blockedURI));
"""
SAVE = """
const report = document.createElement("pre");
report.id = "report";
report.textContent = JSON.stringify({
  result, troubles, requests: performance.getEntriesByType("resource").map((one) => one.name),
});
document.body.append(report);
"""


def run(page, script, folder, width=1280):
    """The value of ``result`` after ``script`` has run in a copy of the page.

    Fails if the page raises an error, writes to the console or sends a request.
    """
    assert page.count("</head>") >= 1
    head, _, rest = page.partition("</head>")
    body, _, end = rest.rpartition("</body>")
    copy = folder / "page.html"
    copy.write_text(
        f"{head}<script>{WATCH}</script></head>{body}<script>{{{script}{SAVE}}}</script></body>{end}",
        encoding="utf-8",
    )
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [
            PROGRAM,
            *options,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},900",
            "--virtual-time-budget=5000",
            "--dump-dom",
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not console, console
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    report = json.loads(unescape(found[1]))
    assert report["troubles"] == []
    assert report["requests"] == []
    return report["result"]
