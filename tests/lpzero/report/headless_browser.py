"""A headless browser for the tests of the page, driven over a pipe in the DevTools protocol.

No driver and no port: Chromium reads messages from descriptor 3 and writes to 4.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 600.0  # seconds; a busy machine is no failure


def find() -> str | None:
    """The browser's path: that of the variable LPZERO_BROWSER, or one that is installed."""
    named = os.environ.get("LPZERO_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A browser process; enter it to start it."""

    def __init__(self, path: str, profile: Path) -> None:
        self.path, self.profile = path, profile
        self._last = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        (theirs_in, self._to), (self._from, theirs_out) = os.pipe(), os.pipe()
        arguments = [
            self.path,
            "--headless=new",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-sandbox",  # which root and many containers cannot have; the pages are our own
            f"--user-data-dir={self.profile}",
        ]
        # The shell puts the pipes where Chromium expects them.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *arguments, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The answer to a command; events that come before it are kept."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while True:
            found = self._read(deadline - time.monotonic())
            if found.get("id") == self._last:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return dict(found["result"])
            self.events.append(found)

    def wait_for(self, method: str, session: str) -> dict[str, Any]:
        """The next event of that name."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            for index, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(index)
            self.events.append(self._read(deadline - time.monotonic()))

    def _read(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise RuntimeError("the browser does not answer")
            data = os.read(self._from, 1 << 16)
            if not data:
                raise RuntimeError("the browser has gone")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


class Tab:
    """One page, with everything it asked the network for and everything it complained of."""

    def __init__(self, browser: Browser, width: int = 1200, height: int = 900) -> None:
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def open(self, path: Path) -> Tab:
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.browser.wait_for("Page.loadEventFired", self.session)
        return self

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            shown = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **shown
            )

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """A real click in the middle of the element."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', inline: 'center'});"
            " const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )

    def wait(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.02)
        raise RuntimeError(f"it never came true: {script}")

    def scheme(self, name: str) -> None:
        """Prefer light or dark."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def draw(self, name: str) -> None:
        """Scroll to a figure and wait until the page's script has drawn it."""
        selector = json.dumps(f"#figure-{name}")
        self.run(f"document.querySelector({selector}).scrollIntoView({{block: 'center'}})")
        self.wait(f"document.querySelector({selector} + ' .plot').dataset.drawn === 'yes'")

    def draw_all(self) -> None:
        """Every figure, drawn."""
        names = self.run(
            "[...document.querySelectorAll('figure[data-figure]')].map((f) => f.dataset.figure)"
        )
        for name in names:
            self.draw(name)

    def point_at(self, figure: str, trace: int, point: int) -> None:
        """Move the mouse over a point of a figure; traces are counted from the end if negative."""
        self.draw(figure)
        x, y = self.run(
            f"(() => {{ const plot = document.querySelector('#figure-{figure} .plot');"
            f" const trace = plot._fullData.at({trace});"
            " const box = plot.getBoundingClientRect();"
            " const [x, y] = ['xaxis', 'yaxis'].map((name) =>"
            " plot._fullLayout[trace[name].replace(name[0], name)]);"  # x2 is the axis xaxis2
            f" return [box.x + x._offset + x.d2p(trace.x[{point}]),"
            f" box.y + y._offset + y.d2p(trace.y[{point}])]; }})()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        self.wait(f"!document.querySelector('#figure-{figure} .hoverlayer .hovertext')")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def hovered(self, figure: str) -> str:
        """What the figure says of the point under the mouse."""
        place = f"document.querySelector('#figure-{figure} .hoverlayer')"
        lines = self.wait(
            f"(() => {{ const found = [...{place}.querySelectorAll('tspan')];"
            " return found.length ? found.map((line) => line.textContent) : null; })()"
        )
        return " ".join(lines)

    def screenshot(self, path: Path, whole: bool = True) -> None:
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def pdf(self) -> bytes:
        found = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(found["data"])

    def requests(self) -> list[str]:
        """Addresses of everything that was asked for, the page itself and inline data aside."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("method") == "Network.requestWillBeSent"
            and event.get("sessionId") == self.session
        ]
        return [url for url in urls if not url.startswith(("file:", "data:", "about:"))]

    def complaints(self) -> list[str]:
        """Console errors, exceptions and log entries, policy violations included."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif event["method"] == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(f"{params['type']}: {params['args']}")
        return found

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)
