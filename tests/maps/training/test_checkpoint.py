"""A training that was stopped is taken up to the bit; another's, or a damaged one, never."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from isthmus._progress import tracking
from isthmus.errors import CorruptFileError, WriteFailedError
from isthmus.maps.training.checkpoint import FORMAT, Checkpoint, remove_at_the_end


class Stop(Exception):  # noqa: N818 - not an error: a person presses Ctrl+C
    """Someone stops the training."""


def stopping_after(steps):
    """Return a tracker that stops the program after so many steps of all trainings."""
    left = iter(range(steps))

    def track(items, description, total):
        del description, total
        for item in items:
            if next(left, None) is None:
                raise Stop
            yield item

    return track


def stop(mlp, pairs, steps):
    with pytest.raises(Stop), tracking(stopping_after(steps)):
        mlp.fit(*pairs)


def counted(mlp, pairs):
    """Return the fitted map and how many steps it took."""
    steps = []

    def count(items, description, total):
        del description, total
        for item in items:
            steps.append(item)
            yield item

    with tracking(count):
        return mlp.fit(*pairs), len(steps)


def read(path):
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return arrays, json.loads(file.metadata()["numbers"])


def write(path, arrays, numbers, form=FORMAT):
    text = numbers if isinstance(numbers, str) else json.dumps(numbers)
    save_file(arrays, path, metadata={"format": form, "numbers": text})


# --- taking up ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stop_at", [*product(("random", "auto"), (0.06, 0.3, 0.55, 0.97))], ids=str
)
def test_a_training_that_was_stopped_gives_the_bits_of_one_that_was_not(
    pairs, make_mlp, same_state, tmp_path, stop_at
):
    """Early, in the middle of an epoch, and in the training on all pairs."""
    start, share = stop_at
    params = {"start": start, "learning_rate": 1e-3, "patience": 100, "least_steps": 60}
    mlp = make_mlp(checkpoint=str(tmp_path), **params)
    whole, steps = counted(make_mlp(**params), pairs)
    assert int(whole.steps_) > 5

    stop(mlp, pairs, round(share * steps))
    assert list(tmp_path.glob("training-*.safetensors"))
    again, taken = counted(mlp, pairs)

    same_state(again, whole)
    assert taken <= (1 - share) * steps + 15  # the looks are at most so far apart


def test_weights_and_bfloat16_are_taken_up_too(pairs, make_mlp, same_state, tmp_path):
    params = {"precision": "bfloat16", "start": "random", "weight_decay": 0.01}
    weight = np.linspace(0.5, 2, 200)
    mlp = make_mlp(checkpoint=str(tmp_path), **params)
    with pytest.raises(Stop), tracking(stopping_after(23)):
        mlp.fit(*pairs, sample_weight=weight)

    mlp.fit(*pairs, sample_weight=weight)

    same_state(mlp, make_mlp(**params).fit(*pairs, sample_weight=weight))


def test_the_files_go_when_the_fit_has_succeeded(pairs, make_mlp, tmp_path):
    params = {"checkpoint": str(tmp_path), "patience": 2, "learning_rate": 1e-3}
    stop(make_mlp(**params), pairs, 20)
    assert list(tmp_path.glob("training-*.safetensors"))
    make_mlp(**params).fit(*pairs)
    assert not list(tmp_path.iterdir())


def test_of_several_fits_the_files_stay_until_all_have_succeeded(
    pairs, make_mlp, same_state, tmp_path
):
    params = {"checkpoint": str(tmp_path), "patience": 2, "learning_rate": 1e-3}
    mlp = make_mlp(**params)

    def fit_and_stop():
        with remove_at_the_end():
            mlp.fit(*pairs)
            raise Stop

    with pytest.raises(Stop):
        fit_and_stop()
    assert list(tmp_path.glob("training-*.safetensors"))

    with remove_at_the_end():
        again, steps = counted(make_mlp(**params), pairs)
    same_state(again, mlp)
    assert steps <= 2  # of each training the step that finds that it is over
    assert not list(tmp_path.iterdir())


def test_a_process_that_was_killed_is_taken_up(pairs, make_mlp, same_state, tmp_path):
    np.savez(tmp_path / "pairs.npz", X=pairs[0], Y=pairs[1])
    code = textwrap.dedent(
        """
        import sys, time
        import numpy as np
        from isthmus._progress import tracking
        from isthmus.maps import MLP

        def slowly(items, description, total):
            for done, item in enumerate(items):
                time.sleep(0.02 if done > 8 else 0)
                yield item

        pairs = np.load(sys.argv[1] + "/pairs.npz")
        mlp = MLP(start="random", width=8, epochs=3, least_steps=400, batch=32,
                  checkpoint=sys.argv[1] + "/state")
        with tracking(slowly):
            mlp.fit(pairs["X"], pairs["Y"])
        """
    )
    folder = tmp_path / "state"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    try:
        deadline = time.monotonic() + 60
        while not list(folder.glob("*.safetensors")) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.2)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    (state,) = folder.glob("training-*.safetensors")
    assert 0 < read(state)[1]["step"] < 400

    params = {"start": "random", "least_steps": 400}
    taken_up = make_mlp(checkpoint=str(folder), **params).fit(*pairs)

    same_state(taken_up, make_mlp(**params).fit(*pairs))


# --- whose it is -------------------------------------------------------------------------------


def test_a_checkpoint_of_another_training_is_not_taken_up(pairs, make_mlp, same_state, tmp_path):
    X, Y = pairs
    stop(make_mlp(checkpoint=str(tmp_path)), pairs, 20)
    (state,) = tmp_path.iterdir()
    before = state.read_bytes()

    moved = X.copy()
    moved[3, 3] += 1e-6
    others = [
        ({}, (moved, Y)),
        ({}, (X[:, :7], Y)),
        ({}, (X[:-1], Y[:-1])),
        *(
            (changed, pairs)
            for changed in (
                {"seed": 1},
                {"objective": "mse"},
                {"learning_rate": 1e-4},
                {"width": 9},
                {"batch": 33},
                {"patience": 9},
                {"weight_decay": 0.1},
                {"held_out": 0.3},
                {"start": "random"},
                {"precision": "bfloat16"},
            )
        ),
    ]
    for changed, given in others:
        taken = make_mlp(checkpoint=str(tmp_path), **changed).fit(*given)
        same_state(taken, make_mlp(**changed).fit(*given))
    for among in (Y[:50], Y[:51]):
        taken = make_mlp(checkpoint=str(tmp_path)).fit(*pairs, unpaired_target=among)
        same_state(taken, make_mlp().fit(*pairs, unpaired_target=among))
    assert state.read_bytes() == before


def test_the_name_depends_on_every_part_and_on_no_order_of_the_parameters(tmp_path):
    rows = np.arange(6, dtype=np.float32)
    names = [
        Checkpoint.of(tmp_path, *data, params=params).path.name
        for data, params in (
            ((rows,), {"a": 1, "b": 2}),
            ((rows,), {"a": 1, "b": 3}),
            ((rows.astype(np.float64),), {"a": 1, "b": 2}),
            ((rows.reshape(2, 3),), {"a": 1, "b": 2}),
            ((rows[:3], rows[3:]), {"a": 1, "b": 2}),
            ((), {"a": 1, "b": 2}),
        )
    ]
    assert len(set(names)) == len(names)
    again = Checkpoint.of(tmp_path, rows[::1].copy(), params={"b": 2, "a": 1})
    assert again.path.name == names[0]


def test_the_device_and_the_folder_do_not_tell_trainings_apart(make_mlp):
    recorded = make_mlp(checkpoint="here", device="cpu").recorded_params()
    assert not {"checkpoint", "device"} & set(recorded)


# --- damage ------------------------------------------------------------------------------------


@pytest.fixture
def stopped(pairs, make_mlp, tmp_path):
    """Return a network whose training was stopped, and its file."""
    mlp = make_mlp(checkpoint=str(tmp_path))
    stop(mlp, pairs, 20)
    (state,) = tmp_path.iterdir()
    return mlp, state


def refused(stopped, pairs):
    mlp, state = stopped
    with pytest.raises(CorruptFileError) as caught:
        mlp.fit(*pairs)
    assert state.name in str(caught.value)
    assert "delete that file; training then starts from the beginning" in str(caught.value)
    return caught.value.got


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, 1_000, -1])
def test_a_file_that_was_cut_off(stopped, pairs, length):
    content = stopped[1].read_bytes()
    stopped[1].write_bytes(content[:length])
    assert "Error" in refused(stopped, pairs)


def test_a_file_of_something_else(stopped, pairs):
    stopped[1].write_bytes(os.urandom(4_000))
    assert "Error" in refused(stopped, pairs)


def test_a_folder_in_its_place(stopped, pairs):
    stopped[1].unlink()
    stopped[1].mkdir()
    assert refused(stopped, pairs)


def test_a_pipe_in_its_place_is_not_waited_for(stopped, pairs):
    stopped[1].unlink()
    os.mkfifo(stopped[1])
    assert refused(stopped, pairs) == "something that is not a regular file"


@pytest.mark.parametrize("kind", ["weight", "best", "first_moment", "second_moment"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(stopped, pairs, kind, value):
    arrays, numbers = read(stopped[1])
    arrays[f"{kind}.1"] = np.full_like(arrays[f"{kind}.1"], value)
    write(stopped[1], arrays, numbers)
    assert refused(stopped, pairs) == "numbers that are not finite float32"


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32])
def test_numbers_of_another_type(stopped, pairs, dtype):
    arrays, numbers = read(stopped[1])
    arrays["weight.0"] = arrays["weight.0"].astype(dtype)
    write(stopped[1], arrays, numbers)
    assert refused(stopped, pairs) == "numbers that are not finite float32"


def test_a_type_that_numpy_does_not_have(stopped, pairs):
    import torch
    from safetensors.torch import save_file as save_torch

    arrays, numbers = read(stopped[1])
    tensors = {name: torch.from_numpy(array).bfloat16() for name, array in arrays.items()}
    save_torch(tensors, stopped[1], metadata={"format": FORMAT, "numbers": json.dumps(numbers)})
    assert refused(stopped, pairs)


@pytest.mark.parametrize("change", ["missing", "more", "shape", "transposed"])
def test_arrays_of_other_names_or_shapes(stopped, pairs, change):
    arrays, numbers = read(stopped[1])
    if change == "missing":
        del arrays["best.0"]
    elif change == "more":
        arrays["best.99"] = np.zeros(1, np.float32)
    elif change == "shape":
        arrays["weight.0"] = arrays["weight.0"][:-1]
    else:
        last = next(n for n, each in arrays.items() if len({*each.shape}) == 2)
        arrays[last] = np.ascontiguousarray(arrays[last].T)
    write(stopped[1], arrays, numbers)
    assert refused(stopped, pairs) == "arrays of other names or shapes"


def test_another_format(stopped, pairs):
    write(stopped[1], *read(stopped[1]), form="isthmus training checkpoint 99")
    assert refused(stopped, pairs) == "another format"


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"step"', "[" * 100_000])
def test_numbers_that_are_no_object(stopped, pairs, text):
    write(stopped[1], read(stopped[1])[0], text)
    assert refused(stopped, pairs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", None),
        ("step", "five"),
        ("step", -5),
        ("step", float("inf")),
        ("step", float("nan")),
        ("step", [5]),
        ("step", 10**30),
        ("best_step", -1),
        ("best_step", 10**6),
        ("since", -1),
        ("since", {}),
        ("first_loss", "much"),
        ("first_loss", None),
        ("looks", None),
        ("looks", 3),
        ("looks", [3]),
        ("looks", [["a", "b"]]),
        ("looks", [[1, 2, 3]]),
        ("looks", {"a": 1}),
        ("looks", [[10**30, 1]]),
        ("looks", [[0, float("nan")]]),
    ],
    ids=str,
)
def test_numbers_of_another_kind(stopped, pairs, name, value):
    arrays, numbers = read(stopped[1])
    write(stopped[1], arrays, {**numbers, name: value})
    assert refused(stopped, pairs)
    del numbers[name]
    write(stopped[1], arrays, numbers)
    assert "KeyError" in refused(stopped, pairs)


def test_after_the_file_is_deleted_training_starts_from_the_beginning(
    stopped, pairs, make_mlp, same_state
):
    stopped[1].unlink()
    same_state(stopped[0].fit(*pairs), make_mlp().fit(*pairs))


def test_a_folder_that_cannot_be_made(pairs, make_mlp, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "inner"):
        with pytest.raises(WriteFailedError, match="choose another folder"):
            make_mlp(checkpoint=str(folder)).fit(*pairs)


def test_the_file_is_read_without_pickle_and_holds_no_code(stopped):
    content = stopped[1].read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert header["__metadata__"]["format"] == FORMAT
    assert {each["dtype"] for name, each in header.items() if name != "__metadata__"} == {"F32"}
    assert not [path for path in Path(stopped[1].parent).iterdir() if path.suffix == ".tmp"]
