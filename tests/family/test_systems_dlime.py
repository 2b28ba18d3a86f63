"""DLIME: the clusters and neighbours of scikit-learn, and explanations without chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.family import DLIME


def explain(model, background, x, *, settings=None, **explainer):
    """DLIME with as many masks as the background has rows, and one for the row itself."""
    asking = eblime.TabularExplainer(model, background, n_masks=len(background) + 1, **explainer)
    return DLIME(**(settings or {"method": "eblime"})).explain(asking, x)


@pytest.fixture
def rows(rng):
    """Two groups of rows, in columns of very different units."""
    groups = np.repeat([[0.0, 0.0, 0.0], [4.0, 4.0, 0.0]], 60, axis=0)
    return (groups + rng.normal(size=(120, 3))) * [1.0, 10.0, 1000.0]


def model(x):
    """Another slope in each group."""
    return np.where(x[:, 1] < 20, 2.0, -1.0) * x[:, 0]


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_neighbours_equal_the_recipe_of_the_original(rng, rows, n_clusters):
    """Agglomerative clustering and a ball tree of scikit-learn, on rows in standard deviations."""
    rows = rows / rows.std(axis=0)
    cluster = pytest.importorskip("sklearn.cluster")
    neighbors = pytest.importorskip("sklearn.neighbors")
    found = cluster.AgglomerativeClustering(n_clusters=n_clusters).fit_predict(rows)
    tree = neighbors.NearestNeighbors(n_neighbors=1, algorithm="ball_tree").fit(rows)
    system = DLIME(n_clusters=n_clusters)
    for x in rows[::17] + 0.1 * rng.normal(size=(8, 3)):
        nearest = tree.kneighbors(x[None])[1].item()

        assert_array_equal(system.neighbours(rows, x), np.flatnonzero(found == found[nearest]))


def test_the_model_is_asked_about_the_rows_of_the_cluster(rows):
    """The row itself first, then the cluster; the numbers are lime's regression on them."""
    asked = []

    def recorded(x):
        asked.append(np.array(x))
        return model(x)

    e = explain(recorded, rows, rows[0], settings={"method": "lime"}, kernel="uniform")
    near = rows[DLIME().neighbours(rows, rows[0])]
    every = np.concatenate([rows[:1], near])
    bins = np.stack(
        [np.digitize(every[:, j], np.quantile(rows[:, j], [0.25, 0.5, 0.75])) for j in range(3)],
        axis=1,
    )
    z = (bins == bins[0]).astype(float)
    y = model(every)
    x = z - z.mean(axis=0)
    beta = np.linalg.solve(x.T @ x + np.eye(3), x.T @ (y - y.mean()))

    assert {tuple(row) for row in np.concatenate(asked)} == {tuple(row) for row in near}
    assert_allclose(e.posterior.mean, beta, rtol=1e-9)


def test_groups_have_their_own_slopes(rows):
    """Being in the upper quartile of the first column raises one group's score, not the other's."""
    highest = [rows[:60][rows[:60, 0].argmax()], rows[60:][rows[60:, 0].argmax()]]
    first, last = (explain(model, rows, x) for x in highest)

    assert first.posterior.mean[0] > 0.5
    assert last.posterior.mean[0] < -0.5


def test_nothing_is_left_to_chance(rows):
    """Two explanations are the same to the last digit, with thousands of rows too."""
    many = np.tile(rows, (12, 1)) + np.linspace(0, 1, 1440)[:, None]
    settings = {"names": ["a", "b", "c"], "settings": {"n_clusters": 1}}
    first, second = (explain(model, many, many[3], **settings) for _ in range(2))

    assert len(first.masks) == 1441
    assert_array_equal(first.posterior.mean, second.posterior.mean)
    assert "a" in first.features[0]


@pytest.mark.parametrize(
    ("n", "settings", "x", "message"),
    [
        (120, {"n_clusters": 0}, [0, 0, 0], "`n_clusters` must be >= 1"),
        (120, {"n_clusters": 121}, [0, 0, 0], "`n_clusters` must be >= 1 and <= 120"),
        (120, {}, [1.0, 2.0], "a value for each of the 3 columns; got 2"),
        (120, {}, [1.0, np.nan, 2.0], "of the row has 1 missing"),
        (120, {"method": "nothing"}, [0, 0, 0], "`method` must be one of"),
    ],
)
def test_refusals(rows, n, settings, x, message):
    """Before the model is called."""

    def never(table):
        raise AssertionError("the model was called")

    with pytest.raises(ValueError, match=message):
        explain(never, np.resize(rows, (n, 3)), x, settings=settings)


def test_the_model_of_a_frame_gets_frames(rows):
    """Names of features are those of its columns; the numbers are those of an array."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])

    def by_name(table):
        assert list(table.columns) == ["a", "b", "c"]
        return model(table.to_numpy())

    found = explain(by_name, frame, frame.iloc[3])
    plain = explain(model, rows, rows[3])

    assert_allclose(found.posterior.mean, plain.posterior.mean)
    assert all(name in feature for name, feature in zip("abc", found.features, strict=True))


def test_the_order_of_a_row_with_labels_does_not_matter(rows):
    """A series in another order, a dictionary and a frame of one row."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    by_name = lambda table: model(table.to_numpy())  # noqa: E731
    far = frame.iloc[-1]
    wanted = explain(model, rows, rows[-1]).posterior.mean

    for x in (far[["c", "b", "a"]], {"c": far.c, "a": far.a, "b": far.b}, frame.iloc[[-1]]):
        assert_allclose(explain(by_name, frame, x).posterior.mean, wanted)
