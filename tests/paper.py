"""The paper's formulas, literally: N x N matrices, explicit inverses, one lambda at a time.

Slow and obvious on purpose: every fast form in `eblime.core` is tested against these. Numbers in
parentheses are the paper's equations. Z masks, Y scores, w weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from eblime._types import FloatArray, IntArray


def v_matrix(Z: FloatArray, w: FloatArray, lam: float) -> FloatArray:
    """V_lambda = (Z' diag(w) Z + lambda I)^-1, below (1)."""
    return np.asarray(np.linalg.inv(Z.T @ np.diag(w) @ Z + lam * np.eye(Z.shape[1])), float)


def beta_hat(Z: FloatArray, Y: FloatArray, w: FloatArray, lam: float) -> FloatArray:
    """(1): the weighted ridge estimate."""
    return v_matrix(Z, w, lam) @ (Z.T @ np.diag(w) @ Y)


def m_matrix(Z: FloatArray, w: FloatArray, lam: float) -> FloatArray:
    """M_lambda = diag(w)^-1 + Z Z' / lambda, Proposition 2."""
    return np.linalg.inv(np.diag(w)) + Z @ Z.T / lam


def q(Z: FloatArray, Y: FloatArray, w: FloatArray, lam: float, b: float) -> float:
    """Q_lambda of Proposition 1."""
    return float(Y @ np.linalg.inv(m_matrix(Z, w, lam)) @ Y + 2 * b)


def log_prior(lam: float) -> float:
    """(2d) after the change of variables, up to a constant."""
    return float(-0.5 * np.log(lam) - np.log(1 + lam))


def log_posterior(
    Z: FloatArray, Y: FloatArray, w: FloatArray, lam: float, a: float, b: float
) -> float:
    """(5): log P(lambda | Y) up to a constant."""
    log_det = np.linalg.slogdet(m_matrix(Z, w, lam))[1]
    power = a + len(Y) / 2
    return float(-0.5 * log_det - power * np.log(q(Z, Y, w, lam, b)) + log_prior(lam))


def expected_lambda(
    Z: FloatArray, Y: FloatArray, w: FloatArray, grid: FloatArray, a: float, b: float
) -> float:
    """(6), divided by the normalising sum that it lacks in print."""
    logs = np.array([log_posterior(Z, Y, w, lam, a, b) for lam in grid])
    chance = np.exp(logs - logs.max())
    return float(np.sum(grid * chance) / np.sum(chance))


def algorithm_2(
    rng: np.random.Generator, log_weights: FloatArray, grid: FloatArray, s: int
) -> FloatArray:
    """Algorithm 2: s values of lambda by the Gumbel trick, one loop for each line."""
    sampled = []
    for _ in range(s):
        noisy = np.empty(len(grid))
        for place in range(len(grid)):
            mu = rng.exponential()
            noisy[place] = log_weights[place] - np.log(mu)
        sampled.append(grid[np.argmax(noisy)])
    return np.array(sampled)


def algorithm_1(
    rng: np.random.Generator,
    Z: FloatArray,
    Y: FloatArray,
    w: FloatArray,
    lambdas: FloatArray,
    a: float,
    b: float,
) -> FloatArray:
    """Algorithm 1, lines 4 and 5: beta for each sampled lambda, (s, p)."""
    betas = []
    for lam in lambdas:
        sigma2 = q(Z, Y, w, lam, b) / 2 / rng.gamma(a + len(Y) / 2)
        cov = v_matrix(Z, w, lam) * sigma2
        betas.append(rng.multivariate_normal(beta_hat(Z, Y, w, lam), cov))
    return np.array(betas)


# A flat intercept is not in print; these are its literal forms, for the same purpose.


def flat_log_posterior(
    Z: FloatArray, Y: FloatArray, w: FloatArray, lam: float, a: float, b: float
) -> float:
    """(5) with a flat intercept integrated out: generalised least squares on a column of ones."""
    inverse = np.linalg.inv(m_matrix(Z, w, lam))
    ones = np.ones(len(Y))
    weight = ones @ inverse @ ones
    left = inverse - np.outer(inverse @ ones, ones @ inverse) / weight
    log_det = np.linalg.slogdet(m_matrix(Z, w, lam))[1] + np.log(weight)
    power = a + (len(Y) - 1) / 2
    return float(-0.5 * log_det - power * np.log(Y @ left @ Y + 2 * b) + log_prior(lam))


def flat_conditional(
    Z: FloatArray, Y: FloatArray, w: FloatArray, lam: float, a: float, b: float
) -> tuple[FloatArray, FloatArray, float]:
    """Location and scale matrix of the t law of (intercept, beta) given lambda, and its degrees."""
    X = np.column_stack([np.ones(len(Y)), Z])
    penalty = lam * np.eye(X.shape[1])
    penalty[0, 0] = 0.0
    V = np.linalg.inv(X.T @ np.diag(w) @ X + penalty)
    location = V @ X.T @ np.diag(w) @ Y
    gap = Y - X @ location
    q_flat = gap @ np.diag(w) @ gap + lam * location[1:] @ location[1:] + 2 * b
    df = 2 * a + len(Y) - 1
    return location, V * q_flat / df, df


def conditional(
    Z: FloatArray, Y: FloatArray, w: FloatArray, lam: float, a: float, b: float
) -> tuple[FloatArray, FloatArray, float]:
    """(3) with sigma^2 of (4) integrated out: location, scale matrix and degrees of the t law."""
    df = 2 * a + len(Y)
    return beta_hat(Z, Y, w, lam), v_matrix(Z, w, lam) * q(Z, Y, w, lam, b) / df, df


def precise_spectrum(
    Z: FloatArray, Y: FloatArray, w: FloatArray, *, digits: int = 80
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Right singular vectors, d, k and residual of the centred problem, in many digits.

    With a flat intercept: `W^1/2 (Z - 1 z_bar')` and `W^1/2 (Y - y_bar)`, decomposed by the N x N
    matrix of inner products. Directions below the square root of the precision are exact zeros.
    """
    import mpmath

    with mpmath.workdps(digits):
        n, p = Z.shape
        weights = [mpmath.mpf(float(v)) for v in w]
        total = mpmath.fsum(weights)
        columns = [[mpmath.mpf(float(v)) for v in column] for column in (*Z.T, Y)]
        means = [mpmath.fdot(weights, column) / total for column in columns]
        root = [mpmath.sqrt(v) for v in weights]
        rows = [[root[i] * (columns[j][i] - means[j]) for j in range(p + 1)] for i in range(n)]
        A, y = mpmath.matrix([row[:p] for row in rows]), mpmath.matrix([row[p] for row in rows])
        values, left = mpmath.eigsy(A * A.T)
        floor = max(values) * mpmath.mpf(10) ** (-digits // 2)
        kept = [j for j in reversed(range(n)) if values[j] > floor]
        k = [mpmath.fdot(left[:, j], y) for j in kept]
        basis = [A.T * left[:, j] / mpmath.sqrt(values[j]) for j in kept]
        residual = mpmath.fdot(y, y) - mpmath.fsum(v**2 for v in k)
        return (
            np.array([[float(v) for v in vector] for vector in basis]).reshape(-1, p).T,
            np.array([float(values[j]) for j in kept]),
            np.array([float(v) for v in k]),
            float(max(residual, 0)),
        )


# A precision for each feature is not in print either: beta_j ~ N(0, sigma^2 / kappa_j).


def local_log_evidence(
    Z: FloatArray, Y: FloatArray, w: FloatArray, kappa: FloatArray, a: float, b: float
) -> float:
    """Log marginal likelihood of the precisions, a flat intercept and sigma^2 integrated out."""
    M = np.linalg.inv(np.diag(w)) + Z @ np.diag(1 / kappa) @ Z.T
    inverse, ones = np.linalg.inv(M), np.ones(len(Y))
    weight = ones @ inverse @ ones
    left = inverse - np.outer(inverse @ ones, ones @ inverse) / weight
    log_det = np.linalg.slogdet(M)[1] + np.log(weight)
    return float(-0.5 * log_det - (a + (len(Y) - 1) / 2) * np.log(Y @ left @ Y + 2 * b))


def local_conditional(
    Z: FloatArray, Y: FloatArray, w: FloatArray, kappa: FloatArray, a: float, b: float
) -> tuple[FloatArray, FloatArray, float]:
    """Location and scale matrix of the t law of beta given the precisions, and its degrees."""
    X = np.column_stack([np.ones(len(Y)), Z])
    V = np.linalg.inv(X.T @ np.diag(w) @ X + np.diag([0.0, *kappa]))
    location = V @ X.T @ np.diag(w) @ Y
    gap = Y - X @ location
    q_local = gap @ np.diag(w) @ gap + location[1:] @ np.diag(kappa) @ location[1:] + 2 * b
    df = 2 * a + len(Y) - 1
    return location[1:], (V * q_local / df)[1:, 1:], df


def log_local_prior(phi: float) -> float:
    """Log density of phi where tau = phi^-1/2 has density tau (1 + tau^2)^-3/2."""
    return float(-np.log(2) - 0.5 * np.log(phi) - 1.5 * np.log(1 + phi))


# The held-out R^2 is not in print: each score predicted by a fit to the others, N fits in all.

Predictor = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], float]  # (Z, Y, w, z)


def held_out_r2(
    Z: FloatArray, Y: FloatArray, w: FloatArray, predict: Predictor, together: int = 1
) -> float:
    """1 - sum w (y - yhat_(-i))^2 / sum w (y - ybar_(-i))^2; neighbours are left out together."""
    missed, total = 0.0, 0.0
    for i in range(len(Y)):
        kept = np.arange(len(Y)) // together != i // together
        missed += w[i] * (Y[i] - predict(Z[kept], Y[kept], w[kept], Z[i])) ** 2
        total += w[i] * (Y[i] - np.sum(w[kept] * Y[kept]) / np.sum(w[kept])) ** 2
    return float(1 - missed / total)


def predict_ridge(
    Z: FloatArray, Y: FloatArray, w: FloatArray, z: FloatArray, lam: float, intercept: str
) -> float:
    """The ridge estimate at z; `intercept` is "flat", "penalised" or "none"."""
    if intercept == "none":
        return float(z @ beta_hat(Z, Y, w, lam))
    if intercept == "flat":
        return float(np.array([1.0, *z]) @ flat_conditional(Z, Y, w, lam, 1.0, 1.0)[0])
    return float(np.array([1.0, *z]) @ beta_hat(np.column_stack([np.ones(len(Y)), Z]), Y, w, lam))


def predict_on_grid(
    Z: FloatArray, Y: FloatArray, w: FloatArray, z: FloatArray, grid: FloatArray
) -> float:
    """The posterior mean at z in the published setting, over a grid of lambda."""
    logs = np.array([log_posterior(Z, Y, w, lam, 1.0, 1.0) for lam in grid])
    chance = np.exp(logs - logs.max())
    fits = np.array([predict_ridge(Z, Y, w, z, lam, "none") for lam in grid])
    return float(np.sum(chance * fits) / np.sum(chance))


def released_moments(
    K: FloatArray,
    S: FloatArray,
    Y: FloatArray,
    C: FloatArray,
    own: FloatArray,
    extra: FloatArray,
    psi: FloatArray,
    logs: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quadrature with the linear variance of one feature at a time released, one value at a time.

    K covariance of the scores Y at the fitted psi, S signs, C covariances of the importances with
    the scores (p, n), own variances of the importances, extra linear variances; `logs` are steps of
    log(psi). For every feature: its mean, its variance over the amplitude at the fitted psi, and
    the variance of its mean over psi.
    """
    n, found = len(Y), []
    for j in range(S.shape[1]):
        cells = []
        for step in logs:
            d = extra[j] * (np.exp(step) - 1)
            inverse = np.linalg.inv(K + d * np.outer(S[:, j], S[:, j]))
            cross, log_psi = C[j] + 2 * d * S[:, j], np.log(psi[j]) + step
            fit, before = Y @ inverse @ Y, Y @ np.linalg.inv(K) @ Y
            share = (fit + before / n) / (before + before / n)  # one more answer
            log_det = np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(K)[1]
            log_prior = 0.5 * log_psi - np.log1p(np.exp(log_psi))  # psi^1/2 half-Cauchy
            variance = share * (own[j] + 4 * d - cross @ inverse @ cross)
            log_weight = 0.5 * log_det - n / 2 * np.log(share) + log_prior
            cells.append((log_weight, cross @ inverse @ Y, variance))
        log_weights, means, variances = map(np.array, zip(*cells, strict=True))
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        mean = weights @ means
        found.append((mean, weights @ variances, weights @ (means - mean) ** 2))
    mean, within, between = map(np.array, zip(*found, strict=True))
    return mean, within, between


def prediction_errors(K: FloatArray, Y: FloatArray, n: int) -> FloatArray:
    """Standardised errors of predicting all but the first n scores from these; K of all scores."""
    inverse = np.linalg.inv(K[:n, :n])
    mean = K[n:, :n] @ inverse @ Y[:n]
    covariance = K[n:, n:] - K[n:, :n] @ inverse @ K[:n, n:]
    amplitude = Y[:n] @ inverse @ Y[:n] / n
    return np.linalg.solve(np.linalg.cholesky(amplitude * covariance), Y[n:] - mean)


# The fit to all masks, of which some were asked, is not in print either.


def fit_to_all_masks(
    Z: FloatArray,
    w: FloatArray,
    asked: IntArray,
    Y: FloatArray,
    beta: FloatArray,
    cov: FloatArray,
    sigma2: float,
    flat: bool,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the weighted fit to all masks Z, the scores not asked being normal.

    They have the mean and covariance that beta ~ (beta, cov), the intercept (if it is flat) and
    noise of variance sigma2 / w give them; Y are the scores of the masks that were asked.
    """
    X = np.column_stack([np.ones(len(Z)), Z]) if flat else Z
    fit = np.linalg.inv(X.T @ np.diag(w) @ X) @ X.T @ np.diag(w)
    left = np.setdiff1d(np.arange(len(Z)), asked)
    total = w[asked].sum()
    level, centre = (w[asked] @ Y / total, w[asked] @ Z[asked] / total) if flat else (0.0, 0.0)
    rows = Z[left] - centre
    covariance = rows @ cov @ rows.T + sigma2 * np.diag(1 / w[left])
    if flat:
        covariance = covariance + sigma2 / total
    mean = fit[:, asked] @ Y + fit[:, left] @ (level + rows @ beta)
    variance = np.diag(fit[:, left] @ covariance @ fit[:, left].T)
    return mean[int(flat) :], variance[int(flat) :]


def pooled_moments(
    Z: FloatArray,
    Y: FloatArray,
    w: FloatArray,
    prior: list[tuple[float, float, float]],
    variances: FloatArray,
    a: float,
    b: float,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each importance under a mixture of normal laws, flat intercept.

    The prior of every importance has the given (weight, centre, width); sigma^2 has the given
    values, equally spaced on a log scale. One normal law for every choice of a component for each
    feature and of sigma^2.
    """
    logs, means, seconds = [], [], []
    X = np.column_stack([np.ones(len(Y)), Z])
    for sigma2, chosen in itertools.product(variances, itertools.product(prior, repeat=Z.shape[1])):
        weight, centre, width = np.array(chosen).T
        M = sigma2 * np.diag(1 / w) + Z @ np.diag(width**2) @ Z.T
        inverse, ones, gap = np.linalg.inv(M), np.ones(len(Y)), Y - Z @ centre
        total = ones @ inverse @ ones
        left = inverse - np.outer(inverse @ ones, ones @ inverse) / total
        log = np.sum(np.log(weight)) - a * np.log(sigma2) - b / sigma2
        logs.append(log - 0.5 * (np.linalg.slogdet(M)[1] + np.log(total) + gap @ left @ gap))
        precision = X.T @ np.diag(w) @ X / sigma2 + np.diag([0.0, *width**-2])
        cov = np.linalg.inv(precision)
        mean = cov @ (X.T @ np.diag(w) @ Y / sigma2 + np.array([0.0, *(centre / width**2)]))
        means.append(mean[1:])
        seconds.append(np.diag(cov)[1:] + mean[1:] ** 2)
    chances = np.exp(np.array(logs) - max(logs))
    chances /= chances.sum()
    found = chances @ np.array(means)
    return found, chances @ np.array(seconds) - found**2
