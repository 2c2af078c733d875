# SPDX-License-Identifier: Apache-2.0
"""Wall clocks that a test steps: clock/clock_shim.c, preloaded, adds what a file says to the machine's time."""

import os
import shutil
import struct

from payfact_stack import build_dir


class Clock:
    """One process's (or one server's) clock. env() goes into its environment before it starts."""

    def __init__(self, directory, name):
        self.shim, self.path = directory / "clock_shim.so", directory / f"{name}.clock"
        if not self.shim.exists():  # beside the file: the user postgres must reach both
            shutil.copy(build_dir() / "tests" / "pay_clock_shim.so", self.shim)
            self.shim.chmod(0o755)
        self.offset_ms = 0
        self.path.write_bytes(struct.pack("=q", 0))
        self.path.chmod(0o644)

    def env(self):
        return {"LD_PRELOAD": str(self.shim), "PAY_CLOCK_FILE": str(self.path)}

    def set(self, offset_ms):
        self.offset_ms = offset_ms
        file = os.open(self.path, os.O_WRONLY)
        try:
            os.pwrite(file, struct.pack("=q", offset_ms * 1000), 0)
        finally:
            os.close(file)
