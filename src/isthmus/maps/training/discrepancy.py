"""Training a network that brings one cloud to the distribution of another, without pairs.

    L = mean of k(f(x), f(x')) - 2 mean of k(f(x), y) + mean of k(y, y')

the squared maximum mean discrepancy of two batches, k a sum of Gaussian kernels at a half, one and
two times the mean squared distance within the batch. Batches of both clouds are drawn apart from
each other; a tenth of each cloud is held out, and the network of the epoch at which that tenth is
most alike is kept, the start among them.

Reference: Gretton et al. (2012), A kernel two-sample test; Shaham et al. (2017), Removal of batch
effects using distribution-matching residual networks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus._optional import require
from isthmus._progress import current_track
from isthmus._types import FloatArray
from isthmus.maps.training.network import Network

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["match_clouds"]

SCALES = (0.5, 1.0, 2.0)
RATE, DECAY = 1e-3, 1e-2
HELD_OUT = 0.1
FEWEST_ROWS = 20
"""So that two are held out; with fewer the start stays."""


def match_clouds(
    network: Network,
    source: FloatArray,
    target: FloatArray,
    *,
    epochs: int,
    batch: int = 32,
    seed: int = 0,
) -> Network:
    """Train a network until the source cloud lies where the target cloud does.

    Parameters
    ----------
    network : Network
        Where training starts; a skip branch stays as it is.
    source, target : FloatArray of shape (n, dim) and (m, dim)
    epochs : int
        Over the smaller cloud.
    batch : int, default 32
        Rows of each cloud per step.
    seed : int

    Raises
    ------
    MissingExtraError
    """
    torch = require("torch", extra="torch")
    rng = np.random.default_rng([seed, 3])
    parts = [_hold_out(torch, rows, rng) for rows in (source, target)]
    (train_x, held_x), (train_y, held_y) = parts
    if min(len(source), len(target)) < FEWEST_ROWS:
        return network
    tensors = [torch.tensor(each, dtype=torch.float32) for each in network.arrays]
    layers = tensors if network.skip is None else tensors[:-1]
    for each in layers:
        each.requires_grad_()
    adam = torch.optim.AdamW(layers, lr=RATE, weight_decay=DECAY)
    best, kept = math.inf, [each.detach().clone() for each in tensors]
    for epoch in current_track()(range(epochs + 1), "matching the clouds", epochs + 1):
        if epoch:
            for x, y in _batches(torch, train_x, train_y, batch=batch, rng=rng):
                loss = _discrepancy(torch, network.forward_torch(tensors, x), y)
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
                adam.step()
        with torch.no_grad():
            held = _discrepancy(torch, network.forward_torch(tensors, held_x), held_y).item()
        if held < best:
            best, kept = held, [each.detach().clone() for each in tensors]
    return network.with_arrays([each.numpy() for each in kept])


def _hold_out(torch: Any, rows: FloatArray, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    order = rng.permutation(len(rows))
    held = round(HELD_OUT * len(rows))
    tensor = torch.from_numpy(rows[order].astype(np.float32))
    return tensor[held:], tensor[:held]


def _batches(
    torch: Any, source: Tensor, target: Tensor, *, batch: int, rng: np.random.Generator
) -> Any:
    """Yield a batch of each cloud, of equal parts of an epoch over the smaller one."""
    n = min(len(source), len(target))
    orders = [rng.permutation(len(rows))[:n] for rows in (source, target)]
    for x, y in zip(*(np.array_split(order, -(-n // batch)) for order in orders), strict=True):
        yield source[torch.from_numpy(x)], target[torch.from_numpy(y)]


def _discrepancy(torch: Any, mapped: Tensor, target: Tensor) -> Tensor:
    rows = torch.cat([mapped, target])
    lengths = rows.square().sum(dim=1)
    squared = (lengths[:, None] + lengths - 2 * (rows @ rows.T)).clamp(min=0)
    n, m = len(rows), len(mapped)
    scale = squared.detach().sum() / (n * n - n)
    scale = scale.clamp(min=torch.finfo(squared.dtype).tiny)
    kernel = sum(torch.exp(-squared / (scale * factor)) for factor in SCALES)
    within = kernel[:m, :m].mean() + kernel[m:, m:].mean()
    result: Tensor = within - 2 * kernel[:m, m:].mean()
    return result
