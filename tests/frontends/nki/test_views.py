"""Views of tensors and arrays against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore_rtl.frontends.nki.dialects.modules import OPERATORS
from neuroncore_rtl.frontends.nki.indices import dtypes, storage
from neuroncore_rtl.frontends.nki.indices.affine import Affine, arange, mgrid
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.frontends.nki.trace.tensor import NkiTensor
from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.spec.config import PRESETS

RECORDING = Recording(Program(PRESETS["full"]), NkiTensor, OPERATORS)


def tensor(*shape, memory=storage.Memory.sbuf):
    return RECORDING.allocate(shape, dtypes.DTYPES["float32"], memory), np.arange(np.prod(shape)).reshape(shape)


def numbers(view):
    index = np.indices(view.shape)
    axes = [axis.start + sum(s * i for s, i in zip(axis.steps, index, strict=True))
            for axis in (view.element, view.partition, view.block)]  # fmt: skip
    lanes = view.allocation.lanes
    rows = 0 if lanes is None else view.allocation.shape[lanes]
    return axes[0] + view.allocation.width * (axes[1] + rows * axes[2])


def values(expression: Affine):
    index = np.indices(expression.shape)
    return np.asarray(expression.start + sum(s * i for s, i in zip(expression.steps, index, strict=True)))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_indices_of_indices_are_those_of_numpy(data):
    view, array = tensor(6, 5, 4)
    for _ in range(2):
        key = []
        for n in view.shape:
            start = data.draw(st.integers(0, n - 1))
            stop = data.draw(st.integers(start + 1, n))
            slices = st.just(slice(start, stop, data.draw(st.integers(1, 3))))
            key.append(data.draw(st.one_of(slices, st.integers(0, n - 1)) if n > 1 else slices))
        view, array = view[tuple(key)], array[tuple(key)]
        assert view.shape == array.shape and np.array_equal(numbers(view), array)


@pytest.mark.parametrize("memory", [storage.Memory.private_hbm, storage.Memory.sbuf])
def test_index_expressions_are_those_of_numpy(memory):
    view, array = tensor(8, 24, memory=memory)
    p, i, j = arange(6)[:, None, None], arange(3)[None, :, None], arange(4)[None, None, :]
    assert np.array_equal(numbers(view[p + 1, 20 - 4 * i - j]), array[values(p + 1), values(20 - 4 * i - j)])
    p, f = mgrid[0:8, 2:12:3]
    assert np.array_equal(numbers(view[p, f]), array[values(p), values(f)])
    assert np.array_equal(numbers(view[p, 3]), array[values(p), 3])


def test_an_index_of_one_number_is_repeated():
    one, four = arange(5, 6)[:, None], arange(4)[:, None]
    assert np.array_equal(values(one + four), 5 + np.arange(4)[:, None])
    view, array = tensor(8, 24, memory=storage.Memory.private_hbm)
    found = view[one, arange(3)[None, :] * 4 + four]
    assert np.array_equal(numbers(found), array[5, np.arange(3) * 4 + np.arange(4)[:, None]])
    assert np.array_equal(numbers(view[arange(1)[None, :] + 2, four]), array[2, :4][:, None])


def test_index_expressions_of_fewer_dimensions_begin_at_the_first_one_if_numpy_refuses_them():
    view, array = tensor(8, 24, memory=storage.Memory.private_hbm)
    found = view[arange(6)[:, None] + 1, arange(3)[None, :, None] * 5 + arange(2)[None, None, :]]
    assert np.array_equal(numbers(found), array[1:7, np.arange(3)[:, None] * 5 + np.arange(2)])
    with pytest.raises(ValueError, match=r"shapes must broadcast, not \(6, 2\) and \(1, 3, 1\)"):
        view[arange(6)[:, None] + arange(2)[None, :], arange(3)[None, :, None]]


def test_views_of_views():
    view, array = tensor(4, 12, memory=storage.Memory.sbuf)
    assert np.array_equal(numbers(view.reshape(4, 3, 4)[:, 1:, ::2]), array.reshape(4, 3, 4)[:, 1:, ::2])
    assert np.array_equal(numbers(view.reshape((4, 3, 4)).permute(0, 2, 1)), array.reshape(4, 3, 4).transpose(0, 2, 1))
    assert np.array_equal(numbers(view[:, None].broadcast_to((4, 5, 12))), np.broadcast_to(array[:, None], (4, 5, 12)))
    assert np.array_equal(numbers(view.ap([[12, 4], [6, 2], [1, 3]], offset=2)), array.reshape(4, 2, 6)[:, :, 2:5])
    assert np.array_equal(numbers(view.slice(1, 2, 8, 2).expand_dim(1)), array[:, None, 2:8:2])
    assert np.array_equal(numbers(view.expand_dim(-1)), array[..., None])


def test_blocks_have_tensors_of_their_own():
    blocks = RECORDING.allocate((3, 2, 128, 8), dtypes.DTYPES["float32"], storage.Memory.sbuf, lanes=2)
    assert [blocks[i, j].one_block() for i in range(3) for j in range(2)] == list(range(6))
    with pytest.raises(ValueError, match="an operand must be in one block, selected by integers"):
        blocks[:, 0].one_block()


@pytest.mark.parametrize(
    "key, message",
    [
        ((0, 0, 0, 0), "at most 3 parts"),
        ((slice(3, 2),), "a slice must be ascending, with indices from 0 to 5, not 3:2:None"),
        ((slice(2, 0, -1),), "a slice must be ascending, with indices from 0 to 5, not 2:0:-1"),
        (("a",), "must be an integer, a slice"),
        ((arange(4), slice(None), arange(4)), "side by side"),
    ],
)
def test_indices_that_are_refused(key, message):
    with pytest.raises(ValueError, match=message):
        tensor(6, 5, 4)[0][key]


def test_an_index_beyond_the_tensor_is_found_when_it_is_used():
    view, array = tensor(6, 5)
    for key, which in (
        ((arange(8)[:, None], arange(5)[None, :]), "from 0 to 7"),
        ((6,), "6"),
        ((-7,), "-7"),
        ((slice(0, 8),), "from 0 to 7"),
        ((slice(7, 9),), "from 7 to 8"),
    ):
        with pytest.raises(ValueError, match=f"between 0 and 5, not {which}$"):
            view[key].check_bounds()
    masked = view[slice(4, 9)].masked(arange(5)[:, None] < 2)
    masked.check_bounds()
    assert np.array_equal(numbers(masked), array[4:6])


def test_dimensions_that_a_tile_lacks_are_the_last_ones():
    for shape, wide in (((4,), (4, 3, 4)), ((4, 3), (4, 3, 4)), ((4, 1), (4, 3, 4)), ((4, 1, 3), (4, 5, 3))):
        view, array = tensor(*shape)
        theirs = np.broadcast_to(array.reshape(shape + (1,) * (len(wide) - len(shape))), wide)
        assert np.array_equal(numbers(view.fitted(wide)), theirs)
    with pytest.raises(ValueError, match="must broadcast"):
        tensor(4, 2)[0].fitted((4, 3, 2))
    far, array = tensor(3, memory=storage.Memory.private_hbm)
    assert np.array_equal(numbers(far.fitted((2, 3))), np.broadcast_to(array, (2, 3)))


def test_a_view_goes_through_its_first_dimension():
    view, array = tensor(3, 5)
    assert view.itemsize == 4 and all(np.array_equal(numbers(part), row) for part, row in zip(view, array, strict=True))


WRONG = [lambda i: i // 2, lambda i: i % 2, lambda i: i // 0, lambda i: i % 8.0, lambda i: 8 % i, lambda i: i / 8]
WRONG += [lambda i: i * i, lambda i: i * 0.5]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_index_is_affine(wrong):
    with pytest.raises(ValueError, match=r"an index must be affine.*\(test_views.py:\d+\)"):
        wrong(arange(8))


@given(
    st.integers(-60, 60), st.lists(st.tuples(st.integers(1, 5), st.integers(-12, 12)), max_size=3), st.integers(1, 12)
)
def test_quotients_and_remainders_are_those_of_numpy(start, dimensions, by):
    index = Affine(*(tuple(part) for part in (zip(*dimensions, strict=True) if dimensions else ((), ()))), start)
    try:
        parts = index // by, index % by
    except ValueError:
        rest = [step for count, step in dimensions if step % by and count > 1]
        assert rest, "only a step that is no multiple leaves a line"
        return
    for found, right in zip(parts, divmod(values(index), by), strict=True):
        assert np.array_equal(values(found), right)


def test_an_index_in_blocks_is_divided():
    blocks, columns = mgrid[0:3, 0:4]
    index = 4 * blocks + columns + 8
    for found, right in ((index // 4, blocks + 2), (index % 4, columns + 0 * blocks), (arange(8) // 8, 0 * arange(8))):
        assert np.array_equal(values(found), values(right) + 0 * values(found))
    assert np.array_equal(values(np.floor_divide(index, 4)), values(index // 4))
    assert np.array_equal(values(np.remainder(index, 4)), values(index % 4))


@given(first=st.integers(-20, 20), step=st.integers(-3, 3).filter(bool), limit=st.integers(-20, 40))
def test_masks_are_the_rectangles_that_numpy_finds(first, step, limit):
    i = first + step * arange(9)[:, None]
    for mask, holds in ((i < limit, values(i) < limit), (i >= limit, values(i) >= limit),
                        (i <= limit, values(i) <= limit), (i > limit, values(i) > limit)):  # fmt: skip
        found = np.zeros((9, 5), bool)
        found[mask.rectangle((9, 5))] = True
        assert np.array_equal(found, np.broadcast_to(holds, (9, 5)))


def test_a_mask_that_is_no_rectangle():
    p, f = mgrid[0:4, 0:4]
    with pytest.raises(ValueError, match="a mask must be a rectangle"):
        (p >= f).rectangle((4, 4))
    assert (p + 4 * f < 100).rectangle((4, 4)) == (slice(0, 4), slice(0, 4))
    assert ((p < 3) & (f >= 1)).rectangle((4, 4)) == (slice(0, 3), slice(1, 4))


def test_masks_of_which_one_holds_everywhere_or_nowhere():
    rows, columns = mgrid[0:4, 0:8]
    few = rows < 3
    assert (few | (columns < 0)) is few and (few | False) is few and ((columns >= 8) | few) is few
    for everywhere in (few | (columns >= 0), (rows == rows) | few, few | True, (columns != 8) | few):
        assert everywhere.rectangle((4, 8)) == (slice(0, 4), slice(0, 8))


@pytest.mark.parametrize(
    "index", ["[...]", "[..., None]", "[None, ...]", "[:, ..., None]", "[None, ..., None, :]", "[:, None, ...]"]
)
@pytest.mark.parametrize("bounds", [(6,), (2, 9, 3), (4, 0, -1), (5, -4, -2)])
def test_index_expression_is_indexed_as_an_array(index, bounds):
    found, expected = (eval(f"one{index}", {"one": one}) for one in (arange(*bounds), np.arange(*bounds)))
    assert found.shape == expected.shape and np.array_equal(values(found), expected)
