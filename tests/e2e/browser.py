"""A headless Chromium for tests of the HTML report, spoken to over its debugging pipe: no driver and no library."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60  # seconds, for any one answer


def find():
    """Chromium's path; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page at a time. `trouble` is what its console and its scripts complained of."""

    def __init__(self, folder):
        self.trouble, self.answers, self.number, self.rest = [], {}, 0, b""
        self.session = None
        there, self.write = os.pipe()
        self.read, back = os.pipe()
        os.set_blocking(self.read, True)

        def pass_on():  # Chromium reads commands from descriptor 3 and answers on 4
            low, high = os.dup(there), os.dup(back)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb",
             f"--user-data-dir={pathlib.Path(folder) / 'profile'}", "about:blank"],
            preexec_fn=pass_on, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        target = next(one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while self.number not in self.answers:
            assert time.monotonic() < until, f"no answer to {method}"
            self.take()
        answer = self.answers.pop(self.number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def take(self):
        """The next message: an answer, or an event of which only complaints are kept."""
        while b"\0" not in self.rest:
            assert select.select([self.read], [], [], PATIENCE)[0], "the browser is silent"
            got = os.read(self.read, 1 << 20)
            assert got, "the browser ended"
            self.rest += got
        message, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(message)
        if "id" in message:
            self.answers[message["id"]] = message
        elif message["method"] == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.trouble.append(details.get("exception", {}).get("description") or details["text"])
        elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] in ("error", "warning"):
            self.trouble.append(message["params"]["entry"]["text"])
        elif message["method"] == "Runtime.consoleAPICalled" and message["params"]["type"] in ("error", "warning", "assert"):
            self.trouble.append(str(message["params"]["args"]))

    def evaluate(self, expression):
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, f"{expression}: {result}"
        return result["result"].get("value")

    def until(self, expression):
        end = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}; {self.trouble}"

    def show(self, width, height=900, dark=False):
        """The window's size, and what the system says of light and dark."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        """Opens a file and waits until the page says that it is drawn; returns the seconds that took."""
        begin = time.monotonic()
        self.send("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.until("document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'"
                   " && location.protocol === 'file:'")
        return time.monotonic() - begin

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)")

    def click(self, selector, right=0.5, down=0.5):
        """A real click, that far to the right and down in the element."""
        at = self.evaluate(f"""(() => {{
            const found = document.querySelector({json.dumps(selector)});
            found.scrollIntoView({{ block: "center" }});
            const box = found.getBoundingClientRect();
            return [box.left + box.width * {right}, box.top + box.height * {down}]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    def drag(self, selector, start, end):
        """Presses the mouse so far to the right in the element, moves it and lets go."""
        left, width, middle = self.evaluate(f"""(() => {{
            const found = document.querySelector({json.dumps(selector)});
            found.scrollIntoView({{ block: "center" }});
            const box = found.getBoundingClientRect();
            return [box.left, box.width, box.top + box.height / 2]; }})()""")
        steps = [("mousePressed", start), *(("mouseMoved", start + (end - start) * part / 4) for part in range(1, 5)),
                 ("mouseReleased", end)]
        for kind, at in steps:
            self.send("Input.dispatchMouseEvent", type=kind, x=left + width * at, y=middle, button="left", buttons=1,
                      clickCount=1)

    def press(self, *keys):
        for key in keys:
            text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37,
                    "ArrowRight": 39, "Home": 36, "End": 35}.get(key, 0)
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def screenshot(self, path, whole=True):
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
        except (AssertionError, OSError):
            self.process.kill()
        self.process.wait(timeout=PATIENCE)
        os.close(self.write)
        os.close(self.read)
