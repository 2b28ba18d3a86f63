"""The page in a real browser: chromium, driven by playwright."""

import csv
import dataclasses
import json
import os
import re
import shutil

import numpy as np
import pytest
from hostile import SCRIPT, renamed
from PIL import Image
from series_domain import series_domain
from test_storage import GRID, IMAGE, explained

import eblime
from eblime import registry
from eblime.batch.overview import overview
from eblime.plot.style import STRONGEST, signed_shares

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")

pytestmark = [
    pytest.mark.slow,
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
    """A function that opens explanations as a page, without requests or console messages."""
    messages, requests, pages = [], [], []

    def show(explanations, width=1200, **options):
        path = tmp_path / f"{len(pages)}.html"
        eblime.report(explanations, path)
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield show

    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def test_pointing_at_a_superpixel_shows_its_numbers(opened):
    """Name, mean, interval and density appear, and its row is marked."""
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
    """At 375 pixels nothing overflows, and a tap does the same as hovering."""
    e = explained()
    page = opened(e, width=375, has_touch=True)
    page.locator("path[data-feature='5']").tap()

    assert page.locator(".detail h3").inner_text() == e.features[5]
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_slider_sets_the_credible_level(opened):
    """At 50 % and at 99 % the intervals are those of the posterior, and nested."""
    e = explained()
    page = opened(e)
    strongest = int(abs(e.posterior.mean).argmax())
    ends = {}
    for step, level in ((0, 0.5), (10, 0.99)):
        page.locator("#level").fill(str(step))
        cell = page.locator(f"tr[data-feature='{strongest}'] .ends").inner_text()
        ends[level] = [float(word) for word in cell.replace("\u2212", "-").split(" to ")]

        assert ends[level] == pytest.approx(e.posterior.interval(level)[strongest], abs=1e-3)
        assert page.locator("#level-shown").inner_text() == f"{100 * level:.0f} %"
    assert ends[0.99][0] < ends[0.5][0] < ends[0.5][1] < ends[0.99][1]


def test_measure_changes_the_colours(opened):
    """Importance, uncertainty and P(top k) colour the superpixels differently."""
    page = opened(explained())
    fill = "e => getComputedStyle(e).fill + getComputedStyle(e).fillOpacity"
    seen = set()
    for measure in ("mean", "sd", "top"):
        page.locator(f"input[value={measure}]").check()
        seen.add(page.locator("path[data-feature='4']").evaluate(fill))

    assert len(seen) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_and_the_button(opened, scheme):
    """Dark if the system is dark, and switched by a click."""
    page = opened(explained(), color_scheme=scheme)
    bright = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] > 128"
    before = page.evaluate(bright)
    page.locator("#theme").click()

    assert before == (scheme == "light")
    assert page.evaluate(bright) == (scheme == "dark")


def test_keyboard_moves_between_features(opened):
    """Arrow keys move to the next feature, on the picture and in the list."""
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


def test_script_in_a_name_is_text(opened):
    """Names and labels that look like HTML are shown, not run."""
    e = renamed(explained(), SCRIPT)
    page = opened([e, e])
    page.locator("tr[data-feature='2']").first.hover()

    assert page.evaluate("window.hacked") is None
    assert page.locator(".detail h3").first.inner_text() == e.features[2]
    assert page.locator("nav a").first.inner_text() == SCRIPT


def test_point_estimate_has_no_intervals(opened):
    """LIME has no credible level and no density."""
    page = opened(explained("lime"))

    assert not page.locator("#level").is_visible()
    assert "point estimate" in page.locator(".detail").inner_text()


def test_point_estimate_has_no_underlines_and_no_empty_columns(opened):
    """An underline says that an interval excludes zero; a point estimate has none."""
    model = eblime.TextExplainer(lambda texts: [len(text) for text in texts], method="lime")
    page = opened(model.explain("one two three four"))
    border = "marks => marks.map(mark => getComputedStyle(mark).borderBottomColor)"
    colours = page.locator("figure mark").evaluate_all(border)

    assert set(colours) == {"rgba(0, 0, 0, 0)"}
    heads = page.locator("thead th").all_inner_texts()
    assert [heads[0], heads[2:]] == ["feature", ["importance"]]
    assert heads[1].split() == ["0", "1", "2", "3", "4", "5"]  # the axis of the bars


