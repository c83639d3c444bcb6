"""Who is which rank: claims, names, conflicts. Nothing is dropped and nothing is overwritten."""

from __future__ import annotations

import msgspec

from tracekit.readers.identity import Claim, identify, rank_in_name
from tracekit.readers.recording import Info


def claim(
    source: str, rank: int | None = None, start_ns: int = 0, end_ns: int = 10, world_size: int | None = None
) -> Claim:
    source_of_rank = "" if rank is None else "distributedInfo"
    return Claim(
        source, Info(rank=rank, rank_source=source_of_rank, start_ns=start_ns, end_ns=end_ns, world_size=world_size)
    )


def on(device: str | None, one: Claim, view: str = "device") -> Claim:
    return Claim(one.source, msgspec.structs.replace(one.info, device_name=device, view=view))


def empty(source: str) -> Claim:
    return Claim(source, Info(status="empty", view="host"))


def who(*claims: Claim) -> list[tuple[str, int, int, str]]:
    return [(i.claim.source, i.rank, i.window, i.rank_source) for i in identify(claims)]


def test_names_that_say_a_rank() -> None:
    names = (
        "rank3.json",
        "worker12_step_4.169.pt.trace.json",
        "sampled_rank-7.json.gz",
        "rank_2/trace.json",
        "trace.r5.json",
        "x.json",
    )
    assert [rank_in_name(name) for name in names] == [3, 12, 7, 2, 5, None]


def test_the_files_own_word_counts() -> None:
    assert who(claim("b.json", 1), claim("a.json", 0)) == [
        ("a.json", 0, 0, "distributedInfo"),
        ("b.json", 1, 0, "distributedInfo"),
    ]


def test_without_a_word_the_names_decide_and_it_is_said() -> None:
    claims = [claim("rank1.json"), claim("rank0.json")]
    assert who(*claims) == [("rank0.json", 0, 0, "file name"), ("rank1.json", 1, 0, "file name")]
    assert identify(claims)[0].notes == ("rank0.json does not say its rank; taken as rank 0 by file name",)


def test_names_that_differ_in_one_number() -> None:
    assert who(claim("t_1_of_2.json"), claim("t_0_of_2.json")) == [
        ("t_0_of_2.json", 0, 0, "file name"),
        ("t_1_of_2.json", 1, 0, "file name"),
    ]


def test_else_the_order_decides() -> None:
    assert who(claim("left.json"), claim("right.json")) == [("left.json", 0, 0, "order"), ("right.json", 1, 0, "order")]


def test_the_only_file_is_rank_zero_unless_it_is_named() -> None:
    assert who(claim("trace.json")) == [("trace.json", 0, 0, "only file")]
    assert who(claim("rank5.json")) == [("rank5.json", 5, 0, "file name")]


def test_two_files_that_claim_one_rank_at_one_time_are_both_kept() -> None:
    identities = identify([claim("rank0.json", 0), claim("rank1.json", 0)])
    assert [(i.claim.source, i.rank) for i in identities] == [("rank0.json", 0), ("rank1.json", 1)]
    assert "rank0.json and rank1.json all claim rank 0 at the same time" in identities[1].notes[0]


def test_a_taken_name_gets_a_free_rank() -> None:
    assert [(source, rank) for source, rank, *_ in who(claim("a.json", 0), claim("b.json", 0), claim("c.json", 1))] == [
        ("a.json", 0),
        ("c.json", 1),
        ("b.json", 2),
    ]


def test_two_files_of_one_rank_at_different_times_are_two_windows() -> None:
    assert who(claim("late.json", 0, 100, 200), claim("early.json", 0, 0, 50)) == [
        ("early.json", 0, 0, "distributedInfo"),
        ("late.json", 0, 1, "distributedInfo"),
    ]


