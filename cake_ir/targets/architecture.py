"""The record that describes one GPU architecture to the gates, and the one that describes a board."""

from __future__ import annotations

from dataclasses import field

from cake_ir.record import record


def feature_set(names: str) -> frozenset[str]:
    """Feature names written as one line of words."""
    return frozenset(names.split())


@record()
class Target:
    """Limits and features of one architecture, as the language uses them.

    Sizes are bytes, counts are per SM or per block as named. ``features`` holds upper-case names (see
    ``cake_ir.targets.features``); ``narrower`` gives, for each feature that the assembler takes but Cake refuses, why.
    """

    name: str
    family: str
    compute_capability: tuple[int, int]
    smem_per_sm: int
    smem_optin: int
    features: frozenset[str]
    smem_reserved: int = 1024
    smem_default: int = 49152
    smem_granularity: int = 128
    regs: int = 65536
    max_regs: int = 255
    min_regs: int = 24
    reg_unit: int = 8
    sub_partitions: int = 4
    max_threads: int = 1024
    threads_per_sm: int = 2048
    warps_per_sm: int = 64
    blocks_per_sm: int = 32
    named_barriers: int = 16
    named_barriers_per_sm: int = 64
    cluster_max: int = 1
    cluster_max_nonportable: int = 1
    tmem_columns: int = 0
    tmem_lanes: int = 0
    param_bytes: int = 32764
    vector_bytes: int = 16
    narrower: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def has(self, feature: str) -> bool:
        """Whether the architecture has ``feature``."""
        return feature in self.features

    def entry_registers(self, threads: int, blocks_per_sm: int = 1) -> int:
        """Registers a thread at launch when ``threads`` a block and ``blocks_per_sm`` blocks share the register file.

        Each of the sub-partitions has its part of the file, so warps count in whole rounds over them. Rounded down to the allocation unit and
        capped at the largest count a thread can hold: 168 for 384 threads, and for 320 too.
        """
        rounds = -(-max(1, -(-threads // 32) * blocks_per_sm) // self.sub_partitions)
        each = self.regs // (rounds * self.sub_partitions * 32)
        return min(self.max_regs, each // self.reg_unit * self.reg_unit)

    def blocks_that_fit(self, smem: int, threads: int, regs: int, barriers: int = 0) -> int:
        """Blocks of this shape that one SM holds at once: the smallest of its five limits (0 when one does not fit).

        ``smem`` is static plus dynamic bytes of a block, ``regs`` registers a thread, ``barriers`` hardware barriers used.
        """
        if smem > self.smem_optin or threads > self.max_threads or regs > self.max_regs:
            return 0
        warps = -(-threads // 32)
        rounded_smem = -(-(smem + self.smem_reserved) // self.smem_granularity) * self.smem_granularity
        regs_per_warp = -(-regs * 32 // 256) * 256
        warps_in_a_partition = self.regs // self.sub_partitions // regs_per_warp if regs else self.warps_per_sm
        by_regs = warps_in_a_partition * self.sub_partitions // warps
        limits = [self.blocks_per_sm, self.smem_per_sm // rounded_smem, self.warps_per_sm // warps, by_regs]
        if barriers:
            limits.append(self.named_barriers_per_sm // barriers)
        return min(limits)


@record()
class Device:
    """A board: what the architecture does not fix. ``None`` means not known, to be read at run time.

    ``tensor_peak`` is dense operations per clock and SM by operand kind; ``source`` says where the figures come from. ``clusters`` holds, by size,
    how many clusters were seen to run at once with one block an SM, two, and so on: fewer than the SMs divided by the size, since a cluster stays in one group of SMs.
    """

    name: str
    target: str
    sm_count: int | None
    l2_bytes: int | None
    dram_gb_s: float | None
    boost_mhz: int | None
    tensor_peak: dict[str, float] = field(default_factory=dict)
    source: str = ""
    clusters: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.name)

    def clusters_at_once(self, size: int, resident: int) -> int:
        """How many clusters of ``size`` blocks run at once where an SM holds ``resident`` of them; what the SMs could hold where that was not measured."""
        seen = self.clusters.get(size)
        if seen is None:
            return (self.sm_count or 1) * resident // size
        return seen[resident - 1] if resident <= len(seen) else seen[-1] * resident // len(seen)