def test_narrow_intervals_have_enough_digits(opened):
    """The ends of an interval differ in print where they differ by far less than the mean."""
    words = " ".join(f"w{k}" for k in range(12))
    model = eblime.TextExplainer(
        lambda texts: [t.count("w") + 1e-6 * ("w1" in t) * ("w2" in t) for t in texts], n_masks=100
    )
    page = opened(model.explain(words, rng=0))
    cells = page.locator(".detail dd").all_inner_texts()
    low, high = cells[1].split(" to ")

    assert low != high
    assert float(cells[2]) > 0


def test_an_interval_without_zero_does_not_print_zero(opened):
    """However near its end is; numbers and intervals are not broken into lines."""
    words = " ".join(f"w{k}" for k in range(10))
    noise = np.random.default_rng(0)
    model = eblime.TextExplainer(
        lambda texts: [("w1" in t) + 0.004 * ("w2" in t) + 0.02 * noise.normal() for t in texts],
        n_masks=400,
    )
    e = model.explain(words, rng=0)
    page = opened(e, width=390)
    for level, step in ((0.95, 9), (0.9, 8), (0.5, 0)):
        page.locator("#level").fill(str(step))
        for j, (low, high) in enumerate(e.posterior.interval(level)):
            cell = page.locator(f"tr[data-feature='{j}'] .ends")
            ends = [float(word) for word in cell.inner_text().replace("\u2212", "-").split(" to ")]
            assert ends[0] < ends[1]
            assert (ends[0] * ends[1] > 0) == (low * high > 0)
            assert cell.bounding_box()["height"] < 30


def test_a_score_that_barely_moves_is_pale_and_warned_of(opened):
    """The words are across the picture, the first note is a warning, numbers have one unit."""
    explainer = eblime.ImageExplainer(
        lambda batch: 0.998 + 1e-7 * batch[:, :6].mean(axis=(1, 2, 3)),
        segmentation=GRID,
        hide=0,
        n_masks=60,
    )
    e = explainer.explain(IMAGE)
    page = opened(e)
    shares = np.abs(signed_shares(e))

    assert 0.1 < shares.max() <= 0.2
    assert opacity(page, int(shares.argmax())) == pytest.approx(STRONGEST * shares.max(), rel=0.02)
    assert "barely move" in page.locator(".note.warning").inner_text()
    assert page.locator(".cautions p:visible").count() == 1
    assert "\u00d7" in page.locator("thead").inner_text()
    assert not re.search(r"\de[-+\u2212]?\d", page.locator("main").inner_text())


def test_narrow_intervals_of_tiny_numbers_have_enough_digits(opened):
    """Numbers with an exponent get more digits too, and one kind of minus sign."""

    def score(batch):
        return -1e-6 * batch[:, 0, 0] + 1e-13 * np.sin(1e3 * batch.sum(axis=(1, 2)))

    explainer = eblime.ImageExplainer(score, segmentation=GRID, hide=0, n_masks=60)
    page = opened(explainer.explain(IMAGE[..., 0] / 255))
    ends = page.locator(".detail dd").nth(1).inner_text().split(" to ")

    assert len(ends) == 2
    assert ends[0] != ends[1]
    assert "-" not in page.locator("tbody tr").first.inner_text()


def test_an_explanation_is_printed_on_one_page(opened):
    """On paper there are no buttons, the intervals are written out, and rows are as on screen."""
    page = opened(explained(), width=500)
    page.emulate_media(media="print")

    assert not page.locator("#level").is_visible()
    assert page.locator("td.ends").first.is_visible()
    assert b"/Count 1\n" in page.pdf(format="A4")


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


