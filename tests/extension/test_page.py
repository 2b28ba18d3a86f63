"""The page of a domain from another package in a real browser."""

import os
import shutil

import pytest
from extension import cases

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")


@pytest.mark.slow
def test_pointing_at_a_window_shows_its_numbers(tmp_path):
    """The page colours the windows, shows details of one, and reports no error."""
    e = cases.all_new_parts().explain(cases.PULSE)
    e.to_html(tmp_path / "page.html")
    errors = []
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--disable-gpu", *root])
        page = browser.new_page()
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        page.locator("svg.series rect[data-feature='4']").hover()
        name = page.locator(".detail h3").inner_text()
        strong, weak = (
            float(
                page.locator(f"svg.series rect[data-feature='{j}']").evaluate(
                    "e => e.style.fillOpacity"
                )
            )
            for j in (abs(e.posterior.mean).argmax(), abs(e.posterior.mean).argmin())
        )
        legend = page.locator(".legend").inner_text()
        rings = page.locator("svg.series rect.halo").count()
        browser.close()

    assert errors == []
    assert name == e.features[4]
    assert rings == 2  # around the window that was chosen
    assert strong > weak
    assert "Underlined" not in legend
