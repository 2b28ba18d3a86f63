"""The page in a real browser: Debian's chromium, driven by playwright."""

import os
import shutil

import pytest
from hostile import SCRIPT, renamed
from test_storage import explained

import eblime

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no chromium is installed"),
]


@pytest.fixture(scope="module")
def browser():
    """One headless browser for all tests."""
    quiet = ("--disable-gpu", "--disable-background-networking", "--disable-component-update")
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=BROWSER, args=[*quiet, *root])
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens explanations as a page; nothing is fetched, nothing complains."""
    complaints, requests, pages = [], [], []

    def show(explanations, width=1200, **options):
        path = tmp_path / f"{len(pages)}.html"
        eblime.report(explanations, path)
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield show

    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def test_pointing_at_a_superpixel_shows_its_numbers(opened):
    """Hover: name, mean, interval and density of that superpixel, and its row is marked."""
    e = explained()
    page = opened(e)
    for j in (3, 7):
        page.locator(f"path[data-feature='{j}']").hover()
        detail = page.locator(".detail")

        assert detail.locator("h3").inner_text() == e.features[j]
        assert detail.locator(".curve").count() == 1
        shown = detail.locator("dd").first.inner_text().replace("\u2212", "-")
        assert float(shown) == pytest.approx(e.posterior.mean[j], abs=1e-3)
        assert page.locator("tr.chosen").get_attribute("data-feature") == str(j)


def test_tapping_works_on_a_small_screen(opened):
    """At 375 pixels nothing sticks out, and a tap does what hovering does."""
    e = explained()
    page = opened(e, width=375, has_touch=True)
    page.locator("path[data-feature='5']").tap()

    assert page.locator(".detail h3").inner_text() == e.features[5]
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_the_slider_sets_the_level(opened):
    """Moving it to 50 % and to 99 % gives those intervals, which hold one another."""
    e = explained()
    page = opened(e)
    strongest = int(abs(e.posterior.mean).argmax())
    ends = {}
    for place, level in ((0, 0.5), (10, 0.99)):
        page.locator("#level").fill(str(place))
        cell = page.locator(f"tr[data-feature='{strongest}'] .ends").inner_text()
        ends[level] = [float(word) for word in cell.replace("\u2212", "-").split(" to ")]

        assert ends[level] == pytest.approx(e.posterior.interval(level)[strongest], abs=1e-3)
        assert page.locator("#level-shown").inner_text() == f"{100 * level:.0f} %"
    assert ends[0.99][0] < ends[0.5][0] < ends[0.5][1] < ends[0.99][1]


def test_the_switch_changes_the_colours(opened):
    """Importance, uncertainty and P(top k) tint the superpixels differently."""
    page = opened(explained())
    fill = "e => getComputedStyle(e).fill + getComputedStyle(e).fillOpacity"
    seen = set()
    for measure in ("mean", "sd", "top"):
        page.locator(f"input[value={measure}]").check()
        seen.add(page.locator("path[data-feature='4']").evaluate(fill))

    assert len(seen) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(opened, scheme):
    """Dark where the system is dark, the other way round after a click."""
    page = opened(explained(), color_scheme=scheme)
    bright = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] > 128"
    before = page.evaluate(bright)
    page.locator("#theme").click()

    assert before == (scheme == "light")
    assert page.evaluate(bright) == (scheme == "dark")


def test_the_keyboard_suffices(opened):
    """Arrow keys walk from one feature to the next, on the picture and in the list."""
    e = explained()
    page = opened(e)
    order = [e.features[j] for j in (-abs(e.posterior.mean)).argsort(kind="stable")]
    page.locator(".photo").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".detail h3").inner_text() == order[1]

    page.locator("tr.chosen").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(".detail h3").inner_text() == order[2]
    assert page.evaluate("document.activeElement.matches('tr.chosen')")
    page.keyboard.press("Home")
    assert page.locator(".detail h3").inner_text() == order[0]


def test_a_script_in_a_name_is_text(opened):
    """Names and labels that look like pages are shown, not run."""
    e = renamed(explained(), SCRIPT)
    page = opened([e, e])
    page.locator("tr[data-feature='2']").first.hover()

    assert page.evaluate("window.hacked") is None
    assert page.locator(".detail h3").first.inner_text() == e.features[2]
    assert page.locator("nav a").first.inner_text() == SCRIPT


def test_a_point_estimate_says_so(opened):
    """LIME has no level to choose and no density to show."""
    page = opened(explained("lime"))

    assert not page.locator("#level").is_visible()
    assert "point estimate" in page.locator(".detail").inner_text()


def test_it_prints_all_rows_without_controls(opened):
    """On paper there is nothing to press, and the intervals are written out."""
    page = opened(explained(), width=500)
    page.emulate_media(media="print")

    assert not page.locator("#level").is_visible()
    assert page.locator("td.ends").first.is_visible()
    assert page.pdf()[:4] == b"%PDF"


def test_colours_by_uncertainty_start_at_zero(opened):
    """Opacities are proportional to the standard deviations."""
    e = explained()
    page = opened(e)
    page.locator("input[value=sd]").check()
    seen = [
        float(page.locator(f"path[data-feature='{j}']").evaluate("e => e.style.fillOpacity"))
        for j in range(9)
    ]

    assert seen == pytest.approx(max(seen) * e.posterior.sd / e.posterior.sd.max(), rel=1e-3)