@pytest.mark.parametrize("width", [340, 390])
def test_page_of_a_run_fits_a_phone(browser, tmp_path, width):
    """Classes with long names and five columns: nothing overflows."""
    pytest.importorskip("pyarrow")
    labels = ["Cypripedium_calceolus_and_more", "a rather long name of a class"]
    explainer = eblime.ImageExplainer(
        lambda batch: np.stack(
            [batch[:, :6].mean(axis=(1, 2, 3)), batch[:, 6:].mean((1, 2, 3))], 1
        ),
        segmentation=GRID,
        hide=0,
        n_masks=40,
        labels=labels,
    )
    run = eblime.explain_many(explainer, [IMAGE, IMAGE[::-1]], tmp_path / "run", keep=True)
    overview(run, tmp_path / "run.html")
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    page.goto((tmp_path / "run.html").as_uri())

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_list_of_a_run_is_sorted_and_divided_by_a_threshold(browser, tmp_path):
    """By keyboard; the address keeps both, and a file has the decisions."""
    pytest.importorskip("pyarrow")
    rows = np.random.default_rng(0).random((7, 3))
    explainer = eblime.TabularExplainer(
        lambda table: table @ [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        rows,
        n_masks=40,
        labels=["left", SCRIPT],
    )
    run = eblime.explain_many(explainer, rows, tmp_path / "run", targets="predicted")
    overview(run, tmp_path / "run.html")
    page, messages = browser.new_page(), []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto((tmp_path / "run.html").as_uri())

    def column(place):
        return page.locator(f"#inputs tbody td:nth-child({place})").all_inner_texts()

    for order in ("ascending", "descending"):
        page.locator("#inputs th[data-name='score'] button").press("Enter")
        scores = [float(text) for text in column(3)]
        assert scores == sorted(scores, reverse=order == "descending")
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == order
    for name in ("input", "output", "r2", "top", "decision"):
        page.locator(f"#inputs th[data-name='{name}'] button").dispatch_event("click")
        assert page.locator("th[aria-sort]").get_attribute("data-name") == name

    page.locator("#output").select_option(SCRIPT)
    page.locator("#at").fill("0.5")
    shown = zip(column(2), column(3), column(6), strict=True)
    expected = [label == SCRIPT and float(score) >= 0.5 for label, score, _ in shown]
    assert 0 < sum(expected) < 7
    assert [text == "reject" for text in column(6)] == expected
    said = f"{7 - sum(expected)} accepted, {sum(expected)} rejected"
    assert page.locator("#counts").inner_text() == said
    with page.expect_download() as download:
        page.locator("#save").click()
    saved = list(csv.DictReader(download.value.path().read_text(encoding="utf8").splitlines()))
    assert [row["decision"] == "reject" for row in saved] == expected
    assert {row["rule"] for row in saved} == {f"reject if the score of {SCRIPT} is at least 0.5"}

    page.goto("about:blank")
    page.go_back()  # the rule is in the address
    assert page.locator("#counts").inner_text() == said
    assert page.locator("th[aria-sort]").get_attribute("data-name") == "decision"
    assert messages == []


@pytest.mark.parametrize("width", [340, 390])
def test_page_of_an_explanation_fits_a_phone(opened, width):
    """With long names, large numbers, all rows and all settings open."""
    rows = 1e6 * np.random.default_rng(0).random((60, 14))
    names = [f"price_per_square_metre_of_the_living_area_{k}" for k in range(14)]
    e = eblime.TabularExplainer(lambda table: table[:, 0], rows, names=names, n_masks=200)
    page = opened([e.explain(rows[0]), explained()], width=width)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.locator(".all").first.click()

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def opacity(page, feature):
    """How strongly a superpixel is coloured."""
    mark = page.locator(f"path[data-feature='{feature}']")
    return float(mark.evaluate("e => e.style.fillOpacity"))


def test_overlay_can_be_made_weaker(opened):
    """The slider scales all colours; at zero only the photo is left."""
    e = explained()
    page = opened(e)
    strongest = int(abs(e.posterior.mean).argmax())
    share = abs(signed_shares(e)).max()
    before = opacity(page, strongest)
    page.locator("#strength").fill("25")
    weaker = opacity(page, strongest)
    page.locator("#strength").fill("0")

    assert (before, weaker, opacity(page, strongest)) == pytest.approx(
        (STRONGEST * share, 0.25 * share, 0), abs=1e-3
    )


def test_legend_explains_the_colours(opened):
    """Its ends are the numbers with the full colour."""
    e = explained()
    page = opened(e)
    legend = page.locator(".legend")

    assert "Importance" in legend.inner_text()
    ends = legend.locator(".ends-of-scale span").all_inner_texts()
    most = abs(e.posterior.mean).max()
    assert [float(end.replace("\u2212", "-")) for end in ends] == pytest.approx(
        [-most, 0, most], abs=1e-3
    )
    page.locator("input[value=sd]").check()
    ends = legend.locator(".ends-of-scale span").all_inner_texts()
    assert float(ends[0]) == 0
    assert float(ends[1]) == pytest.approx(e.posterior.sd.max(), abs=1e-3)
    page.locator("input[value=top]").check()
    assert "about the fit" in legend.inner_text()


def test_photo_can_be_zoomed_and_moved(opened):
    """Buttons, keys, a double click and dragging change the visible part."""
    page = opened(explained())
    photo = page.locator(".photo")

    def shown():
        return [float(word) for word in photo.get_attribute("viewBox").split()]

    whole = shown()
    page.locator("[aria-label='Zoom in']").click()
    assert shown()[2] == pytest.approx(whole[2] / 1.5)
    before = shown()
    box = photo.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 180)
    page.mouse.up()
    assert shown()[0] > before[0]
    page.locator("[aria-label='Whole photo']").click()
    assert shown() == whole
    photo.dblclick(position={"x": 5, "y": 5})
    assert shown()[2] == pytest.approx(whole[2] / 2)
    photo.press("0")
    assert shown() == whole
    page.locator("[aria-label='Zoom out']").click()
    assert shown() == whole


