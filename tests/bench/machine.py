# SPDX-License-Identifier: Apache-2.0
"""What the machine is, how busy it is, and what a process has used of it."""

import os
import pathlib
import platform
import re
import subprocess
import time

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """User and system time of a process with all its threads, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def memory_mb(pid, name="VmHWM"):
    """VmHWM: the most it ever held; VmRSS: what it holds now."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) / 1024


def busy_s():
    """CPU seconds that the whole machine has spent, and those the hypervisor has taken away."""
    fields = [int(f) * TICK_S for f in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4] - fields[7], fields[7]


def load():
    return [round(value, 2) for value in os.getloadavg()]


def others_busy(seconds=1.0):
    """Share of the machine that is in use while this waits: what the neighbours take. 1 = all cores."""
    before = busy_s()[0]
    time.sleep(seconds)  # it is the length of the measurement
    return (busy_s()[0] - before) / seconds / os.cpu_count()


def _first_line(*command):
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "not there"
    return ((run.stdout or run.stderr).strip().splitlines() or ["?"])[0]


def _package(name):
    return _first_line("dpkg-query", "-W", "-f=${Version}", name)


def build(directory):
    """What kind of build was measured; only a release counts: no sanitizer, no fault points."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (pathlib.Path(directory) / "CMakeCache.txt").read_text(), re.M))
    kind, flags = cache["CMAKE_BUILD_TYPE"], cache.get(f"CMAKE_C_FLAGS_{cache['CMAKE_BUILD_TYPE'].upper()}", "")
    if kind not in ("Release", "RelWithDebInfo") or cache.get("PAY_SANITIZE") or cache.get("PAY_FAULTS") == "ON":
        raise SystemExit(f"{directory} is a {kind} build, with a sanitizer or fault points: only a release is measured")
    return f"{kind} ({' '.join(flag for flag in flags.split() if flag.startswith('-O'))})"


def versions(root, postgres_bin, build_directory):
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    pom = (root / "tests" / "support" / "stack" / "kafka-pom.xml").read_text()
    return {
        "machine": f"{os.cpu_count()} x {model[1] if model else '?'}, {int(memory[1]) // 1024} MB",
        "kernel": platform.release(),
        "distribution": _first_line("sh", "-c", ". /etc/os-release; echo $PRETTY_NAME"),
        "commit": _first_line("git", "-C", str(root), "describe", "--always", "--dirty"),
        "build": build(build_directory),
        "compiler": _first_line("cc", "--version"),
        "PostgreSQL": _first_line(str(postgres_bin / "postgres"), "--version").split()[2],
        "Apache Kafka": re.search(r"<kafka.version>(.*?)<", pom)[1],
        "librdkafka": _package("librdkafka1"),
        "libmicrohttpd": _package("libmicrohttpd12"),
        "nginx": _first_line("nginx", "-v").rsplit("/", 1)[-1],
    }
