"""Pages in headless Chromium, without any further dependency: a script is put into a copy."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed")

# Before anything else of the page: what goes wrong, or out.
WATCH = """
window.troubles = [];
addEventListener("error", (event) => troubles.push(String(event.message)), true);
addEventListener("securitypolicyviolation", (event) => troubles.push(event.blockedURI));
"""
TELL = """
const told = document.createElement("pre");
told.id = "told";
told.textContent = JSON.stringify({
  result, troubles, requests: performance.getEntriesByType("resource").map((one) => one.name),
});
document.body.append(told);
"""


def run(page, script, folder, width=1280):
    """What ``script`` leaves in ``result``, after it ran in a copy of the page.

    Fails on errors of the page, on anything on its console, and on any request.
    """
    assert page.count("</head>") >= 1
    head, _, rest = page.partition("</head>")
    body, _, end = rest.rpartition("</body>")
    copy = folder / "page.html"
    copy.write_text(
        f"{head}<script>{WATCH}</script></head>{body}<script>{{{script}{TELL}}}</script></body>{end}",
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
    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads(unescape(found[1]))
    assert told["troubles"] == []
    assert told["requests"] == []
    return told["result"]