def test_table_is_saved_as_csv(opened):
    """At the chosen level; names that look like formulas are harmless in a spreadsheet."""
    e = renamed(explained(), "=cmd|' /C calc'!A0")
    page = opened(e)
    page.locator("#level").fill("0")
    with page.expect_download() as found:
        page.locator(".csv").click()
    rows = list(csv.reader(found.value.path().read_text(encoding="utf8").splitlines()))
    order = (-abs(e.posterior.mean)).argsort(kind="stable")

    assert rows[0] == ["feature", "mean", "sd", "low_50", "high_50", "prob_positive", "prob_top_5"]
    assert {row[0][:2] for row in rows[1:]} == {"'="}
    numbers = np.array([row[1:5] for row in rows[1:]], dtype=float)
    post = e.posterior
    truth = np.column_stack([post.mean, post.sd, post.interval(0.5)])[order]
    np.testing.assert_allclose(numbers, truth, rtol=2e-3, atol=1e-6)


def test_photo_is_saved_as_png(opened, tmp_path):
    """With the colours of the page: the top superpixel is coloured, the photo is grey."""
    e = explained()
    page = opened(e)
    with page.expect_download() as found:
        page.locator(".png").click()
    with Image.open(found.value.path()) as opened_:
        pixels = np.asarray(opened_.convert("RGB")).astype(float)
    scale = 640 / 15
    strongest, weakest = abs(e.posterior.mean).argmax(), abs(e.posterior.mean).argmin()

    def tint(j):
        rows, columns = np.nonzero(e.scene.labels == j)
        row, column = (int(scale * (index.mean() + 0.5)) for index in (rows, columns))
        return np.ptp(pixels[row, column])

    assert pixels.shape[:2] == (round(scale * 12) + 96, 640)
    assert tint(strongest) > 40
    assert tint(weakest) < tint(strongest)


def test_most_likely_classes_are_listed(opened):
    """With their probabilities, as text; nothing if none are stored."""
    e = explained()
    stored = [[SCRIPT, 0.75], ["cup", 0.125]]
    named = dataclasses.replace(e, provenance={**e.provenance, "top_classes": stored})
    page = opened(named)

    assert page.locator(".classes li").all_inner_texts() == [f"{SCRIPT} 0.75", "cup 0.125"]
    assert page.evaluate("window.hacked") is None
    assert opened(e).locator(".classes").count() == 0


