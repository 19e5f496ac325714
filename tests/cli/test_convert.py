"""``isthmus convert``: the command as users run it, and killed at any moment."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from isthmus import Bridge, Pairs, Space, VectorSet
from isthmus.stores import open_store

ROWS = 240
MANY = 1_500


@pytest.fixture
def base(files, tmp_path):
    """URLs of one file, whose collection ``docs`` has the rows of ``one``."""
    base = f"sqlite:///{tmp_path}/one.db?collection="
    one = VectorSet.load(files.one)
    with open_store(base + "docs", space=one.space) as store:
        store.upsert(one, metadata=[{"row": row} for row in range(ROWS)])
    return base


def check(base, name, bridge):
    """Each row once, mapped, with its metadata."""
    bridge = Bridge.load(bridge)
    with open_store(base + "docs") as source, open_store(base + name) as target:
        assert source.count() == target.count()
        for batch in source.scan(batch_size=500):
            ids = batch.vectors.ids.tolist()
            found = target.fetch(ids)
            assert np.array_equal(found.matrix(), bridge.apply(batch.vectors).matrix())
            assert target.fetch_metadata(ids) == list(batch.metadata)


def test_the_whole_way(cli, base, files):
    args = (base + "docs", base + "new", "--bridge", files.bridge)
    plan = cli("convert", *args, "--dry-run")
    assert (plan.code, plan.err) == (0, "")
    for said in ("240", "it will be made", "retention@10", "writes nothing", "11.5 kB of vectors"):
        assert said in plan.out
    ran = cli("convert", *args)
    assert (ran.code, ran.err) == (0, "")
    assert "240 rows written" in ran.out
    assert "both sides hold the same 240 rows" in ran.out
    check(base, "new", files.bridge)
    assert "both sides hold the same" in cli("convert", "run", *args).out
    verified = cli("convert", "verify", *args, "--sample", 100, "--require", "same")
    assert (verified.code, verified.err) == (0, "")
    for said in ("verdict: same\n", "same neighbours, SRC and DST", "retention@10 of the bridge"):
        assert said in verified.out
    status = cli("convert", "status", base + "new", "--json").result
    assert (status["state"]["stage"], status["state"]["passes"]) == ("done", 2)
    moved = cli("convert", "cutover", base + "new", "--name", "docs")
    assert "'docs' leads to the converted collection, by rename" in moved.out
    with open_store(base + "docs") as store:
        assert store.space.model == "two"
    (way,) = re.findall("to go back: isthmus (.*)", moved.out)
    back = cli(*shlex.split(way))
    assert "leads to what it led to before; the converted one is 'new'" in back.out
    check(base, "new", files.bridge)


def test_json_says_what_was_done(cli, base, files):
    args = (base + "docs", base + "new", "--bridge", files.bridge, "--json")
    told = cli("convert", *args, "--dry-run").result
    assert (told["dry_run"], told["rows"], told["vector_bytes"]) == (True, ROWS, ROWS * 12 * 4)
    assert told["seconds"] is None
    told = cli("convert", *args, "--batch-size", 50).result
    assert (told["copied"], told["settled"], told["resumed"]) == (ROWS, True, False)
    told = cli("convert", "verify", *args).result
    assert (told["ok"], told["overlap"][0] > told["null"][0]) == (True, True)


def test_a_copy_between_files(cli, base, tmp_path):
    copy = f"sqlite:///{tmp_path}/two.db?collection=docs"
    assert cli("convert", base + "docs", copy).code == 0
    assert cli("convert", "verify", base + "docs", copy, "--json").result["ok"]


def test_what_changed_is_told_and_removed_when_asked(cli, base, files):
    args = (base + "docs", base + "new", "--bridge", files.bridge)
    cli("convert", *args)
    with open_store(base + "docs") as store:
        store.delete(["d3"])
        store.upsert(store.fetch(["d5"]), metadata=[{"row": "new"}])
    ran = cli("convert", *args)
    assert "1 changed, 1 there and not in the source (--remove removes them)" in ran.out
    assert "1 removed" in cli("convert", *args, "--remove").out
    assert "both sides hold the same 239 rows" in cli("convert", *args).out
    check(base, "new", files.bridge)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("SRC", "SRC", "--bridge", "BRIDGE"), 22),
        (("SRC", "NEW", "--bridge", "BACK"), 31),
        (("SRC", "NEW", "--bridge", "nothing"), 41),
        (("SRC", "memory://x?collection=y", "--bridge", "BRIDGE"), 27),
        (("NONE", "NEW", "--bridge", "BRIDGE"), 61),
        (("SRC", "nonsense", "--bridge", "BRIDGE"), 11),
        (("SRC", "sqlit:///a.db?collection=c", "--bridge", "BRIDGE"), 23),
        (("SRC", "NEW", "--bridge", "BRIDGE", "--batch-size", "0"), 2),
        (("SRC",), 2),
        (("verify", "SRC", "NEW", "--bridge", "BRIDGE"), 61),
        (("cutover", "SRC", "--name", "live"), 22),
        (("rollback", "SRC"), 22),
    ],
)
def test_what_is_refused(cli, base, files, arguments, code):
    names = {
        "SRC": base + "docs",
        "NEW": base + "new",
        "NONE": base + "none",
        "BRIDGE": files.bridge,
        "BACK": files.back,
    }
    ran = cli("convert", *(names.get(one, one) for one in arguments), "--json")
    assert ran.error["exit_code"] == code
    with open_store(base + "docs") as store:
        assert store.count() == ROWS
    assert not cli("convert", "status", base + "new", "--json").result["exists"]
    assert "not begun" in cli("convert", "status", base + "new").out


def test_a_tampered_bridge_is_refused(cli, base, files, tmp_path):
    folder = tmp_path / "tampered"
    folder.mkdir()
    for path in files.bridge.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    ran = cli("convert", base + "docs", base + "new", "--bridge", folder, "--json")
    assert ran.error["kind"] == "TamperedArtifactError"


def test_a_bridge_that_keeps_little_is_told_and_can_be_refused(cli, base, files, tmp_path):
    one, two = VectorSet.load(files.one), VectorSet.load(files.two)
    rolled = VectorSet(two.ids, np.roll(two.matrix(), 1, axis=0), two.space)
    Bridge.fit(Pairs.from_ids(one, rolled), method="procrustes").save(tmp_path / "bad")
    args = (base + "docs", base + "new", "--bridge", tmp_path / "bad")
    assert cli("convert", *args, "--require", "bridge", "--json").error["kind"] == "VerdictError"
    assert "note: the verdict is" in cli("convert", *args).err


def test_verify_strict_fails(cli, base, files):
    args = (base + "docs", base + "new", "--bridge", files.bridge)
    cli("convert", *args)
    with open_store(base + "new") as store:
        store.delete(["d3"])
    loose = cli("convert", "verify", *args)
    assert (loose.code, "d3" in loose.err) == (0, True)
    assert "the target has 239 of 240 rows; 1 of 240 compared rows are missing" in loose.out
    assert cli("convert", "verify", *args, "--require", "same", "--json").error["exit_code"] == 32


LITTLE_ROOM = """
import resource, sys
from isthmus.cli.run import run
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
sys.exit(run(["convert", *sys.argv[1:]]))
"""


def test_a_full_disk_in_the_middle_loses_nothing(cli, process, many, files, tmp_path):
    new = f"sqlite:///{tmp_path}/new.db?collection=new"
    args = (many + "docs", new, "--bridge", files.bridge, "--batch-size", 100, "--json")
    ran = process(*args, program=LITTLE_ROOM)
    assert ran.error["kind"] == "StoreFullError"
    with open_store(new) as store:
        written = store.count()
    assert 0 < written < MANY
    assert written % 100 == 0
    told = cli("convert", *args).result
    assert (told["copied"], told["rows"], told["settled"]) == (MANY - written, MANY, True)


# --- killed ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A source of 1,500 rows, which take 500 batches of 3."""
    folder = tmp_path_factory.mktemp("many")
    base = f"sqlite:///{folder}/many.db?collection="
    rows = np.random.default_rng(3).standard_normal((MANY, 8))
    space = Space(model="one", dim=8)
    with open_store(base + "docs", space=space) as store:
        ids = [f"r{row}" for row in range(MANY)]
        store.upsert(VectorSet(ids, rows, space), metadata=[{"row": row} for row in range(MANY)])
    return base


