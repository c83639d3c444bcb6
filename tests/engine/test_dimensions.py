"""Which parallel dimension a process group serves, and what tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from tests.builders import Row, annotation, collective, op, run, with_tables
from tracekit.engine.dimensions import Evidence, Use, decide, dimension_of_name, members
from tracekit.engine.dimensions import groups as grouped
from tracekit.model.records import MeshDimension, Sidecar, Strategy
from tracekit.model.run import RunTables

NOTHING = Evidence({})
MB = 1_000_000


def use(op: str = "all_reduce", **known: Any) -> Use:
    """One operation of a group of ranks 0 and 1, of which nothing else is known."""
    fixed: dict[str, Any] = {"op": op, "description": "", "ranks": (0, 1), "ops": frozenset({op}), "count": 1.0}
    return Use(**fixed | {"sizes": 1, "median_bytes": None, "largest_bytes": None} | known)


def decided(use: Use, evidence: Evidence = NOTHING) -> tuple[str, str]:
    decision = decide(use, evidence)
    assert decision.reason, "every decision says why"
    return decision.dimension, decision.decided_by


def sidecar(*mesh: tuple[str, tuple[int, ...]], **declared: int) -> Evidence:
    """What the recorder wrote of rank 0."""
    dimensions = tuple(MeshDimension(name=name, size=len(ranks), coordinate=0, ranks=ranks) for name, ranks in mesh)
    return Evidence({(0, 0): Sidecar(version=1, mesh=dimensions, strategy=Strategy(declared=dict(declared)))})


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        # torchtitan and other users of DeviceMesh
        ("mesh_tp", "tp"),
        ("mesh_pp", "pp"),
        ("mesh_cp", "cp"),
        ("mesh_ep", "ep"),
        ("mesh_etp", "tp"),
        ("mesh_dp", "dp"),
        ("mesh_dp_replicate", "dp"),
        ("mesh_dp_shard", "dp_shard"),
        ("mesh_dp_shard_cp", "dp_shard"),
        ("mesh_dp_cp", "dp"),
        ("mesh_fsdp", "dp_shard"),
        ("mesh_efsdp", "dp_shard"),
        ("mesh_batch", "dp"),
        # Megatron-LM
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
        ("EMBEDDING_GROUP", "pp"),
        ("POSITION_EMBEDDING_GROUP", "pp"),
        ("DATA_PARALLEL_GROUP", "dp"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "dp"),
        ("INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", "dp"),
        ("CONTEXT_PARALLEL_GROUP", "cp"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("EXPERT_DATA_PARALLEL_GROUP", "dp"),
        # DeepSpeed
        ("data_parallel_group", "dp"),
        ("ep_size_4", "ep"),
        ("zero_param_group", "dp_shard"),
        ("ulysses", "cp"),
        ("sp", "cp"),
        # what says nothing
        ("default_pg", ""),
        ("undefined", ""),
        ("MODEL_PARALLEL_GROUP", ""),
        ("mesh_loss", ""),
        ("step", ""),
        ("http", ""),
        ("app", ""),
        ("", ""),
    ],
)
def test_names_that_frameworks_give(name: str, dimension: str) -> None:
    assert dimension_of_name(name) == dimension


class TestOrder:
    def test_the_mesh_goes_before_the_description(self) -> None:
        assert decided(use(description="mesh_tp"), sidecar(("dp_shard", (1, 0)))) == ("dp_shard", "mesh")

    def test_a_mesh_dimension_is_the_one_of_the_same_ranks(self) -> None:
        mesh = sidecar(("dp", (0, 2)), ("tp", (0, 1)))
        assert decided(use(ranks=(0, 2)), mesh) == ("dp", "mesh")
        assert decided(use(ranks=(0, 1)), mesh) == ("tp", "mesh")
        assert decided(use(ranks=(1, 2)), mesh)[1] == "operations"

    def test_a_mesh_dimension_whose_name_says_nothing_leaves_it_to_the_description(self) -> None:
        assert decided(use(description="mesh_tp"), sidecar(("first", (0, 1)))) == ("tp", "description")

    def test_the_description_goes_before_what_the_script_declared(self) -> None:
        assert decided(use(description="mesh_tp"), sidecar(dp=2)) == ("tp", "description")

    def test_what_the_script_declared_goes_before_operations(self) -> None:
        many = use(count=64.0, median_bytes=4.0 * MB, largest_bytes=4 * MB)
        assert decided(many) == ("tp", "operations")
        assert decided(many, sidecar(dp=2, tp=4)) == ("dp", "declared")


class TestDeclared:
    def test_two_dimensions_of_one_size_tell_nothing(self) -> None:
        assert decided(use(largest_bytes=MB), sidecar(dp=2, tp=2)) == ("dp", "operations")

    def test_a_dimension_is_one_that_has_such_operations(self) -> None:
        assert decided(use("send_recv"), sidecar(dp=2, pp=2)) == ("pp", "declared")
        assert decided(use("all_to_all"), sidecar(dp=2, ep=2)) == ("ep", "declared")

    def test_replicas_that_gather_are_shards(self) -> None:
        decision = decide(use("all_gather"), sidecar(dp=2))
        assert (decision.dimension, decision.decided_by) == ("dp_shard", "declared")
        assert decision.reason == "the script declared dp = 2"


class TestOperations:
    """Nothing but the operations is known."""

    def reason(self, use: Use, evidence: Evidence = NOTHING) -> tuple[str, str]:
        decision = decide(use, evidence)
        assert decision.decided_by == "operations"
        return decision.dimension, decision.reason

    @pytest.mark.parametrize("op", ["all_to_all", "dispatch", "combine"])
    def test_tokens_go_to_experts(self, op: str) -> None:
        assert self.reason(use(op)) == ("ep", "tokens go to experts by all-to-all")

    def test_lookups_of_sharded_tables_are_exchanged_in_the_same_way(self) -> None:
        dimension, reason = self.reason(use("all_to_all"), replace(NOTHING, tables=True))
        assert dimension == "unknown"
        assert "embedding tables" in reason

    def test_sends_are_a_pipeline_s_beside_its_actions_alone(self) -> None:
        assert self.reason(use("send_recv"), replace(NOTHING, pipeline=True))[0] == "pp"
        assert decided(use("send_recv")) == ("unknown", "nothing")

    def test_single_numbers_belong_to_no_dimension(self) -> None:
        assert self.reason(use(largest_bytes=4096))[0] == "world"
        assert self.reason(use(largest_bytes=4097))[0] == "dp"

    def test_many_messages_of_one_size_are_activations(self) -> None:
        few, many = (use(count=n, sizes=2, median_bytes=4.0 * MB, largest_bytes=4 * MB) for n in (7.0, 8.0))
        assert self.reason(few) == ("dp", "few large messages, as gradients are")
        assert self.reason(many) == ("tp", "many messages of one size, as activations of layers are")
        assert self.reason(replace(many, sizes=3))[0] == "dp"

    @pytest.mark.parametrize(
        ("op", "evidence", "dimension"),
        [
            ("all_gather", replace(NOTHING, fsdp=True), "dp_shard"),
            ("all_reduce", replace(NOTHING, ddp=True), "dp"),
        ],
    )
    def test_ranges_of_fsdp_and_ddp_go_before_equal_sizes(self, op: str, evidence: Evidence, dimension: str) -> None:
        many = use(op, count=64.0, median_bytes=4.0 * MB, largest_bytes=4 * MB)
        assert self.reason(many, evidence)[0] == dimension

    def test_shards_are_gathered_and_scattered(self) -> None:
        assert self.reason(use("all_gather", ops=frozenset({"all_gather", "reduce_scatter"})))[0] == "dp_shard"
        assert decided(use("all_gather")) == ("unknown", "nothing")


@pytest.mark.parametrize(
    ("recorded", "ranks"),
    [("[0, 1]", (0, 1)), ("[8]", (8,)), ("[0, 1, ..., 7]", ()), ("[]", ()), ("", ()), (None, ())],
)
def test_members_are_known_where_all_were_written(recorded: str | None, ranks: tuple[int, ...]) -> None:
    assert members(recorded) == ranks


def groups(tables: RunTables) -> pl.DataFrame:
    return grouped(with_tables(tables)).collect()


def both(op: str, *times: int, **columns: Any) -> list[Row]:
    """Ranks 0 and 1 meet at *times* for 10 ns each."""
    return [collective(op, at, at + 10, rank=rank, **columns) for at in times for rank in (0, 1)]


class TestGroups:
    def test_one_row_for_each_operation_of_each_group(self) -> None:
        table = groups(
            run(
                *both("all_reduce", 0, 20, group="1", group_desc="mesh_tp", group_ranks="[0, 1]", in_bytes=8 * MB),
                *both("all_gather", 40, group="0", group_size=4),
                *both("broadcast", 60, group="0", group_size=4),
            )
        )
        names = ("communicator", "op", "ranks", "group_size", "dimension", "decided_by", "count", "median_bytes")
        assert table.select(names).rows() == [
            ("0", "all_gather", [0, 1], 4, "unknown", "nothing", 1, None),
            ("0", "broadcast", [0, 1], 4, "unknown", "nothing", 1, None),
            ("1 [0, 1]", "all_reduce", [0, 1], 2, "tp", "description", 2, 8 * MB),
        ]
        assert table["reason"][2] == "the group is described as mesh_tp"

    def test_what_was_recorded_beside_operations_counts(self) -> None:
        gathers = both("all_gather", 0, in_bytes=MB)
        (row,) = groups(run(*gathers, annotation("FSDP::all_gather", 0, 5))).to_dicts()
        assert (row["dimension"], row["decided_by"]) == ("dp_shard", "operations")
        (row,) = groups(run(*both("all_to_all", 0), op("aten::embedding_bag", 0, 5))).to_dicts()
        assert row["dimension"] == "unknown"

    def test_actions_of_a_pipeline_schedule_count(self) -> None:
        sends = run(*both("send_recv", 0, group="1"))
        assert groups(sends)["dimension"].to_list() == ["unknown"]
        actions = pl.LazyFrame({"action": ["F"]})
        assert groups(sends.with_table("pipeline", actions))["dimension"].to_list() == ["pp"]
        assert groups(sends.with_table("pipeline", actions.clear()))["dimension"].to_list() == ["unknown"]

    def test_the_recorder_s_mesh_is_asked(self) -> None:
        evidence = sidecar(("cp", (0, 1)))
        tables = replace(run(*both("all_gather", 0)), sidecars=evidence.sidecars)
        (row,) = groups(tables).to_dicts()
        assert (row["dimension"], row["reason"]) == ("cp", "dimension cp of the device mesh")

    def test_a_run_that_does_not_communicate_has_none(self) -> None:
        assert groups(run(op("aten::mm", 0, 10), view="host")).is_empty()