def test_view_of_another_domain_is_coloured_and_can_be_pointed_at(opened, monkeypatch):
    """Elements with `data-feature` are coloured, and hovering shows their numbers."""
    monkeypatch.setitem(registry._ADDED["domains"], "series", series_domain())
    weights = np.repeat([0.0, 1.0, -2.0, 0.5, 0.0], 4)
    explainer = eblime.Explainer(lambda batch: batch @ weights, kind="series", n_masks=32)
    page = opened(explainer.explain(np.ones(20), rng=0))
    shape = page.locator("rect[data-feature='2']")
    fill = "e => [getComputedStyle(e).fill, Number(getComputedStyle(e).fillOpacity)]"

    assert shape.evaluate(fill) == ["rgb(213, 94, 0)", pytest.approx(STRONGEST, rel=0.01)]
    assert page.locator("figure rect[data-feature='1']").evaluate(fill)[0] == "rgb(0, 158, 115)"
    page.locator("rect[data-feature='3']").hover()
    assert page.locator(".detail h3").inner_text() == "segment 3 <b>"
    assert page.locator("figure svg .halo").count() == 2
    page.locator("span[data-feature='1']").hover()
    assert page.locator(".detail h3").inner_text() == "segment 1 <b>"
    assert "Underlined" in page.locator(".legend").inner_text()


def interacting():
    """An explanation whose indices differ."""

    def model(batch):
        seen = (batch[:, 2::4, 2::5].max(axis=3) > 0).reshape(len(batch), 9)  # the nine cells
        return seen[:, :6].all(axis=1) + 0.3 * seen[:, 7] + 0.2 * seen[:, 6]

    explainer = eblime.ImageExplainer(
        model, segmentation=GRID, hide=0, n_masks=60, method="quadrature"
    )
    return explainer.explain(IMAGE)


def test_the_reader_switches_the_index(opened):
    """Numbers, order of the rows, colours and sentence are those of the index."""
    e = interacting()
    page = opened(e)
    shapley = e.importances("shapley")
    order = np.argsort(-np.abs(shapley.mean), kind="stable")
    assert order.tolist() != np.argsort(-np.abs(e.posterior.mean), kind="stable").tolist()
    first = page.locator("tbody tr").first
    assert page.locator(".index input:checked").get_attribute("value") == "lime"
    page.locator("path[data-feature='7']").hover()

    page.locator(".index input[value=shapley]").check()

    rows = page.locator("tbody tr")
    features = rows.evaluate_all("rows => rows.map(row => Number(row.dataset.feature))")
    assert features == order.tolist()
    assert rows.evaluate_all("rows => rows.filter(r => r.classList.contains('more')).length") == (
        max(0, len(order) - 12)
    )
    shown = float(first.locator(".value").inner_text().replace("\u2212", "-"))
    assert shown == pytest.approx(shapley.mean[order[0]], abs=1e-3)
    assert "Shapley values" in page.locator(".estimand").inner_text()
    assert page.locator("tr.chosen").get_attribute("data-feature") == "7"
    with page.expect_download() as saved:
        page.locator("button.csv").click()
    assert saved.value.suggested_filename.endswith("-shapley.csv")
    text = saved.value.path().read_text(encoding="utf8")
    table = list(csv.DictReader(text.splitlines()))
    assert float(table[0]["mean"]) == pytest.approx(shapley.mean[order[0]], rel=1e-4)

    page.locator(".index input[value=lime]").check()
    shown = float(first.locator(".value").inner_text().replace("\u2212", "-"))
    assert shown == pytest.approx(max(e.posterior.mean, key=abs), abs=1e-3)


