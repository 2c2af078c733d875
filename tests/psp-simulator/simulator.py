#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PSP simulator: speaks a PSP's API, signs callbacks as it does, and keeps a ledger of what it really charged.

usage: simulator.py [--config FILE] [--port N] [--control-port N] [--tls-cert FILE --tls-key FILE] [--with-parent]

Prints one JSON line, {"port": ..., "control_port": ..., "url": ...}, then serves on 127.0.0.1 until SIGTERM.
FILE: {"accounts": [{"id", "psp", "secret_key", "webhook_secret", "callback_url", "livemode"}], "settings": {...}};
see README.md for the rules that make it misbehave.
"""

import argparse
import ctypes
import json
import signal
import sys

from core import Refused, Settings, World, take
from delivery import Deliveries
from server import Api, Control, Listener, tls_context
from stripe import Stripe

PR_SET_PDEATHSIG = 1
PSPS = (Stripe,)  # one row and one file per PSP


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--tls-cert")
    parser.add_argument("--tls-key")
    parser.add_argument("--with-parent", action="store_true", help="end when the starting process ends, however")
    options = parser.parse_args()

    stop_signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)  # before the first thread, which inherits the mask
    if options.with_parent:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    config = {}
    if options.config:
        with open(options.config, encoding="utf-8") as file:
            config = json.load(file)
    try:
        world = World(take(Settings, config.get("settings", {}), "settings"), PSPS, Deliveries)
        for document in config.get("accounts", []):
            world.put_account(document)
    except Refused as error:
        sys.exit(f"simulator: {error}")

    control = Control(world)
    tls = tls_context(options.tls_cert, options.tls_key) if options.tls_cert else None
    api = control.api = Api(world, control, options.port, tls)
    controller = Listener(world, control, options.control_port, control_only=True)
    scheme = "https" if tls else "http"
    ready = {
        "port": api.port,
        "control_port": controller.port,
        "url": f"{scheme}://127.0.0.1:{api.port}",
        "control_url": f"http://127.0.0.1:{controller.port}",
    }
    print(json.dumps(ready), flush=True)
    signal.sigwait(stop_signals)
    world.stopping.set()
    api.stop()
    controller.stop()
    world.deliveries.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
