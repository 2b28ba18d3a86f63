"""The HTML of pages and notebooks: safe with any names, small, and correct."""

import base64
import dataclasses
import errno
import hashlib
import io
import json
import os
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from hostile import NASTY, SCRIPT, names, renamed
from hypothesis import example, given
from PIL import Image
from test_storage import explained

import eblime
from eblime._repr import describe
from eblime._text import printable
from eblime.answers import Answers
from eblime.domains.image.scene import ImageScene
from eblime.domains.tabular import TableScene
from eblime.kernels import ExponentialKernel, uniform
from eblime.reporting.page import describe_kernel, describe_settings
from eblime.reporting.views import outlines
from eblime.results.notes import notes

EXPLAINED = explained(rng=0)
QUICK = explained("bayeslime", rng=0)  # without numerical integration, for many pages


class Reader(HTMLParser):
    """Collects the tags, attributes and texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], {}, []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        """Record the tag and its attributes."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        self.open.append(tag)

    def handle_endtag(self, tag):
        """Close the tag."""
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        """Record the text inside the open tag."""
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


PLAIN = Reader(EXPLAINED.to_html())
PLAIN_QUICK = Reader(QUICK.to_html())


SPECIAL = set("$_\x00\ud800")  # characters that matplotlib reads as more than text, or cannot draw
DRAWN = [
    pytest.param(name, marks=() if SPECIAL & set(name) else pytest.mark.slow) for name in NASTY
]


def any_name(test):
    """Run a test with every name of the list, and with other texts."""
    for name in NASTY:
        test = example(name=name)(test)
    return given(name=names)(test)


@any_name
def test_hostile_names_are_text_in_the_page(name):
    """The tags do not depend on the names, there are no handlers, and the names are readable."""
    page = renamed(QUICK, name).to_html()
    found = Reader(page)
    data = json.loads(found.text["script"][0])

    page.encode("utf8")
    assert found.tags == PLAIN_QUICK.tags
    assert not [attribute for attribute in found.attributes if attribute.startswith("on")]
    assert printable(name) in data["name"]
    assert "".join(found.text["bdi"]).count(printable(name)) >= len(QUICK.features) or not name


@any_name
def test_hostile_names_are_text_in_the_notebook(name):
    """The tags do not depend on the names."""
    found = Reader(renamed(QUICK, name)._repr_html_())

    assert found.tags == Reader(QUICK._repr_html_()).tags
    assert "script" not in found.tags


@any_name
def test_hostile_names_survive_json(name):
    """The names are equal after writing as UTF-8 and reading."""
    text = renamed(QUICK, name).to_json().encode("utf8")
    found = json.loads(text)

    assert found["label"] == name
    assert found["features"][0]["name"] == name


@any_name
def test_hostile_names_print_without_control_characters(name):
    """The table has its usual number of lines, and nothing has control characters.

    Notes below it may name features, and are broken into lines by their length.
    """
    text = str(renamed(QUICK, name))
    tables = [shown.split("Importances are")[0] for shown in (text, str(QUICK))]

    assert len(tables[0].splitlines()) == len(tables[1].splitlines())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    text.encode("utf8")


@pytest.mark.filterwarnings("ignore:.*[Gg]lyph")  # our font has no emoji
@pytest.mark.filterwarnings("ignore:Matplotlib currently does not support")
@pytest.mark.parametrize("name", DRAWN)
def test_hostile_names_can_be_drawn(name):
    """No formula is parsed, and no legend entry is missing."""
    e = renamed(QUICK, name)
    axes = {kind: e.plot(kind) for kind in ("intervals", "density", "ranks", "map")}
    for drawn in axes.values():
        drawn.figure.canvas.print_figure("/dev/null", format="png")

    assert len(axes["density"].get_legend().get_texts()) == 5


def test_policy_allows_only_the_style_and_script_of_the_page():
    """The policy has the hashes of one style and one script; the page requests nothing."""
    page = EXPLAINED.to_html()
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for source, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy
    assert PLAIN.tags.count("script") == 2  # the data and the script
    assert "style" not in PLAIN.attributes
    assert "http" not in EXPLAINED.to_html().replace("http-equiv", "").replace(
        "http://www.w3.org/2000/svg", ""
    )


@pytest.mark.parametrize("p", [500, pytest.param(2000, marks=pytest.mark.slow)])
def test_page_with_many_features_is_small(rng, p):
    """Under 400 KB without the photo, with long names."""
    masks = rng.integers(0, 2, (300, p)).astype(float)
    scores = masks @ rng.standard_normal(p)
    names = [f"word {j} of many" for j in range(p)]
    scene = TableScene(features=names, columns=names, values=names)
    answers = Answers(masks=masks, scores=scores, weights=np.ones(300))
    post = eblime.fit(masks, scores, method="bayeslime")
    e = dataclasses.replace(EXPLAINED, posterior=post, scene=scene, answers=answers)
    page = e.to_html()

    assert len(page.encode()) < 400_000
    assert f"{p - 250} less important features are left out" in page


