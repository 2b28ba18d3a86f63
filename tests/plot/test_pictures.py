"""Every plot kind, and what maps show."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from skimage import data

import eblime
from eblime import registry
from eblime.plot.charts import compare

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def explanation():
    """A photo, and a model that looks at its centre."""
    photo = data.astronaut()[:200:2, 100:300:2]
    return eblime.ImageExplainer(
        lambda batch: batch[:, 30:60, 30:60].mean(axis=(1, 2, 3)) / 255, n_masks=150
    ).explain(photo)


@pytest.fixture(scope="module")
def others():
    """A row of a table and a text, for the plots that need them."""
    rows = np.random.default_rng(0).random((50, 12))
    row = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=100).explain(rows[0])
    text = eblime.TextExplainer(lambda texts: [len(text) for text in texts], n_masks=100)
    blocks = eblime.VolumeExplainer(
        lambda batch: batch[:, 0].mean(axis=(1, 2)), segmentation=("blocks", {"n": 2}), n_masks=100
    )
    volume = blocks.explain(rows.reshape(10, 10, 6))
    windows = eblime.SignalExplainer(lambda batch: batch[:, :50].mean(axis=1), n_masks=100)
    return {
        "signal": windows.explain(rows.ravel()[:200]),
        **{"means": row, "slices": volume, "projections": volume},
        "text": text.explain("a good film, a good story and a happy end"),
    }


def test_compare_two_explanations(explanation):
    """One row per feature with two marks; different features are refused."""
    drawn = compare({"EBLIME": explanation, "BayesLIME": explanation.refit("bayeslime")}, top=6)

    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["EBLIME", "BayesLIME"]
    assert len(drawn.get_yticklabels()) == 6
    other = eblime.ImageExplainer(
        lambda batch: batch.mean(axis=(1, 2)), segmentation="grid", hide=0, n_masks=60
    ).explain(np.random.default_rng(0).random((14, 14)))
    with pytest.raises(ValueError, match=r"must have the same features"):
        compare({"one": explanation, "other": other})


@pytest.mark.parametrize("layout", ["grey", "first", "float"])
def test_maps_accept_any_image_layout(layout):
    """Grey, channel-first and float images are drawn as RGB photos."""
    photo = data.astronaut()[:60:2, 100:160:2]
    layouts = {"grey": photo[..., 0], "first": photo.transpose(2, 0, 1), "float": photo / 99.0}
    e = eblime.ImageExplainer(
        lambda batch: batch.reshape(len(batch), -1).mean(axis=1),
        segmentation="grid",
        hide=0,
        n_masks=80,
    ).explain(layouts[layout])

    assert e.plot("map").get_images()[0].get_array().shape == (30, 30, 3)


def test_unknown_kind_is_refused(explanation):
    """The error lists the known kinds."""
    with pytest.raises(ValueError, match=r"`kind` must be one of 'intervals', 'means'"):
        explanation.plot("pie")


class Fixed:
    """A posterior with some summaries replaced."""

    def __init__(self, posterior, **summaries):
        self._posterior = posterior
        self.__dict__.update(summaries)

    def __getattr__(self, name):
        return getattr(self._posterior, name)

    def order(self):
        """By the replaced means."""
        return np.argsort(-np.abs(self.mean), kind="stable")


def fixed(explanation, **summaries):
    """The same explanation with other means or standard deviations."""
    return dataclasses.replace(explanation, posterior=Fixed(explanation.posterior, **summaries))


def test_uncertainty_starts_at_zero(explanation):
    """Standard deviations that differ by 15 % get similar colours; the bar has a label."""
    sd = np.linspace(0.1, 0.115, explanation.scene.n_features)
    drawn = fixed(explanation, sd=sd).plot("map", of="uncertainty")
    field = drawn.get_images()[1]

    assert field.get_clim() == (0, pytest.approx(0.115))
    assert np.ptp(field.norm(sd)) < 0.15
    assert "sd of the importance" in [panel.get_ylabel() for panel in drawn.figure.axes]


def test_equal_uncertainties_become_the_probability_of_the_top(explanation):
    """A map in one colour says nothing; the reason is written below."""
    sd = np.linspace(0.1, 0.105, explanation.scene.n_features)
    drawn = fixed(explanation, sd=sd).plot("map", of="uncertainty")

    assert "P(among the top 5)" in drawn.get_title("left")
    assert "all sds are about 0.1" in drawn.get_xlabel()


def test_colours_are_as_strong_as_what_is_certain(explanation):
    """The end of the interval nearest to zero, divided by the largest mean."""
    from eblime.plot.style import signed_shares

    p = explanation.scene.n_features
    low, high = np.full(p, -1.0), np.full(p, 1.0)
    low[:3], high[:3] = (3.0, -3.0, 1e-6), (5.0, -1.0, 0.1)
    mean = np.zeros(p)
    mean[:3] = 4.0, -2.0, 0.05
    ends = np.stack([low, high], axis=1)
    shares = signed_shares(fixed(explanation, mean=mean, interval=lambda prob=0.95: ends))

    assert shares[:2] == pytest.approx([0.75, -0.25])
    assert 0 < shares[2] < 1e-6
    assert not shares[3:].any()


def test_a_colour_adds_the_same_on_dark_and_on_bright_parts():
    """What it adds beyond grey does not depend on the photo below."""
    from eblime.plot.maps import tinted

    photo = np.linspace(0, 1, 12).reshape(1, 4, 3)
    shown = tinted(photo, np.zeros((1, 4), dtype=int), np.array([0.8]))
    chroma = shown - shown[..., :1]

    assert np.abs(chroma - chroma[0, 0]).max() < 1e-12
    assert np.abs(chroma).max() > 0.1
    assert np.all(np.diff(shown[0, :, 0]) > 0)


def test_the_untouched_input_is_on_the_left(explanation):
    """In colour and without outlines; both panels have the truth, if it is given."""
    drawn = explanation.plot("map")
    left = drawn.figure.axes[1]
    truth = np.zeros(explanation.segments.shape, dtype=bool)
    truth[10:40, 10:40] = True
    share = explanation.mask(5)[truth].mean()
    marked = explanation.plot("map", truth=truth)

    np.testing.assert_array_equal(left.get_images()[0].get_array(), explanation.scene.photo())
    assert len(left.collections) == 0
    assert len(marked.figure.axes[1].collections) == 2
    assert f"{100 * share:.0f} % of it is under the top 5" in marked.get_xlabel()
    with pytest.raises(ValueError, match=r"`truth` must be a mask \(100, 100\)"):
        explanation.plot("map", truth=truth[1:])


def test_intervals_smaller_than_dots_are_told_in_words(explanation):
    """The widest half is below the axis; visible intervals need no words."""
    rng, p = np.random.default_rng(0), explanation.scene.n_features
    masks = rng.integers(0, 2, size=(400, p)).astype(float)

    def drawn(noise):
        scores = masks @ np.arange(p) + noise * rng.normal(size=400)
        return dataclasses.replace(explanation, posterior=eblime.fit(masks, scores)).plot()

    assert "smaller than the dots:\n±" in drawn(1e-3).get_xlabel()
    assert "smaller than the dots" not in drawn(10.0).get_xlabel()


def test_uncertainty_can_be_min_max_scaled(explanation):
    """As in the paper's figure."""
    field = explanation.plot("map", of="variance").get_images()[1].get_array()

    assert (field.min(), field.max()) == (0, 1)


