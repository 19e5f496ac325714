"""The demo runs once for all tests that look at what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.workflows import DemoResult, demo


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    folder: Path = tmp_path_factory.mktemp("demo") / "demo"
    return demo(folder)