def test_several_explanations_share_one_page(tmp_path):
    """The page has a list with links, and is written to the given path."""
    page = eblime.report([EXPLAINED, explained("bayeslime")], tmp_path / "r.html", title="Two")

    assert page == (tmp_path / "r.html").read_text(encoding="utf8")
    assert page.count('class="explanation"') == 2
    assert "<title>Two</title>" in page


@pytest.mark.parametrize(
    ("given_", "words"), [([], "an empty list"), (["x"], "got str"), (3, "got int")]
)
def test_report_refuses_other_objects(given_, words):
    """And an empty list."""
    with pytest.raises(TypeError, match=words):
        eblime.report(given_)


@pytest.mark.parametrize("k", [0, "five", 2.5])
def test_report_refuses_a_k_that_is_not_a_count(k):
    """Also for a point estimate."""
    with pytest.raises((TypeError, ValueError), match="`k` must be"):
        eblime.report(explained("lime"), k=k)


@pytest.mark.parametrize("unit", [1e-300, 1e-308])
def test_tiny_scores_have_a_page(unit):
    """Densities of 1e300 and more are drawn, or left out, without warnings."""
    model = lambda texts: [unit * ("good" in t) for t in texts]  # noqa: E731
    e = eblime.TextExplainer(model).explain("a good film")

    assert "<html" in e.to_html()
    assert (e.posterior.pdf(e.posterior.mean) > 0).all()


def test_page_warns_about_a_poor_fit():
    """The note comes first, in a coloured box."""
    scores = np.random.default_rng(0).random(EXPLAINED.answers.n_masks)
    answers = dataclasses.replace(EXPLAINED.answers, scores=scores)
    poor = dataclasses.replace(EXPLAINED, answers=answers, exhaustive=False).refit("eblime")

    assert "linear fit" in notes(poor)[0]
    assert 'class="note warning"' in poor.to_html()
    assert not any("linear fit" in note for note in notes(EXPLAINED)[:-1])


def test_settings_are_sentences():
    """The seed, the number of calls, the method and the versions, without Python syntax."""
    page = EXPLAINED.to_html()
    made = page[page.index("How this was made") :].partition("</details>")[0]

    for words in (
        "Model calls",
        "segmentation grid (rows 3, columns 3)",
        "exponential kernel on the Euclidean distance, width 2.25",
        "intercept flat",
        "Seed",
        "effective sample size",
    ):
        assert words in made
    assert not re.search(r"None|True|False|=|\(\)|&#39;", made.replace('class="', ""))


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (ExponentialKernel(distance="cosine"), "cosine distance, width 0.25"),
        (ExponentialKernel(width=3.0), "Euclidean distance, width 3"),
        (ExponentialKernel(distance="hamming", width=2.0), "hidden features, width 2"),
        (uniform, "all masks count the same"),
        (printable, "printable"),
        (None, "None"),
        (17, "17"),
    ],
    ids=["cosine", "width", "hamming", "uniform", "function", "none", "number"],
)
def test_kernels_are_described(stored, words):
    """Built-in kernels by what they do, functions by name."""
    assert words in describe_kernel(describe(stored), 9)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (eblime.EBLIME(), "intercept flat, scale 1, standardize, local"),
        (eblime.EBLIME(local=False), "standardize, no local"),
        (eblime.EBLIME.paper(), "n lambdas 2e+04"),
        (eblime.BayesLIME(), "intercept penalised"),
        (eblime.LIME(alpha=2.0), "alpha 2"),
    ],
)
def test_methods_are_described(method, words):
    """Without keywords, None or quotation marks."""
    found = describe_settings(describe(method))

    assert words in found
    assert not re.search(r"None|True|False|=|'", found)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"segmentation": "slic", "hide": "blur"}, "segmentation slic, hide blur"),
        ({"segmentation": np.eye(2), "hide": 0}, "segmentation ndarray, hide 0"),
        ({"segmentation": ("grid", {"rows": 2})}, "segmentation grid (rows 2)"),
        ({"tokens": "word", "bag": True, "hide": ""}, "tokens word, bag, hide nothing"),
        ({"perturb": printable}, "perturb printable"),
    ],
)
def test_inputs_are_described(about, words):
    """One phrase per setting."""
    assert words in describe_settings(describe(about))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3000, 4000), (60, 80)])
