"""Device functions that a kernel's text may call: each stated once, printed only where it is used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """One device function: its name, its C++ text and the functions which that text calls."""

    name: str
    text: str
    needs: tuple[Device, ...] = ()


class Preamble:
    """The device functions of one kernel, in the order of their first use, callees first."""

    def __init__(self) -> None:
        self._used: dict[str, Device] = {}

    def use(self, device: Device) -> str:
        """Ask for a function and return the name to call it by."""
        for callee in device.needs:
            self.use(callee)
        known = self._used.setdefault(device.name, device)
        assert known.text == device.text, f"two device functions named {device.name}"
        return device.name

    def __contains__(self, name: str) -> bool:
        return name in self._used

    def lines(self) -> list[str]:
        """The preamble's text, one function after the other."""
        return [line for d in self._used.values() for line in d.text.strip("\n").split("\n")]


def asm_call(
    name: str, params: str, ptx: str, inputs: str, *, memory: bool = True, volatile: bool = True, template: str = "", needs: tuple[Device, ...] = ()
) -> Device:
    """A function without a result that is one PTX instruction.

    `inputs` are the asm operands, such as `"r"(bar), "r"(count)`; `memory` adds the clobber that keeps memory accesses on their side.
    """
    head = f"{template} DEVICE void" if template else "DEVICE void"
    clobber = (' : "memory"' if inputs else ': "memory"') if memory else ""
    operands = f" :: {inputs}{clobber}" if inputs else f" ::{clobber}" if clobber else ""
    return Device(name, f'{head} {name}({params}) {{ asm{" volatile" if volatile else ""}("{ptx}"{operands}); }}', needs)


TYPES = (
    "typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;",
    "typedef signed char i8; typedef long long i64;",
    "#define DEVICE static __device__ __forceinline__",
)
"""What every kernel's text starts with."""

TENSOR_MAP = "struct alignas(64) TensorMap { u64 opaque[16]; };"
"""The bytes of a CUtensorMap, so that a kernel can take one as a parameter."""

SHARED_ADDRESS = Device("shared_address", "DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }")

ELECT_ONE = Device(
    "elect_one",
    """
DEVICE bool elect_one() {
  u32 chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen != 0;
}""",
)

SETMAXNREG_INC = asm_call(
    "setmaxnreg_inc", "", "setmaxnreg.inc.sync.aligned.u32 %0;", '"n"(N)', template="template <int N>", memory=False
)
SETMAXNREG_DEC = asm_call(
    "setmaxnreg_dec", "", "setmaxnreg.dec.sync.aligned.u32 %0;", '"n"(N)', template="template <int N>", memory=False
)

DEMAND = Device("demand", 'DEVICE void demand(bool holds) { if (!holds) asm volatile("trap;"); }')
NAMED_SYNC = asm_call("named_sync", "", "bar.sync %0, %1;", '"n"(ID), "n"(THREADS)', template="template <int ID, int THREADS>")
NAMED_SYNC_AT = asm_call("named_sync_at", "int id, int threads", "bar.sync %0, %1;", '"r"(id), "r"(threads)')
NAMED_ARRIVE_AT = asm_call("named_arrive_at", "int id, int threads", "bar.arrive %0, %1;", '"r"(id), "r"(threads)')
NAMED_ARRIVE = asm_call("named_arrive", "", "bar.arrive %0, %1;", '"n"(ID), "n"(THREADS)', template="template <int ID, int THREADS>")

CLUSTER_SYNC = asm_call(
    "cluster_sync", "", "barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;", ""
)
CLUSTER_ARRIVE = asm_call("cluster_arrive", "", "barrier.cluster.arrive.release.aligned;", "")
CLUSTER_WAIT = asm_call("cluster_wait", "", "barrier.cluster.wait.acquire.aligned;", "")
CLUSTER_RANK = Device(
    "cluster_rank", 'DEVICE u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }'
)

PDL_WAIT = asm_call("pdl_wait", "", "griddepcontrol.wait;", "")
PDL_LAUNCH = asm_call("pdl_launch", "", "griddepcontrol.launch_dependents;", "")


def pin(ctype: str) -> Device:
    """An empty asm with every register as in-out: what was computed before stays before, what reads after stays after.

    Names follow the element's C type: `pin` for float, `pin_u32`, `pin_int`.
    """
    constraint = {"float": "f", "int": "r", "u32": "r"}[ctype]
    name = "pin" if ctype == "float" else f"pin_{ctype}"
    return Device(
        name,
        f"""
template <int N> DEVICE void {name}({ctype}* x) {{
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+{constraint}"(x[i]) :: "memory");
}}""",
    )
