"""Chromium without a window, for tests of the explorer page and for its benchmark.

It needs selenium, and Chromium with its driver: Debian's packages chromium and chromium-driver. WebGL is drawn by
SwiftShader on the CPU. The profile is new each time, and nothing connects to a network.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_SOFTWARE_GL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")


def missing() -> str:
    """Why no browser can be started; empty if one can."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "needs the package selenium"
    if not any(map(shutil.which, _BROWSERS)):
        return "needs Chromium: apt-get install chromium chromium-driver"
    if not shutil.which("chromedriver"):
        return "needs the driver of Chromium: apt-get install chromium-driver"
    return ""


@contextmanager
def browser(
    width: int = 1360, height: int = 860, *, dark: bool = False, webgl: bool = True, downloads: Path | None = None
) -> Iterator[Any]:
    """A driver of a browser window of this size; it is closed at the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = next(path for name in _BROWSERS if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = [*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        flags += _SOFTWARE_GL if webgl else ["--disable-3d-apis"]
        for flag in flags:
            options.add_argument(flag)
        if downloads is not None:
            options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            set_scheme(driver, dark=dark)
            yield driver
        finally:
            driver.quit()


def set_scheme(driver: Any, *, dark: bool) -> None:
    """Let the system prefer dark or light colours."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def set_window(driver: Any, width: int, height: int, *, mobile: bool = False) -> None:
    """Give the page this many CSS pixels."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def open_page(driver: Any, url: str, seconds: float = 120) -> None:
    """Open an explorer page and wait until it answers."""
    driver.get(url)
    wait_until(driver, "return document.documentElement.dataset.ready === 'true'", seconds)


def wait_until(driver: Any, script: str, seconds: float = 30) -> Any:
    """What a script returns once that is true; an error if it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = driver.execute_script(script)
        if found:
            return found
        time.sleep(0.05)
    said = [entry["message"] for entry in driver.get_log("browser")]
    raise TimeoutError(f"{script} stays false after {seconds} s; the browser said {said}")


def cpu_seconds(driver: Any) -> float:
    """What the driver, the browser and its helpers have computed so far, on Linux."""
    ticks, parents = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        process = int(file.parent.name)
        parents[process], ticks[process] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {driver.service.process.pid}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(process, 0) for process in family) / os.sysconf("SC_CLK_TCK")


def complaints(driver: Any) -> list[str]:
    """What the browser logged of errors and refused actions."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
