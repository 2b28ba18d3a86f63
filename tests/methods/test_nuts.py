"""The exact posterior beside a No-U-Turn sampler's, made by `python -m studies nuts`."""

import json
from pathlib import Path

import numpy as np
import pytest

import eblime

STORED = json.loads((Path(__file__).parents[1] / "data" / "nuts.json").read_text())["problems"]


def assert_near(found, stored, what):
    """Within four Monte Carlo standard errors of the sampler."""
    value, error = stored
    assert abs(found - value) <= 4 * error, f"{what}: {found} against {value} +- {error}"


@pytest.mark.parametrize("problem", STORED, ids=lambda problem: problem["name"])
def test_exact_posterior_agrees_with_nuts(problem):
    """Means, sds and quantiles of beta, the intercept, sigma^2 and lambda."""
    masks = np.array([[float(bit) for bit in row] for row in problem["masks"]])
    method = eblime.EBLIME(**problem["method"], local=False, finite=False)
    post = eblime.fit(masks, problem["scores"], problem["weights"], method)
    judge = problem["posterior"]

    for j in range(masks.shape[1]):
        stored = judge[f"beta[{j}]"]
        assert_near(post.mean[j], stored["mean"], f"mean of beta[{j}]")
        assert_near(post.sd[j], stored["sd"], f"sd of beta[{j}]")
        for q, *value in stored["quantiles"]:
            assert_near(post.quantile(q)[j], value, f"{q} quantile of beta[{j}]")
    assert_near(post.lam.log_mean, judge["log_lambda"]["mean"], "mean of log lambda")
    assert_near(post.sigma2.mean, judge["sigma2"]["mean"], "mean of sigma2")
    for q, *value in judge["log_lambda"]["quantiles"]:
        assert_near(np.log(post.lam.quantile(q)), value, f"{q} quantile of log lambda")
    for q, *value in judge["sigma2"]["quantiles"]:
        assert_near(post.sigma2.quantile(q), value, f"{q} quantile of sigma2")
    if "intercept" in judge:
        assert_near(post.intercept, judge["intercept"]["mean"], "mean of the intercept")
        assert_near(post.intercept_law.sd, judge["intercept"]["sd"], "sd of the intercept")


def test_the_judge_sampled_well():
    """No divergent transitions in the stored runs."""
    assert [problem["divergences"] for problem in STORED] == [0, 0, 0]
