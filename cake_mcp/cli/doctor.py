"""`cake doctor`: what this machine can do, and what Cake does instead of what it cannot."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .arguments import Parser, add_workspace_option


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that Cake uses: whether it is here, which one, and what follows."""

    name: str
    ok: bool
    found: str
    consequence: str


def main(argv: Sequence[str]) -> int:
    """Print the findings; 1 if something that everything needs is missing."""
    parser = Parser(prog="cake doctor", description="Say what this machine can do, and what Cake does instead of what it cannot.")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    findings = examine(options.workspace)
    if options.format == "json":
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(
                f"{'ok  ' if finding.ok else 'none'}  {finding.name:<{width}}  {finding.found}\n      {'':<{width}}  {finding.consequence}"
            )
    return 0 if next(f.ok for f in findings if f.name == "nvrtc") and findings[0].ok else 1


def examine(workspace: object = None) -> list[Finding]:
    """Look at everything."""
    return [_python(), _nvrtc(), _disassembler(), *_gpu(), _sanitizer(), _ray(), _workspace(workspace)]


def _python() -> Finding:
    import platform

    ok = sys.version_info[:2] >= (3, 11) and sys.platform == "linux"
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", ok, found, "supported" if ok else "Cake is made for Linux with Python 3.11 or newer")


def _nvrtc() -> Finding:
    from cake_backend.toolchain.compile import nvrtc_version

    version = nvrtc_version()
    ok = "unavailable" not in version
    return Finding(
        "nvrtc",
        ok,
        version,
        "real cubins for every target, no GPU needed" if ok else "nothing can be compiled: pip install nvidia-cuda-nvrtc",
    )


def _disassembler() -> Finding:
    from cake_backend.toolchain.sass import find_disassembler

    tool = find_disassembler()
    return Finding(
        "nvdisasm",
        tool is not None,
        tool or "not installed",
        "machine code is inspected" if tool else "the assembler's own remarks must do",
    )


def _gpu() -> list[Finding]:
    """The driver and the first GPU, asked in a child process: the caller must never own a CUDA context."""
    import subprocess

    script = (
        "import json\n"
        "from cuda.bindings import driver as d\n"
        "def ok(r):\n"
        "    assert r[0] == 0, str(r[0])\n"
        "    return r[1] if len(r) == 2 else r[1:]\n"
        "ok((*d.cuInit(0), None))\n"
        "n = ok(d.cuDeviceGetCount())\n"
        "a = d.CUdevice_attribute\n"
        "g = lambda v, k: int(ok(d.cuDeviceGetAttribute(k, v)))\n"
        "out = {'driver': int(ok(d.cuDriverGetVersion())), 'gpus': []}\n"
        "for i in range(n):\n"
        "    v = ok(d.cuDeviceGet(i))\n"
        "    out['gpus'].append({'name': ok(d.cuDeviceGetName(96, v)).split(b'\\0')[0].decode(),\n"
        "        'sm': [g(v, a.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), g(v, a.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)],\n"
        "        'sms': g(v, a.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)})\n"
        "print(json.dumps(out))\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else None
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1][:160]
    except subprocess.TimeoutExpired:
        answer, reason = None, "the driver did not answer within 60 s"
    if answer is None or not answer["gpus"]:
        instead = "numbers come from the simulator, times from the cost model, and every figure says so; compiling is real"
        return [
            Finding("driver", answer is not None, f"CUDA {answer['driver']}" if answer else f"none ({reason})", instead),
            Finding("gpu", False, "none", instead),
        ]
    version = answer["driver"]
    gpu = answer["gpus"][0]
    name = f"{len(answer['gpus'])} x {gpu['name']} (sm_{gpu['sm'][0]}{gpu['sm'][1]}, {gpu['sms']} SMs)"
    hopper = gpu["sm"][0] == 9
    enough = version >= 13000
    return [
        Finding(
            "driver",
            enough,
            f"CUDA {version // 1000}.{version % 1000 // 10}",
            "cubins of NVRTC 13 load" if enough else "too old for cubins of NVRTC 13: they need driver 580 or newer",
        ),
        Finding("gpu", True, name, "kernels run and are timed" if hopper else "kernels whose target fits it run; the others are simulated"),
    ]


def _sanitizer() -> Finding:
    import shutil

    tool = shutil.which("compute-sanitizer")
    return Finding(
        "sanitizer",
        tool is not None,
        tool or "not installed",
        "its findings are mapped to schedule lines" if tool else "guard bands, poisoned outputs and the gates must do",
    )


def _ray() -> Finding:
    import importlib.util

    here = importlib.util.find_spec("ray") is not None
    return Finding(
        "ray",
        here,
        "installed" if here else "not installed",
        "evaluations can be spread over a cluster" if here else "evaluations run on this machine, one process each",
    )


def _workspace(explicit: object) -> Finding:
    from .. import workspace as workspaces

    root = workspaces.locate(explicit)  # type: ignore[arg-type]  # argparse gives a Path or None
    if root is None or not root.is_dir():
        return Finding("workspace", False, "none here", "`cake serve` makes one; `cake verify` needs none")
    try:
        workspace = workspaces.load(root)
        return Finding("workspace", True, f"{root}, {workspace.store.candidates.count()} candidates", "evidence is kept there")
    except workspaces.WorkspaceError as error:
        return Finding("workspace", False, str(error), "repair it: no tool will work")
