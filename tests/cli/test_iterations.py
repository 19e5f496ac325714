"""The live line of work that is done in iterations."""

from __future__ import annotations

import time

import pytest

from isthmus.cli import iterations
from isthmus.cli.iterations import track_iterations
from isthmus.link import Iteration

STEPS = [
    Iteration(
        number=number,
        phase="[views]",
        views=5,
        anchors=15,
        candidates=2000 * number,
        links=1000 * number,
        ratio=0.5,
        threshold=0.5,
        seconds=1.0,
    )
    for number in (1, 2, 3)
]


def test_each_iteration_is_a_line_on_a_terminal(capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(iterations, "SHOW_AFTER_SECONDS", 0.0)
    since = time.monotonic() - 75
    assert list(track_iterations(STEPS, "linking", 0, since=since)) == STEPS
    said = capsys.readouterr()
    assert said.out == ""
    assert "0:01:1" in said.err
    assert "linking: iteration 3 ([views]), 3,000 links of 6,000 candidates" in said.err


@pytest.mark.parametrize(("terminal", "after"), [("0", 0.0), ("1", 60.0)])
def test_nothing_in_a_file_or_for_a_moment(capsys, monkeypatch, terminal, after):
    monkeypatch.setenv("FORCE_COLOR" if terminal == "1" else "NO_COLOR", "1")
    monkeypatch.setattr(iterations, "SHOW_AFTER_SECONDS", after)
    assert list(track_iterations(STEPS, "linking", 0)) == STEPS
    assert capsys.readouterr() == ("", "")