def test_another_world_size_is_another_run() -> None:
    identities = identify(
        [claim("a.json", 0, world_size=2), claim("b.json", 1, world_size=2), claim("c.json", 0, world_size=8)]
    )
    assert [(i.claim.source, bool(i.set_aside)) for i in identities] == [
        ("a.json", False),
        ("b.json", False),
        ("c.json", True),
    ]
    assert "world sizes 2, 8" in identities[2].set_aside


def test_the_same_ranks_in_another_folder_are_another_run() -> None:
    identities = identify([claim("one/r.json", 0), claim("two/r.json", 0), claim("two/s.json", 1)])
    assert [(i.claim.source, bool(i.set_aside)) for i in identities] == [
        ("two/r.json", False),
        ("two/s.json", False),
        ("one/r.json", True),
    ]


def test_a_folder_per_rank_is_one_run() -> None:
    assert who(claim("rank0/t.json", 0), claim("rank1/t.json", 1)) == [
        ("rank0/t.json", 0, 0, "distributedInfo"),
        ("rank1/t.json", 1, 0, "distributedInfo"),
    ]


DAY = 86_400_000_000_000


def aside(*claims: Claim) -> list[str]:
    return [i.claim.source for i in identify(claims) if i.set_aside]


def test_recordings_of_other_devices_at_other_times_are_other_runs() -> None:
    there = [on("A100", claim(f"rank{rank}.json", rank, world_size=2)) for rank in (0, 1)]
    later = on("MI300X", claim("rank2.json", 2, DAY, DAY + 10, world_size=2))
    assert aside(*there, later) == ["rank2.json"]
    assert "recorded at another time than rank0.json (A100)" in identify([*there, later])[2].set_aside


def test_at_the_same_time_other_devices_are_ranks_of_one_run() -> None:
    """Clusters of several models, and a rank on which the device went unrecorded."""
    there = [on("A100", claim("rank0.json", 0)), on("H100", claim("rank1.json", 1)), on(None, claim("x.json"), "host")]
    assert aside(*there) == []


def test_what_says_nothing_of_itself_belongs_to_what_was_recorded_with_it() -> None:
    there = [claim(f"rank{rank}.json", rank, world_size=2) for rank in (0, 1)]
    assert aside(*there, claim("other.json", None, DAY, DAY + 10)) == ["other.json"]
    assert aside(*there, claim("other.json", None, 2, 8)) == []
    assert aside(*there, claim("rank3.json", None, DAY, DAY + 10)) == []


def test_recordings_one_after_the_other_that_only_their_order_tells_apart_are_one_rank() -> None:
    """The cycles of a run on one device; those at the same time are of different ranks."""
    cycles = [claim("host_7.111.json", None, 0, 10), claim("host_7.222.json", None, 20, 30)]
    assert who(*cycles) == [("host_7.111.json", 0, 0, "order"), ("host_7.222.json", 0, 1, "order")]
    assert [(rank, window) for _, rank, window, _ in who(*cycles, claim("host_8.112.json", None, 1, 9))] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]


def test_a_named_file_without_events_is_a_rank_that_wrote_nothing_and_no_other_run() -> None:
    killed = empty("rank1.json")
    there = on("A100", claim("rank0.json", rank=0, start_ns=10**15, end_ns=10**15 + 10, world_size=2))
    assert [(i.rank, i.set_aside) for i in identify([there, killed])] == [(0, ""), (1, "")]


def test_ranks_that_wrote_nothing_do_not_outvote_the_one_that_did() -> None:
    there = on("A100", claim("rank0.json", rank=0, start_ns=10**15, end_ns=10**15 + 10, world_size=4))
    killed = [empty(f"rank{rank}.json") for rank in (1, 2, 3)]
    assert [(i.rank, i.set_aside) for i in identify([there, *killed])] == [(0, ""), (1, ""), (2, ""), (3, "")]


def test_a_run_of_which_no_rank_wrote_anything_is_one_run() -> None:
    assert [(i.rank, i.set_aside) for i in identify([empty("rank1.json"), empty("rank0.json")])] == [(0, ""), (1, "")]