def test_overlay_strength_is_proportional_to_importance(explanation):
    """On a uniform photo an importance of half the size changes the colour half as much."""
    flat = dataclasses.replace(explanation.scene, shown=np.full_like(explanation.scene.shown, 128))
    mean = np.zeros(explanation.scene.n_features)
    mean[:2] = 0.2, 0.1
    e = dataclasses.replace(fixed(explanation, mean=mean, has_spread=False), scene=flat)
    shown = e.plot("map", top=2).get_images()[0].get_array()
    strength = [np.abs(shown[flat.labels == j][0] - 128 / 255).max() for j in (0, 1)]

    assert strength[1] == pytest.approx(strength[0] / 2)


@pytest.fixture(scope="module")
def noise():
    """A score that has nothing to do with the image."""
    scores = np.random.default_rng(1)
    image = np.random.default_rng(0).random((24, 24))
    explainer = eblime.ImageExplainer(
        lambda batch: 0.5 + scores.random(len(batch)), segmentation="grid", hide=0, n_masks=150
    )
    e = explainer.explain(image)
    (low, high), post = e.posterior.interval().T, e.posterior
    order = [*np.flatnonzero((low < 0) & (high > 0)), *np.flatnonzero((low > 0) | (high < 0))]
    mean = np.linspace(1, 0.1, len(order))[np.argsort(order)]  # the uncertain ones come first
    return fixed(dataclasses.replace(e, posterior=post), mean=mean)