def test_photos_are_embedded_at_the_size_of_a_screen(shape):
    """The longer side has at most 960 pixels."""
    photo = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    labels = np.repeat(np.arange(4), shape[1] // 4)[None].repeat(shape[0], axis=0)
    scene = ImageScene(shown=photo, hidden=photo * 0, labels=labels, channel_axis=None)
    answers = Answers(masks=np.eye(4), scores=np.arange(4.0), weights=np.ones(4))
    post = eblime.fit(answers.masks, answers.scores)
    changes = {"posterior": post, "scene": scene, "answers": answers}
    page = dataclasses.replace(EXPLAINED, **changes).to_html()
    data = re.search(r'href="data:image/\w+;base64,([^"]+)"', page)[1]
    with Image.open(io.BytesIO(base64.b64decode(data))) as embedded:
        assert max(embedded.size) == min(960, shape[1])


def test_page_says_what_top_k_means():
    """The probability is about the fit; on pages of pictures, not about what they show."""
    words = "not the probability that the object or the defect is there"
    text = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")

    assert words in EXPLAINED.to_html()
    assert "It is about the fit." in text.to_html()
    assert not re.search(
        "object or|defect|superpixel|photo of",
        text.to_html().split("</style>")[1].split("<script>")[0],
    )


def covered(path, shape):
    """Pixels inside an SVG path of straight lines, by the even-odd rule."""
    inside = np.zeros(shape, dtype=bool)
    for loop in path.split("z")[:-1]:
        x, y = (int(number) for number in re.match(r"M(\d+) (\d+)", loop).groups())
        corners = [(x, y)]
        for way, run in re.findall(r"([hv])(-?\d+)", loop):
            x, y = (x + int(run), y) if way == "h" else (x, y + int(run))
            corners.append((x, y))
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
            if x0 == x1:
                inside[min(y0, y1) : max(y0, y1), x0:] ^= True
    return inside


@pytest.mark.parametrize("shape", [(7, 9), (1, 6), (6, 1), (15, 15)])
def test_outlines_enclose_exactly_their_superpixel(rng, shape):
    """Irregular labels with islands, holes and touching corners."""
    labels = np.unique(rng.integers(0, 4, shape), return_inverse=True)[1].reshape(shape)
    for j, path in enumerate(outlines(labels)):
        np.testing.assert_array_equal(covered(path, shape), labels == j)


def test_name_cannot_close_the_script():
    """A closing tag in a name is escaped."""
    page = renamed(EXPLAINED, SCRIPT).to_html()

    assert page.count("</script>") == 2


def test_failed_write_keeps_the_old_page(tmp_path, monkeypatch):
    """A full disk does not damage an existing page; a symbolic link is followed."""
    path, link = tmp_path / "page.html", tmp_path / "link.html"
    path.write_text("the old page")
    link.symlink_to(path)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        EXPLAINED.to_html(link)
    monkeypatch.undo()
    assert path.read_text() == "the old page"
    assert {entry.name for entry in tmp_path.iterdir()} == {"page.html", "link.html"}
    page = EXPLAINED.to_html(link)
    assert link.is_symlink()
    assert path.read_text(encoding="utf8") == page


def test_text_in_a_notebook_is_coloured():
    """By its own styles: signs have different colours, larger importances stronger ones."""
    scores = {"good": 1.0, "happy": 0.5, "awful": -1.0}
    e = eblime.TextExplainer(
        lambda texts: [sum(v for word, v in scores.items() if word in t) for t in texts]
    ).explain("a good, happy, awful film")
    found = e._repr_html_()
    colour, opacity = {}, {}
    for word in scores:
        (number,) = re.findall(rf'data-feature="(\d+)">{word}<', found)
        rule = re.search(rf'\[data-feature="{number}"\]{{fill:(#\w+);fill-opacity:([\d.]+)', found)
        colour[word], opacity[word] = rule[1], float(rule[2])

    assert colour["good"] == colour["happy"] != colour["awful"]
    assert opacity["good"] == pytest.approx(2 * opacity["happy"], abs=0.02)


@pytest.mark.filterwarnings("ignore:.*[Gg]lyph")  # our font has no emoji
@pytest.mark.filterwarnings("ignore:Matplotlib currently does not support")
@pytest.mark.parametrize("name", [*NASTY, '<meta http-equiv="refresh" content="0;url=//x.org">'])
def test_every_field_of_an_explanation_is_escaped(name):
    """In the page, in the notebook and on the terminal."""
    posterior = dataclasses.replace(QUICK.posterior, method=name, n_masks=name)
    provenance = {
        **dict.fromkeys(("method", "design", "kernel", "seed", "model_calls", "batch_size"), name),
        "input": {name: name},
        "versions": {name: name},
        name: name,
    }
    crafted = dataclasses.replace(QUICK, label=name, posterior=posterior, provenance=provenance)

    assert Reader(crafted.to_html()).tags == PLAIN_QUICK.tags
    assert Reader(crafted._repr_html_()).tags == Reader(QUICK._repr_html_()).tags
    shown, plain = (str(e).split("Importances are")[0] for e in (crafted, QUICK))
    assert len(shown.splitlines()) == len(plain.splitlines())
    assert "\x1b" not in str(crafted)
    crafted.plot("intervals").figure.canvas.print_figure("/dev/null", format="png")


def test_method_name_of_a_point_estimate_is_escaped():
    """The note that names the method has no control characters."""
    e = explained("lime")
    crafted = dataclasses.replace(
        e, posterior=dataclasses.replace(e.posterior, method="\x1b[2J\nevil")
    )

    assert "\x1b" not in str(crafted)
    assert len(str(crafted).splitlines()) == len(str(e).splitlines())
