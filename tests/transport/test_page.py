"""The examples of docs/transport.md run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "transport.md"


def test_the_examples_of_the_page_run(capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - our own text
    printed = capsys.readouterr().out.splitlines()
    assert float(re.search(r"([\d.]+) of \d+ links", printed[0])[1]) > 0.9
    skewness = {line.split()[0]: [float(each) for each in line.split()[1:]] for line in printed[1:]}
    assert min(skewness, key=lambda rule: sum(skewness[rule])) == "sinkhorn"
