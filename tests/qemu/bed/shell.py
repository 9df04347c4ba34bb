# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests to look at: make shell, make demo."""

import pathlib
import subprocess
import tempfile
import threading
import time

import boot as boots
import tree
import verdict

# On a stock kernel, which has too many to take them all along.
USUAL_MODULES = ("rdma_rxe", "ib_uverbs", "rdma_ucm", "null_blk", "loop", "brd",
                 "dm_flakey", "ext4", "xfs", "btrfs", "veth", "dummy", "sch_netem")


def shell(args):
    """A guest on this terminal. Two with --role a and --role b in two terminals
    share a network."""
    built = tree.Tree(args.kernel)
    modules = tuple(built.dependencies) if args.kernel == "test" else USUAL_MODULES
    boot = boots.Boot("shell", kernel=args.kernel, kind="shell", host_root=True,
                      mem="1G", cmdline="nokaslr" if args.gdb else "", modules=modules)
    role = args.role or "a"
    cable = tree.CACHE / "shell"
    cable.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="kofi-initrd-") as initrd:
        initrd.write(built.initramfs(modules) +
                     tree.archive_file("bed/job", boot.job(role)))
        initrd.flush()
        command = boots.machine(boot, built, "mon:stdio") + ["-initrd", initrd.name]
        for port in ("results", "control"):
            # Not "null", which is never connected, so that writers wait.
            command += ["-chardev", f"file,path=/dev/null,id={port}",
                        "-device", f"virtserialport,chardev={port},name={port}"]
        if args.role:
            (cable / f"net-{role}").unlink(missing_ok=True)
            command += boots.nic(role, cable)
        if args.gdb:
            command += ["-gdb", "tcp:127.0.0.1:1234"]
            print(f"gdb {built.kernel}/vmlinux -ex 'target remote :1234'")
        print("Ctrl-A X kills the guest.", flush=True)
        status = subprocess.run(command, check=False).returncode
    return 0 if status == verdict.EXIT_DONE else 1


def follow(path, ended):
    """Prints the lines of a results port as they come, without its framing."""
    while not path.exists() and not ended.is_set():
        time.sleep(0.1)
    shown = ""
    while True:
        last_round = ended.is_set()
        text = path.read_text(errors="replace") if path.exists() else ""
        lines = text[len(shown):].splitlines(keepends=True)
        for line in lines:
            if not line.endswith("\n") and not last_round:
                break
            shown += line
            if line.startswith("@@file state/"):
                return
            if not line.startswith("@@"):
                print(line, end="", flush=True)
        if last_round:
            return
        time.sleep(0.2)


def demo(args, logs):
    """tests/qemu/demo.sh on a distribution's kernel, shown as it goes."""
    trees = {args.kernel: tree.Tree(args.kernel)}
    boot = boots.Boot("demo", kernel=args.kernel, tests=("demo",), modules=USUAL_MODULES,
                       host_root=True)
    print(f"booting Linux {trees[args.kernel].release} in QEMU", flush=True)
    ended = threading.Event()
    follower = threading.Thread(
        target=follow, args=(pathlib.Path(logs) / "demo" / "a" / "results", ended))
    follower.start()
    outcome = boots.run(boot, trees, logs)[0]
    ended.set()
    follower.join()
    result = verdict.judge(None, outcome, [])
    for failure in result.failures:
        print(f"FAIL {failure}")
    print(f"logs: {logs}")
    print("the demo failed" if result.failures else "the demo went well")
    return 1 if result.failures else 0
