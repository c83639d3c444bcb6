"""How ranks are laid out in parallel dimensions."""

from __future__ import annotations

import pytest

from tracekit.model.layout import ParallelLayout

TWO_BY_TWO = ParallelLayout.of(
    [("tp", (2, 3)), ("dp_shard", (0, 2)), ("tp", (1, 0)), ("dp_shard", (1, 3)), ("world", (0, 1, 2, 3))]
)


def test_dimensions_come_in_their_usual_order_and_their_groups_by_rank() -> None:
    assert list(TWO_BY_TWO.groups.items()) == [("dp_shard", ((0, 2), (1, 3))), ("tp", ((0, 1), (2, 3)))]
    assert TWO_BY_TWO.sizes == {"dp_shard": 2, "tp": 2}


@pytest.mark.parametrize(
    ("rank", "place"),
    [(0, (0, 0)), (1, (0, 1)), (2, (1, 0)), (3, (1, 1))],
)
def test_a_rank_has_a_place_in_each_dimension(rank: int, place: tuple[int, int]) -> None:
    assert TWO_BY_TWO.coordinates(rank) == dict(zip(("dp_shard", "tp"), place, strict=True))


def test_a_rank_has_no_place_where_it_is_in_no_group() -> None:
    """Of a pipeline's first and last rank alone the embedding group is known."""
    layout = ParallelLayout.of([("pp", (0, 6)), ("dp", (0, 1))])
    assert (layout.coordinates(1), layout.coordinates(5)) == ({"dp": 1}, {})


def test_groups_of_one_rank_and_of_no_dimension_say_nothing() -> None:
    layout = ParallelLayout.of([("dp", (0,)), ("world", (0, 1)), ("unknown", (0, 1))])
    assert (layout.groups, layout.sizes, layout.coordinates(0)) == ({}, {}, {})


def test_a_group_that_is_told_twice_is_one() -> None:
    assert ParallelLayout.of([("dp", (0, 1)), ("dp", (1, 0))]).groups == {"dp": ((0, 1),)}


def test_a_dimension_is_as_large_as_its_largest_group() -> None:
    assert ParallelLayout.of([("ep", (0, 1)), ("ep", (2, 3, 4))]).sizes == {"ep": 3}