def start(base, name, bridge):
    arguments = ["convert", base + "docs", f"{base}{name}&timeout=60", "--bridge", str(bridge)]
    return subprocess.Popen(
        [sys.executable, "-m", "isthmus", *arguments, "--batch-size", "3", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def wait_for_rows(base, name, least):
    """Wait until the target has more rows than that, and return how many."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with open_store(base + name) as store:
                if (count := store.count()) > least:
                    return count
        except LookupError:
            pass
        time.sleep(0.01)
    raise AssertionError("it wrote nothing")


@pytest.mark.parametrize(("number", "times"), [("SIGKILL", 2), ("SIGTERM", 1), ("SIGINT", 1)])
def test_a_run_that_is_killed_goes_on(many, files, number, times):
    draw = random.Random(number)  # noqa: S311 - moments, not secrets
    name, reached = f"new-{number}", 0
    for _ in range(times):
        running = start(many, name, files.bridge)
        wait_for_rows(many, name, reached)
        time.sleep(draw.random() * 0.15)
        running.send_signal(getattr(signal, number))
        out, errors = running.communicate(timeout=60)
        assert "Traceback" not in errors
        if running.returncode == 0:  # it was faster
            break
        if number != "SIGKILL":
            error = json.loads(out)["error"]
            assert error["kind"] in {"Terminated", "Interrupted"}
            assert "of 1,500 rows are written; the same command goes on" in error["got"]  # midway
        with open_store(many + name) as store:
            state = json.loads(store.notes()["convert"])
            reached = store.count()
            assert reached % 3 == 0
            assert state["copied"] == reached  # batch and cursor are there together
    running = start(many, name, files.bridge)
    out, errors = running.communicate(timeout=120)
    told = json.loads(out)["result"]
    assert (errors, told["resumed"], told["settled"]) == ("", True, True)
    check(many, name, files.bridge)


def test_two_runs_at_once_leave_each_row_once(many, files):
    first = start(many, "twice", files.bridge)
    wait_for_rows(many, "twice", 0)
    second = start(many, "twice", files.bridge)
    codes = []
    for running in (first, second):
        out, _ = running.communicate(timeout=120)
        codes.append((running.returncode, json.loads(out)))
    assert codes[1][0] == 0
    if codes[0][0]:
        assert codes[0][1]["error"]["kind"] == "StoreBusyError"
    check(many, "twice", files.bridge)
