"""Which parallel dimension does each process group serve?

**Question.** Is this group data, tensor, pipeline, context or expert parallel? And how is that known?

**Method.** The recorder's sidecar says it: dimensions of the device mesh, or what the script declared. Else the group's
description, as torchtitan, Megatron-LM and DeepSpeed write them. Else its operations: all-to-all is expert parallel, equal messages
in great number are activations (tensor), parameters gathered and gradients scattered are shards (``dp_shard``), gradients reduced are
replicas (``dp``). The reason stands beside each.

**When it misleads.** One group may serve two dimensions (experts over the data-parallel ranks): each of its operations is decided for
itself. Traces without sizes or descriptions leave guesses; ``decided_by`` says so.
"""

from __future__ import annotations

from tracekit.engine.dimensions import GROUPS, groups
from tracekit.model.analysis import Analysis

ANALYSIS = Analysis(table=GROUPS, needs=("matched",), compute=groups)
