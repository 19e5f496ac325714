"""The page about this room runs, and names what there is."""

import re
from pathlib import Path

from isthmus.spaces.io import FORMATS
from isthmus.spaces.sampling import STRATEGIES

PAGE = (Path(__file__).parents[2] / "docs" / "spaces.md").read_text(encoding="utf-8")


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, names)  # noqa: S102 - our own page
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["['a' 'b'] float32", "['c'] float32"]
    assert printed[2].startswith("200 0.")
    assert (tmp_path / "large.npy").is_file()


def test_every_format_and_strategy_has_its_row():
    first_cells = re.findall(r"^\| `([^`]+)` \|", PAGE, flags=re.MULTILINE)
    assert set(FORMATS) | set(STRATEGIES) <= set(first_cells)