def hidden_cases():
    """An image, a row and a text, whose page can hide parts."""
    rows = np.random.default_rng(0).random((50, 6))
    row = eblime.TabularExplainer(lambda x: 200 + x[:, 0] * x[:, 1] - x[:, 2], rows, n_masks=40)
    text = eblime.TextExplainer(
        lambda texts: [("good" in t) / (1 + ("slow" in t)) - 0.1 * ("but" in t) for t in texts],
        n_masks=60,
    )
    words = "a good film but slow and with too much talk in it"
    return {"image": explained(), "row": row.explain(rows[0]), "text": text.explain(words)}


@pytest.mark.parametrize("kind", ["image", "row", "text"])
def test_hiding_parts_shows_the_prediction_and_the_answer(opened, kind):
    """The numbers are those of `predict` and `asked`; parts are buttons with a state."""
    e = hidden_cases()[kind]
    p = e.scene.n_features
    page = opened(e)
    box = page.locator(".what-if")
    assert not box.is_visible()
    page.locator("#hiding").check()

    def compare(mask):
        shown = json.loads(box.get_attribute("data-predicted"))
        found, known = e.predict(mask), e.asked(mask)
        assert shown[:3] == pytest.approx([found.mean[0], found.low[0], found.high[0]], abs=1e-3)
        assert shown[3] == (None if known is None else pytest.approx(known, abs=1e-3))
        assert ("The model was asked:" in box.inner_text()) == (known is not None)

    compare(np.ones(p))
    order, mask = e.posterior.order(), np.ones(p)
    for j in order[:3]:
        page.locator(f"tr[data-feature='{j}'] button.hide").click()
        mask[j] = 0
        compare(mask)
        pressed = page.locator(f"tr[data-feature='{j}'] button.hide")
        assert pressed.get_attribute("aria-pressed") == "true"
        assert e.features[j] in pressed.get_attribute("aria-label")
    page.get_by_role("button", name="Undo").click()
    mask[order[2]] = 1
    compare(mask)
    page.locator("tr.chosen").focus()
    page.keyboard.press("Enter")
    mask[order[2]] = 0
    compare(mask)
    page.get_by_role("button", name="Hide all").click()
    compare(np.zeros(p))
    page.get_by_role("button", name="Show only the top 5").click()
    mask[:] = 0
    mask[order[:5]] = 1
    compare(mask)
    asked = next(m for m in e.masks if 1 < m.sum() < p - 1)
    page.get_by_role("button", name="Show all").click()
    for j in np.flatnonzero(asked == 0):
        if page.locator(f"tr[data-feature='{j}']").is_visible():
            page.locator(f"tr[data-feature='{j}'] button.hide").click()
        else:
            page.evaluate(f"document.querySelector('tr[data-feature=\"{j}\"] button.hide').click()")
    compare(asked)
    page.locator("#level").fill("0")
    half = json.loads(box.get_attribute("data-predicted"))
    assert half[1] == pytest.approx(e.predict(asked, 0.5).low[0], abs=1e-3)


def test_clicking_a_part_hides_it_in_the_picture(opened):
    """A click on it again shows it; without the switch a click only points."""
    page = opened(explained())
    part = page.locator(".superpixels path[data-feature='5']")
    part.click()
    assert "gone" not in (part.get_attribute("class") or "")

    page.locator("#hiding").check()
    part.click()
    assert "gone" in part.get_attribute("class")
    part.click()
    assert "gone" not in part.get_attribute("class")


def test_a_small_plot_shows_the_fit(opened):
    """One dot per known answer, beside R²."""
    e = explained()
    page = opened(e)
    path = page.locator(".fit svg path").get_attribute("d")

    assert path.count("M") >= len(e.masks)


def test_the_index_is_switched_by_keyboard(opened):
    """The control is a group of radio buttons with a name."""
    page = opened(interacting())
    page.locator(".index input[value=lime]").focus()
    page.keyboard.press("ArrowRight")

    assert page.locator(".index input:checked").get_attribute("value") == "banzhaf"
    assert "Banzhaf values" in page.locator(".estimand").inner_text()
    assert page.get_by_role("group", name="index").count() == 1


def test_other_methods_have_no_switch(opened):
    """A regression has one estimand."""
    assert opened(explained()).locator(".index").count() == 0