def test_a_map_of_noise_has_no_colours_and_says_so(noise):
    """Superpixels with an uncertain sign stay grey, and a low R^2 is written below the image."""
    drawn = noise.plot("map")
    shown = drawn.get_images()[0].get_array()

    assert np.ptp(shown, axis=-1).max() == 0
    assert "do not rely on this picture" in written(drawn)
    assert "the 95 % interval contains zero" in drawn.get_xlabel()


@pytest.mark.parametrize("of", ["mean", "uncertainty", "variance", "top_k", "sign"])
def test_every_map_says_when_the_fit_predicts_nothing(noise, of):
    """In the image."""
    assert "do not rely on this picture" in written(noise.plot("map", of=of))


def test_a_map_of_a_good_fit_has_no_warning(explanation):
    """Nor that nothing is certain."""
    words = written(explanation.plot("map", top=1))

    assert "rely" not in words
    assert "nothing" not in words


def test_a_picture_in_which_nothing_is_certain_says_so(explanation):
    """Across it, with the number of masks; one certain part is enough to say nothing."""
    ends = np.tile([-1.0, 1.0], (explanation.scene.n_features, 1))
    unsure = fixed(explanation, interval=lambda prob=0.95: ends)
    assert "nothing certain with 150 masks" in written(unsure.plot("map"))

    ends[0] = 0.5, 1.0
    assert "nothing certain" not in written(unsure.plot("map"))


@pytest.mark.parametrize(("size", "said"), [(0.001, True), (0.1, False)])
def test_scores_that_barely_move_are_told_in_the_picture(size, said):
    """A range below 1 % of the scores; the page says it, too."""
    image = np.random.default_rng(0).random((12, 12))
    explainer = eblime.ImageExplainer(
        lambda batch: 0.99 + size * batch[:, :6].mean(axis=(1, 2)), segmentation="grid", hide=0
    )
    e = explainer.explain(image)

    assert ("the scores barely move: 0.99" in written(e.plot("map"))) == said
    assert ("the scores barely move" in e.to_html()) == said


def written(ax):
    """All words in a picture, without line breaks."""
    return " ".join(text.get_text() for text in ax.texts).replace("\n", " ")


def test_mean_map_is_centred_at_zero(explanation):
    """Every superpixel is coloured by its mean."""
    field = explanation.plot("map", of="mean").get_images()[1]
    mean = explanation.posterior.mean

    assert field.get_clim() == (-np.abs(mean).max(), np.abs(mean).max())
    np.testing.assert_array_equal(field.get_array(), mean[explanation.scene.labels])


def test_posterior_maps_draws_means_and_sds(explanation):
    """One figure with two maps, each with a colour bar."""
    figure = eblime.plot.maps.posterior_maps(explanation)

    assert [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")] == [
        "output: posterior mean",
        "output: P(among the top 5)",  # all sds are about equal
    ]
    assert len(figure.axes) == 4


@pytest.mark.parametrize("kind", registry.names("plots"))
def test_every_title_names_the_class(explanation, others, kind):
    """The title of every kind says which output was explained."""
    named = dataclasses.replace(others.get(kind, explanation), label="red kite")

    assert "red kite" in named.plot(kind).get_title(loc="left")


def numbers_on(ax):
    """The numbers written on a map."""
    return [text.get_text() for text in ax.texts]


def test_listed_superpixels_are_numbered_on_the_map(explanation):
    """In the poster, and in the separate plots by default."""
    for left, right in (
        (explanation.plot("map"), explanation.plot("intervals", top=5)),
        (explanation.plot("map", of="mean", numbered=15), explanation.plot("intervals")),
        eblime.plot.poster.poster(explanation).axes[0:3:2],
    ):
        listed = [tick.get_text().split(",")[0] for tick in right.get_yticklabels()]

        assert {f"superpixel {number}" for number in numbers_on(left)} == set(listed)


def test_numbers_are_inside_their_superpixel(explanation):
    """In the coordinates of the image."""
    labels = explanation.scene.labels
    for text in explanation.plot("map").texts:
        column, row = (round(value) for value in text.get_position())

        assert labels[row, column] == int(text.get_text())


@pytest.fixture(scope="module")
def large():
    """A photo of 3,001 x 2,003 pixels in stripes, and one superpixel of a single pixel."""
    shape = (2003, 3001)
    labels = np.broadcast_to(np.arange(shape[1]) // 601, shape).copy()
    labels[1, 1] = 5
    pixels = np.random.default_rng(0).integers(0, 255, (*shape, 3), dtype=np.uint8)
    explainer = eblime.ImageExplainer(
        lambda batch: batch[:, 0, ::601, 0] @ np.arange(5.0) + 0.0 * batch[:, 1, 1, 0],
        segmentation=labels,
        hide=0,
        n_masks=40,
        calls=eblime.Calls(batch_size=4),
    )
    return explainer.explain(pixels)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["importance", "mean", "uncertainty", "top_k", "sign"])
