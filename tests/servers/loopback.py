"""Run a server that would listen on every address of the machine so that only loopback sees it.

`python loopback.py PORT,PORT,... COMMAND...` listens on the ports of 127.0.0.1, then enters a new
network namespace, which has nothing but a loopback of its own, and runs the command there. What
comes in on a port is passed on to the same port inside. Linux only; needs root, or the right of
every user to make namespaces, which some systems withhold.

This file is run as a program: it must import the standard library only.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from functools import partial

HOST = "127.0.0.1"
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # of unshare(2)
SET_INTERFACE_FLAGS, INTERFACE_UP = 0x8914, 0x1  # of netdevice(7)


async def main() -> int:
    """Run the command to its end; its exit code."""
    ports = [int(port) for port in sys.argv[1].split(",")]
    listeners = [socket.create_server((HOST, port)) for port in ports]
    enter_new_network()
    server = await asyncio.create_subprocess_exec(*sys.argv[2:])
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.terminate)
    for listener, port in zip(listeners, ports, strict=True):
        await asyncio.start_server(partial(connect, port), sock=listener)
    return await server.wait()


def enter_new_network() -> None:
    """Leave the machine's network; sockets that are open stay in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    spaces = NEW_NETWORK if os.geteuid() == 0 else NEW_NETWORK | NEW_USER
    if libc.unshare(spaces):
        reason = os.strerror(ctypes.get_errno())
        sys.exit(f"cannot make a network namespace ({reason}): run as root")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", INTERFACE_UP)
        fcntl.ioctl(control, SET_INTERFACE_FLAGS, request)


async def connect(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: both directions until both have ended."""
    try:
        inner_reader, inner_writer = await asyncio.open_connection(HOST, port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 18):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass  # the other side is gone
    finally:
        writer.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