def test_sliders_move_the_slices_of_a_volume(opened):
    """By keyboard too; lines in the other slices and the colours follow; it fits a phone."""
    noise = np.random.default_rng(0).random((12, 12, 12))
    explainer = eblime.VolumeExplainer(
        lambda b: b[:, :6, :6, 6:].mean(axis=(1, 2, 3)) + b[:, 6:, 6:, :6].max(axis=(1, 2, 3)),
        segmentation=("blocks", {"n": 2}),
        hide=0,
        n_masks=60,
    )
    e = explainer.explain(noise, rng=0)
    page = opened(e, width=390)
    sliders, places = page.locator(".panel input"), page.locator(".panel output")
    assert sliders.count() == 3
    sliders.first.focus()
    page.keyboard.press("Home")
    assert places.first.inner_text() == "z = 0 voxels"
    assert sliders.first.get_attribute("aria-valuetext") == "z = 0 voxels"
    below = page.locator(".panel .slice").nth(2)
    assert float(below.locator(".cut").first.get_attribute("y1")) == pytest.approx(
        1000 / 24, abs=0.1
    )

    page.locator(".panel .slice path[data-feature='1']").first.hover()
    assert page.locator(".detail h3").inner_text() == e.features[1]
    assert places.first.inner_text() == "z = 0 voxels"  # the slice under the pointer stays
    second = int(e.posterior.order()[1])
    page.locator(".volume").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.locator(".detail h3").inner_text() == e.features[second]
    shown = page.locator(f".panel:has(input) path[data-feature='{second}']")
    assert shown.count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_windows_of_a_signal_by_pointer_keyboard_and_level(opened):
    """Hover and arrow keys choose a window; the level decides which are hatched."""
    noise = np.random.default_rng(0)

    def model(batch):
        return batch[:, 0, 20:40].mean(axis=1) + 0.3 * noise.normal(size=len(batch))

    cells = ("cells", {"n": 5})
    explainer = eblime.SignalExplainer(model, cells, hide="zero", channels=["<i>x</i>", "y"])
    e = explainer.explain(np.ones((2, 100)), rng=0)
    page = opened(e, width=390)
    page.locator("figure rect[data-feature='7']").hover()
    assert page.locator(".detail h3").inner_text() == e.features[7]
    assert page.locator(".signal .halo").count() == 2
    page.locator(".signal").focus()
    page.keyboard.press("Home")
    first = int(e.posterior.order()[0])
    assert page.locator(".detail h3").inner_text() == e.features[first]

    drawn = "lines => lines.filter(l => getComputedStyle(l).display !== 'none').length"
    for step, level in ((0, 0.5), (10, 0.99)):
        page.locator("#level").fill(str(step))
        low, high = e.posterior.interval(level).T
        assert page.locator(".hatch").evaluate_all(drawn) == int(((low < 0) & (high > 0)).sum())
    assert "Hatched: the 99 % interval contains zero" in page.locator(".legend").inner_text()
    assert page.locator(".signal text").first.text_content() == "<i>x</i>"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_long_text_shows_what_is_chosen(opened):
    """The most important part at first, and each row that is pointed at; the page stays."""
    sources = {f"note {k}": f"Cats number {k}. " * 20 for k in range(60)}
    model = lambda prompts: [2.0 * ("number 50" in p) + ("number 3." in p) for p in prompts]  # noqa: E731
    page = opened(eblime.PromptExplainer(model, sources, n_masks=256).explain("Which?"))

    def inside(feature):
        return page.evaluate(
            """(feature) => {
              const place = (name) => document.querySelector(name).getBoundingClientRect();
              const [box, mark] = [".document", `mark[data-feature="${feature}"]`].map(place);
              return box.top <= mark.top && mark.top < box.bottom;
            }""",
            feature,
        )

    assert (inside(50), inside(3)) == (True, False)
    page.locator("tbody tr").nth(1).hover()
    assert (inside(50), inside(3)) == (False, True)
    assert page.evaluate("scrollY") < 2000