def test_large_photos_are_drawn_at_screen_resolution(large, of):
    """Arrays have at most 1,000 pixels per side; the axes keep the image's coordinates."""
    drawn = large.plot("map", of=of)

    assert all(max(image.get_array().shape[:2]) <= 1001 for image in drawn.get_images())
    assert drawn.get_xlim() == (-0.5, 3000.5)
    assert drawn.get_ylim() == (2002.5, -0.5)
    for text in drawn.texts:
        column, row = (round(value) for value in text.get_position())
        assert large.scene.labels[row, column] == int(text.get_text())


def test_reduced_photo_is_the_mean_of_its_blocks():
    """Colours, values outside [0, 1] and thin images, compared with a plain loop."""
    from eblime.domains.image.scene import ImageScene

    rng = np.random.default_rng(0)
    for shown, axis in (
        (rng.integers(0, 255, (23, 40, 3), dtype=np.uint8), 2),
        (rng.normal(size=(3, 23, 40)), 0),
        (rng.random((1, 40)), None),
    ):
        scene = ImageScene(shown=shown, hidden=shown, labels=None, channel_axis=axis)
        whole, small = scene.photo(), scene.photo(10)
        down, across = min(4, len(whole)), 4

        assert small.shape[1] == 10
        for row in range(len(whole) // down):
            for column in range(10):
                block = whole[row * down :, column * across :][:down, :across]
                np.testing.assert_allclose(small[row, column], block.mean(axis=(0, 1)))


def test_densities_of_very_different_widths_are_all_drawn():
    """Each has points of its own, so that a narrow one is not missed between two points."""
    words = " ".join(f"w{k}" for k in range(8))
    e = eblime.TextExplainer(
        lambda texts: [t.count("w") + 1e-5 * ("w1" in t) * ("w2" in t) for t in texts], n_masks=60
    ).explain(words, rng=0)
    drawn = e.plot("density", top=8)
    heights = [line.get_ydata().max() for line in drawn.get_lines()[:-1]]  # the last is at zero

    assert len(heights) == 8
    for j, height in zip(e.posterior.order(), heights, strict=True):
        assert height == pytest.approx(0.4 / e.posterior.sd[j], rel=0.5)  # about a normal's


@pytest.mark.parametrize("decades", [1, 2.5, 6, 30])
def test_long_log_scales_have_few_numbers(decades):
    """So that they do not overlap; a short scale has numbers at 2 and 5 too."""
    from eblime.plot.style import axes, log_ticks

    ax = axes(None, (6.4, 3.0))
    ax.plot([1e-3, 1e-3 * 10**decades], [0, 1])
    log_ticks(ax)
    low, high = ax.get_xlim()
    shown = [tick for tick in ax.get_xticks() if low <= tick <= high]

    assert 2 <= len(shown) <= 12


def test_words_of_wide_characters_stay_inside_the_figure():
    """A wide character takes two columns."""
    text = "日本語" * 20
    e = eblime.TextExplainer(
        lambda texts: [len(t) for t in texts], tokens=lambda text: [text[:30], text[30:]]
    ).explain(text)
    drawn = e.plot("text", columns=20)

    lines = Counter(part.get_position()[1] for part in drawn.texts)

    assert max(lines.values()) == 10


def test_a_text_needs_a_column():
    """A width of zero columns is refused by name."""
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one two")
    with pytest.raises(ValueError, match="`columns` must be >= 1"):
        e.plot("text", columns=0)


def strip(height, width, **settings):
    """An explanation of a long image."""
    image = np.random.default_rng(0).random((height, width))
    pieces = {"rows": min(height, 5), "columns": min(width, 5)}
    return eblime.ImageExplainer(
        lambda batch: 1e-6 * batch[:, 0, 0],
        segmentation=("grid", pieces),
        hide=0,
        n_masks=60,
        labels=["Italian greyhound, miniature pinscher and others"],
        **settings,
    ).explain(image)


def inside(figure, text):
    """Whether a text is inside its figure."""
    box = text.get_window_extent()
    return box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


@pytest.mark.parametrize("shape", [(4, 200), (200, 4), (30, 30)])
def test_long_class_names_stay_inside_the_figure(shape):
    """Labels and titles are not cut off, in single plots and in the poster."""
    e = strip(*shape)
    figures = [e.plot(kind).figure for kind in ("map", "intervals", "convergence")]
    figures.append(eblime.plot.poster.poster(e))

    for figure in figures:
        figure.draw_without_rendering()
        for ax in figure.axes:
            texts, title = ax.findobj(matplotlib.text.Text), ax.get_title("left")
            titles = [text for text in texts if text.get_text() == title]
            for text in (ax.xaxis.label, ax.yaxis.label, *titles):
                assert not text.get_text() or inside(figure, text), text


def test_the_power_of_ten_does_not_overlap_the_label():
    """Beside it is room for the power of ten of the ticks."""
    figure = eblime.plot.poster.poster(strip(30, 30))
    figure.draw_without_rendering()
    (axis,) = [ax.xaxis for ax in figure.axes if ax.get_xlabel().startswith("importance")]

    assert axis.get_offset_text().get_text().startswith("1e")
    assert not axis.label.get_window_extent().overlaps(axis.get_offset_text().get_window_extent())


@pytest.mark.parametrize("method", ["eblime", "lime"])
def test_numbers_of_the_ticks_do_not_overlap(method):
    """Also in the narrow panel of the poster, and for small numbers with many digits."""
    image = np.random.default_rng(0).random((30, 30))
    explainer = eblime.ImageExplainer(
        lambda batch: 2e-3 * batch[:, 0, 0] - 7e-4 * batch[:, -1, -1], segmentation="grid", hide=0
    )
    figure = eblime.plot.poster.poster(explainer.explain(image).refit(method))
    figure.draw_without_rendering()
    (ax,) = [ax for ax in figure.axes if ax.get_xlabel().startswith("importance")]
    boxes = [tick.get_window_extent() for tick in ax.get_xticklabels() if tick.get_text()]
    boxes.sort(key=lambda box: box.x0)

    assert len(boxes) > 2
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_figures_have_the_shape_of_the_image():
    """A wide scan is drawn wide, and not as a thin line in a square figure."""
    wide, tall = strip(10, 200).plot("map").figure, strip(200, 10).plot("map").figure

    assert wide.get_figwidth() > 3 * wide.get_figheight()
    assert 2 * tall.get_figheight() > 1.5 * tall.get_figwidth()  # of two panels


def test_superpixels_without_effect_are_grey():
    """Orange would say that they lower the score."""
    image = np.random.default_rng(0).random((8, 8))
    constant = eblime.ImageExplainer(lambda batch: np.ones(len(batch)), segmentation="grid")
    e = constant.explain(image.repeat(4, axis=0).repeat(4, axis=1))
    outlines = [c for c in e.plot("map").collections if len(c.get_edgecolor())]

    assert len(outlines) == 5
    grey = matplotlib.colors.to_rgba(eblime.plot.style.NEUTRAL)
    assert {tuple(c.get_edgecolor()[0]) for c in outlines} == {grey}


def test_a_single_step_of_convergence_is_visible():
    """All four masks of two features: one point with its interval, not an empty plot."""
    halves = ("grid", {"rows": 1, "columns": 2})
    e = eblime.ImageExplainer(
        lambda batch: batch[:, 0, 0] + batch[:, 0, -1] ** 2, segmentation=halves, hide=0
    ).explain(np.array([[0.5, 0.9], [0.1, 0.8]]))
    drawn = e.plot("convergence")

    marked = [line for line in drawn.lines if line.get_marker() == "o"]
    assert sorted(line.get_ydata()[-1] for line in marked) == sorted(e.posterior.mean)


def test_rows_of_intervals_keep_a_distance_from_the_frame():
    """Also if there are only one or two."""
    low, high = strip(1, 2).plot("intervals").get_ylim()

    assert low <= -0.5
    assert high >= 1.5


PLOTS_OF = {"map": "image", "signal": "signal", "slices": "volume"}


@pytest.mark.parametrize("kind", PLOTS_OF)
def test_pictures_of_other_inputs_are_refused(explanation, others, kind):
    """By the kind of explanation that a picture needs; an unknown kind lists those that suit."""
    for shown in (explanation, *others.values()):
        with pytest.raises(ValueError, match=r"`kind` must be one of .*'intervals'") as refused:
            shown.plot("pie")
        assert (f"'{kind}'" in str(refused.value)) == (shown.scene.domain == PLOTS_OF[kind])
        if shown.scene.domain != PLOTS_OF[kind]:
            with pytest.raises(TypeError, match=r"needs an? \w+ explanation"):
                shown.plot(kind)
