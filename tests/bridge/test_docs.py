"""The examples of docs/bridges.md and of the model card run."""

import re
from pathlib import Path

import pytest

from isthmus.bridge import Bridge

DOCS = Path(__file__).parents[2] / "docs" / "bridges.md"


def examples(text):
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planted.source.save("old.npz")
    planted.target.save("new.npz")
    planted.source.save("more-old.npz")
    planted.source.save("vectors.npy")
    planted.source.save("vectors.npz")
    lines = [f"{one},{one}" for one in planted.source.ids[:120]]
    Path("pairs.csv").write_text("source,target\n" + "\n".join(lines) + "\n")
    Path("bridges").mkdir()
    return tmp_path


def test_examples_of_the_page_run(files, capsys):
    names = {}
    for example in examples(DOCS.read_text()):
        exec(compile(example, str(DOCS), "exec"), names)  # noqa: S102 - our own page
    assert names["mapped"].space.model == "new"
    assert names["applied"].rows == 400
    verdict = names["bridge"].verdict
    assert capsys.readouterr().out.startswith(f"{verdict.status} {verdict.reason}\n400 0.")
    assert (files / "bridges" / "old-new" / "bridge.json").is_file()


def test_example_of_the_card_runs(bridge, files):
    bridge.save("path of this folder")
    (example,) = examples((files / "path of this folder" / "README.md").read_text())
    names = {}
    exec(compile(example, "README.md", "exec"), names)  # noqa: S102 - our own template
    assert names["mapped"].space.bridged_from == Bridge.load("path of this folder").hash
