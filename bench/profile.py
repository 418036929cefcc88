"""One launch of built attention candidates and of FA3 beside them, for a profiler: `ncu .. python3 -m bench.profile FOLDER NAME ..` (GPU, torch).

    ncu --kernel-name regex:'attention|device_kernel' --section SourceCounters --section WarpStateStats --section ComputeWorkloadAnalysis \\
        --section SpeedOfLight -f -o prof python3 -m bench.profile .carry/cubins cake_fmha_d128_causal
    ncu --import prof.ncu-rep --page source --csv > source.csv && python3 -m bench.stalls source.csv
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

import cake_kernels
from bench.cake_runner import BuiltCandidate, enqueue_all
from cake_backend.judge.device.driver import Gpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--sequence", type=int, default=4096)
    arguments = parser.parse_args()
    torch.zeros(1, device="cuda")  # torch makes the primary context current, which the launcher then shares
    gpu, task, peers = Gpu.open(0), cake_kernels.tasks()["attention"], set()
    for name in arguments.names:
        candidate = BuiltCandidate(arguments.folder / name, gpu)
        d, causal = candidate.record["params"]["D"], bool(candidate.record["params"]["CAUSAL"])
        shape = task.shape(f"bench_{arguments.sequence}_d{d}{'_causal' if causal else ''}")
        layouts = task.layouts(shape.axes)
        tensors = {n: torch.randn(layouts[n].shape, device="cuda").to(torch.bfloat16) for n in task.tensors}
        enqueue_all(candidate.launches({n: tensors[n] for n in candidate.manifest.tensors}, task.scalar_values(shape.axes)))
        torch.cuda.synchronize()
        if (d, causal) not in peers:
            peers.add((d, causal))
            from fa3_fwd_interface import flash_attn_func

            flash_attn_func(*(tensors[n].transpose(1, 2).contiguous() for n in "QKV"), causal=causal)
            torch.cuda.synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
