"""DLIME: the clusters and neighbours of scikit-learn, and explanations without chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.family import DLIME


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
    """Agglomerative clustering and a ball tree of scikit-learn, on the rows as they are."""
    cluster = pytest.importorskip("sklearn.cluster")
    neighbors = pytest.importorskip("sklearn.neighbors")
    found = cluster.AgglomerativeClustering(n_clusters=n_clusters).fit_predict(rows)
    tree = neighbors.NearestNeighbors(n_neighbors=1, algorithm="ball_tree").fit(rows)
    explainer = DLIME(model=model, background=rows, n_clusters=n_clusters, standardize=False)
    for x in rows[::17] + 0.5 * rng.normal(size=(8, 3)):
        nearest = tree.kneighbors(x[None])[1].item()

        assert_array_equal(explainer.neighbours(x), np.flatnonzero(found == found[nearest]))


def test_the_model_is_asked_about_the_rows_of_the_cluster(rows):
    """The row itself first, then the cluster; the numbers are lime's regression on them."""
    asked = []

    def recorded(x):
        asked.append(np.array(x))
        return model(x)

    explainer = DLIME(
        model=recorded,
        background=rows,
        representation="continuous",
        method="lime",
        kernel="uniform",
    )
    e = explainer.explain(rows[0])
    near = rows[explainer.neighbours(rows[0])]
    every = np.concatenate([rows[:1], near])
    z = (every - rows.mean(axis=0)) / rows.std(axis=0)
    y = model(every)
    x = z - z.mean(axis=0)
    beta = np.linalg.solve(x.T @ x + np.eye(3), x.T @ (y - y.mean()))

    assert {tuple(row) for row in np.concatenate(asked)} == {tuple(row) for row in near}
    assert_allclose(e.posterior.mean, beta, rtol=1e-9)


def test_groups_have_their_own_slopes(rows):
    """With standardised columns, each group's explanation has the sign of its slope."""
    explainer = DLIME(model=model, background=rows, representation="continuous")

    assert explainer.explain(rows[0]).posterior.mean[0] > 1
    assert explainer.explain(rows[-1]).posterior.mean[0] < -0.5


def test_nothing_is_left_to_chance(rows):
    """Two explanations are the same to the last digit, with thousands of rows too."""
    many = np.tile(rows, (12, 1)) + np.linspace(0, 1, 1440)[:, None]
    explainer = DLIME(model=model, background=many, n_clusters=1, names=["a", "b", "c"])
    first, second = explainer.explain(many[3]), explainer.explain(many[3])

    assert len(first.masks) == 1441
    assert_array_equal(first.posterior.mean, second.posterior.mean)
    assert "a" in first.features[0]


def test_refusals(rows):
    """Rows that cannot be clustered, and a row of another length."""
    with pytest.raises(ValueError, match="at least `n_clusters` rows, 2; got 1"):
        DLIME(model=model, background=rows[:1])
    with pytest.raises(ValueError, match="`n_clusters`"):
        DLIME(model=model, background=rows, n_clusters=0)
    with pytest.raises(ValueError, match="a value for each of the 3 columns; got 2"):
        DLIME(model=model, background=rows).explain([1.0, 2.0])
    with pytest.raises(ValueError, match="`method` must be one of"):
        DLIME(model=model, background=rows, method="nothing")
    assert eblime.family.DLIME is DLIME


def test_the_model_of_a_frame_gets_frames(rows):
    """Names of features are those of its columns; the numbers are those of an array."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])

    def by_name(table):
        assert list(table.columns) == ["a", "b", "c"]
        return model(table.to_numpy())

    found = DLIME(model=by_name, background=frame).explain(frame.iloc[3])
    plain = DLIME(model=model, background=rows).explain(rows[3])

    assert_allclose(found.posterior.mean, plain.posterior.mean)
    assert all(name in feature for name, feature in zip("abc", found.features, strict=True))


def test_the_neighbours_of_a_row_do_not_depend_on_the_order_of_its_labels(rows):
    """A series in another order, a dictionary and a frame of one row."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    explainer = DLIME(model=lambda table: model(table.to_numpy()), background=frame)
    far = frame.iloc[-1]
    wanted = explainer.neighbours(rows[-1])

    for x in (far[["c", "b", "a"]], {"c": far.c, "a": far.a, "b": far.b}, frame.iloc[[-1]]):
        assert_array_equal(explainer.neighbours(x), wanted)


@pytest.mark.parametrize(
    ("background", "x", "message"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), [0, 0], "finite; got nan at row 0, column 1"),
        (np.eye(4), [0, np.nan, 0, 0], "`x` must have no missing"),
    ],
)
def test_missing_values_are_refused(background, x, message):
    """Before the model is called."""

    def never(table):
        raise AssertionError("the model was called")

    with pytest.raises(ValueError, match=message):
        DLIME(model=never, background=background).explain(x)
