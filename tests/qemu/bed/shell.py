# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Guests for people: make shell, make demo."""

import subprocess
import tempfile
import threading

import boot as boots
import plan
import tree
import verdict

# Modules in a guest with a stock kernel, which has too many to include all.
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


class Follower(threading.Thread):
    """Prints the lines of guests' results ports as they arrive, without framing and after
    the guest's name."""

    def __init__(self, log, roles):
        super().__init__()
        self.paths = {role: log / role / "results" for role in roles}
        self.shown = dict.fromkeys(roles, 0)
        self.ended = threading.Event()

    def run(self):
        last = False
        while not last:
            last = self.ended.wait(0.1)
            for role in self.paths:
                self._show(role, last)

    def _show(self, role, last):
        path = self.paths[role]
        text = path.read_text(errors="replace") if path.exists() else ""
        for line in text[self.shown[role]:].splitlines(keepends=True):
            if not line.endswith("\n") and not last:
                break
            if line.startswith("@@file state/"):
                break       # the rest is for the verdict
            self.shown[role] += len(line)
            if not line.startswith("@@"):
                print(f"{role}| {line.rstrip()}", flush=True)


def why(outcome):
    """Lines with a guest's failures and the location of its logs."""
    failures = verdict.judge(None, outcome, []).failures
    if failures:
        failures.append(f"see {outcome.log}/console and results")
    return [f"FAIL guest {outcome.name}: {failure}" for failure in failures]


def demo(args, logs):
    """Run a demo of tests/qemu/guest on a distribution's kernel, and show its output."""
    test = plan.demo_test(args.name, args.kernel)
    boot = plan.boot_for([test])
    print(f"demo: the kernel {args.kernel} and modules for it", flush=True)
    try:
        plan.require_tools(test)
        trees = {args.kernel: tree.Tree(args.kernel)}
    except tree.Unavailable as reason:
        print(f"the demo can't run: {reason}")
        return 1
    print(f"demo: booting Linux {trees[args.kernel].release} in QEMU, "
          f"{boot.guests} guests, a and b", flush=True)
    follower = Follower(logs / boot.name, "abc"[:boot.guests])
    follower.start()
    try:
        outcomes = boots.run(boot, trees, logs)
    finally:
        follower.ended.set()
        follower.join()
    failures = [line for outcome in outcomes for line in why(outcome)]
    for line in failures:
        print(line)
    print(f"logs: {logs}")
    print("the demo failed" if failures else "the demo went well")
    return 1 if failures else 0
