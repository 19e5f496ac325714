"""Divergence of a batch's transport plan from a teacher's, with its gradient in closed form.

    L = KL(P* || P),   dL/dS = (P - P*) / epsilon

P the entropic transport plan between the rows of a batch for the similarities S of the student and
uniform marginals, P* the one for the teacher's. The gradient holds for a converged plan and needs
no derivative of the iterations.

Reference: Roschmann, Krzakala, Mazelet, Bouniot and Akata (2026), SOTAlign; the
iterations and epsilons are those of the authors' published code.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from isthmus._optional import require

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ITERATIONS", "STUDENT_EPSILON", "TEACHER_EPSILON", "log_plan", "plan_divergence"]

STUDENT_EPSILON, TEACHER_EPSILON = 0.05, 0.005
ITERATIONS = 100
AT_ONCE = 10
"""Iterations of which one is in the log domain; the others are products with its kernel, whose
entries it keeps in range."""
LEAST_SUM = 1e-37


def log_plan(similarities: Tensor, *, epsilon: float, iterations: int = ITERATIONS) -> Tensor:
    """Return the logarithm of the entropic plan of a batch, uniform marginals with a sum of one.

    The mean of a last half step on each side is taken, so that no side is favoured.

    Parameters
    ----------
    similarities : Tensor of shape (n, m)
    epsilon : float
        In units of the similarities.
    iterations : int, default 100
    """
    torch: Any = require("torch", extra="torch")
    scores = similarities / epsilon
    n, m = scores.shape
    column = scores.new_zeros(m)
    row = scores.new_zeros(n)
    left = iterations
    while left:
        row = _row_step(torch, scores, column)
        column = _row_step(torch, scores.T, row)
        left -= 1
        kernel = (scores + row[:, None] + column).exp()
        by_row, by_column = row.new_ones(n), column.new_ones(m)
        inner = min(AT_ONCE - 1, left)
        for _ in range(inner):
            by_row = 1 / (n * (kernel @ by_column)).clamp(min=LEAST_SUM)
            by_column = 1 / (m * (kernel.T @ by_row)).clamp(min=LEAST_SUM)
        row, column = row + by_row.log(), column + by_column.log()
        left -= inner
    again = _row_step(torch, scores, column), _row_step(torch, scores.T, row)
    plan: Tensor = scores + (row + again[0])[:, None] / 2 + (column + again[1]) / 2
    return plan


def plan_divergence(
    similarities: Tensor, teacher: Tensor, *, epsilon: float = STUDENT_EPSILON
) -> Tensor:
    """Return KL(P* || P) of a batch, a scalar with the gradient of the closed form.

    Parameters
    ----------
    similarities : Tensor of shape (n, m)
        The student's.
    teacher : Tensor of shape (n, m)
        Logarithm of the teacher's plan.
    epsilon : float, default 0.05
        Of the student's plan.
    """
    held = similarities.detach()
    student = log_plan(held, epsilon=epsilon)
    value = (teacher.exp() * (teacher - student)).sum()
    slope = (student.exp() - teacher.exp()) / epsilon
    loss: Tensor = value + (slope * (similarities - held)).sum()
    return loss


def _row_step(torch: Any, scores: Tensor, other: Tensor) -> Tensor:
    potential: Tensor = -math.log(len(scores)) - torch.logsumexp(scores + other, dim=1)
    return potential
