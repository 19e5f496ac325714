"""A call to vecmap's semi-supervised mode, where a folder has its scripts.

vecmap (Artetxe et al. 2018) is under the GPL: nothing of it is here, and nothing of it is imported.
Vectors go to text files, `map_embeddings.py --semi_supervised` runs as a program of its own, the
mapped vectors are read back and linked as the baselines of the paper are. It needs both sides to be
equally wide: the wider cloud is put on as many of its own principal directions as the other has.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from isthmus._linalg import normalise
from isthmus.link import LinkProblem, Links
from isthmus.link.aligned import links_of, state_of
from isthmus.neighbors import mutual_by_csls

NEIGHBORHOOD = 50  # CSLS, as for every baseline
SCRIPT = "map_embeddings.py"


class Vecmap:
    """vecmap's scripts in a folder, with the interface of a method of linking."""

    name = "vecmap"

    def __init__(self, folder: Path) -> None:
        if not (folder / SCRIPT).is_file():
            raise FileNotFoundError(f"no {SCRIPT} in {folder}: give the folder of vecmap's scripts")
        self.script = (folder / SCRIPT).resolve()

    def link(self, problem: LinkProblem, *, seed: int = 0) -> Links:
        """Map both clouds with vecmap and link them by CSLS and mutual nearest neighbours."""
        if problem.seed_rows is None:
            raise ValueError("vecmap takes seeds that are rows of the two clouds")
        started = time.perf_counter()
        clouds = equally_wide(problem.source, problem.target)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for side, cloud in zip("st", clouds, strict=True):
                write_vectors(folder / f"{side}.txt", side, cloud)
            lines = [f"s{one} t{other}\n" for one, other in problem.seed_rows]
            (folder / "seeds.txt").write_text("".join(lines))
            self._call(folder, seed)
            mapped = [read_vectors(folder / f"{side}.out") for side in "st"]
        found = mutual_by_csls(*(normalise(side) for side in mapped), neighborhood=NEIGHBORHOOD)
        state = state_of(
            problem,
            (found.source_rows, found.target_rows),
            phase=self.name,
            anchors=problem.n_seeds,
            seconds=time.perf_counter() - started,
            done=True,
        )
        return links_of(state, method=self.name, interrupted=False)

    def _call(self, folder: Path, seed: int) -> None:
        files = [str(folder / name) for name in ("s.txt", "t.txt", "s.out", "t.out")]
        seeds = ["--semi_supervised", str(folder / "seeds.txt"), "--seed", str(seed)]
        command = [sys.executable, str(self.script), *files, *seeds]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"vecmap failed: {done.stderr[-500:]}")


def equally_wide(*clouds: np.ndarray) -> list[np.ndarray]:
    """Put the wider cloud on its own first principal directions (about the origin)."""
    width = min(cloud.shape[1] for cloud in clouds)
    return [narrowed(cloud, width) if cloud.shape[1] > width else cloud for cloud in clouds]


def narrowed(cloud: np.ndarray, width: int) -> np.ndarray:
    _, directions = np.linalg.eigh(cloud.T.astype(np.float64) @ cloud)
    reduced: np.ndarray = (cloud @ directions[:, ::-1][:, :width]).astype(np.float32)
    return reduced


def write_vectors(path: Path, side: str, cloud: np.ndarray) -> None:
    """Write the text format of word2vec."""
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(cloud)} {cloud.shape[1]}\n")
        for row, vector in enumerate(cloud.tolist()):
            file.write(f"{side}{row} {' '.join(f'{value:.7g}' for value in vector)}\n")


def read_vectors(path: Path) -> np.ndarray:
    with path.open(encoding="utf-8") as file:
        rows, width = map(int, file.readline().split())
        cloud = np.empty((rows, width), np.float32)
        for line in file:
            word, *values = line.split()
            cloud[int(word[1:])] = np.array(values, np.float32)
    return cloud
