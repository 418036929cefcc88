"""The boards Cake knows by name: SM counts, caches and clocks that an architecture alone does not fix.

Figures are the vendor's or of third-party pages unless ``source`` says measured; ``None`` is unknown and must be read from
the device. Tensor rates are operations (a multiply and an add are two) per clock and SM with f32 or i32 accumulation,
rounded to the power of two that the published peak implies. The cost model's own calibrations (measured) live in ``cake_backend.cost`` and take precedence.
"""

from __future__ import annotations

from cake_ir.targets.architecture import Device

# fmt: off
DEVICES: dict[str, Device] = {
    d.name: d
    for d in (
        Device("A100-SXM4-80GB", "sm_80", 108, 41943040, 2039, 1410,
               {"f16": 2048, "bf16": 2048, "tf32": 1024, "i8": 4096}, "vendor figures, not re-read"),
        Device("L40S", "sm_89", 142, 100663296, 864, 2520,
               {"f16": 1024, "bf16": 1024, "tf32": 512, "e4m3": 2048, "i8": 2048}, "vendor figures, not re-read"),
        Device("RTX-4090", "sm_89", 128, 75497472, 1008, 2520,
               {"f16": 512, "bf16": 512, "tf32": 256, "e4m3": 1024, "i8": 2048}, "vendor figures, not re-read"),
        Device("H100-SXM5", "sm_90a", 132, 52428800, 3350, 1830,
               {"f16": 4096, "bf16": 4096, "tf32": 2048, "e4m3": 8192, "i8": 8192}, "third-party pages"),
        Device("H200-SXM", "sm_90a", 132, 52428800, 4800, 1830,
               {"f16": 4096, "bf16": 4096, "tf32": 2048, "e4m3": 8192, "i8": 8192}, "third-party pages and vendor figures, not re-read; clusters measured",
               {2: (66, 132, 198, 264), 3: (39, 79, 124, 163), 4: (30, 62, 92, 124), 5: (22, 47, 69, 94), 6: (17, 39, 62, 79), 7: (15, 32, 47, 69),
                8: (15, 30, 45, 62), 12: (7, 16, 28, 37), 16: (7, 14, 21, 28)}),
        Device("B200-SXM", "sm_100a", 148, None, 7700, 1850,
               {"f16": 8192, "bf16": 8192, "tf32": 4096, "e4m3": 16384, "e2m1": 32768, "i8": 16384}, "third-party pages"),
        Device("GB200", "sm_100a", None, None, 8000, None,
               {}, "third-party pages"),
        Device("B300-HGX", "sm_103a", None, None, 7700, None,
               {}, "third-party pages"),
        Device("GB300", "sm_103a", None, None, 8000, None,
               {}, "third-party pages"),
        Device("RTX-5090", "sm_120a", 170, 100663296, 1792, 2407,
               {"f16": 512, "bf16": 512, "tf32": 256, "e4m3": 1024, "e2m1": 4096, "i8": 2048}, "third-party pages and vendor figures, not re-read"),
        Device("DGX-Spark-GB10", "sm_121a", 48, None, 273, None,
               {}, "third-party pages"),
    )
}
