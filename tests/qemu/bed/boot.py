# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One boot: a guest, or several that are linked, from start to exit."""

import contextlib
import dataclasses
import os
import pathlib
import selectors
import shlex
import socket
import subprocess
import tempfile
import threading
import time

import tree

QEMU = "qemu-system-x86_64"
BOOT_TIMEOUT = 240      # until the guest is up; long, as the host may be busy
GRACE = 20              # after the guest's own watchdog should have ended it

# On a busy host a guest that is to find out how fast its TSC is, or whether timer
# interrupts arrive, may be off by ten times, or panic. The HPET says how fast it is.
CLOCK = "no_timer_check tsc=unstable"

running = set()


class Slots:
    """How many guests run at once: each boot takes all of its own, first come,
    first served. One more than there are CPUs, as a guest that waits for leaks
    to age idles."""

    def __init__(self, count):
        self.free = count
        self.queue = []
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, count):
        ticket = object()
        with self.changed:
            self.queue.append(ticket)
            self.changed.wait_for(lambda: self.queue[0] is ticket and self.free >= count)
            self.queue.pop(0)
            self.free -= count
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self.free += count
                self.changed.notify_all()


slots = Slots(max(2, os.cpu_count() or 1) + 1)


@dataclasses.dataclass
class Boot:
    """What to boot and what to run there."""
    name: str
    kernel: str = "test"
    guests: int = 1
    suites: tuple = ()              # modules with KUnit suites
    suite_parameters: str = ""
    tests: tuple = ()               # names of guest tests
    cmdline: str = ""
    smp: int = 2
    mem: str = "768M"
    timeout: int = 120              # seconds, once it is up
    grace: int = GRACE
    host_root: bool = False
    kmemleak: bool = False
    modules: tuple = ()             # of the kernel, beside what ours need
    settings: tuple = ()            # NAME=DEFAULT; the environment knows better
    kind: str = "run"
    accel: str = "tcg,thread=multi"
    cpu: str = "max,la57=off"       # see machine()
    clock: str = CLOCK
    qemu: tuple = ()                # more of QEMU's arguments
    files: bytes = b""              # an archive with more files for the guest
    patience: int = 0               # the guest's timeout, if its clock isn't ours

    def job(self, role):
        index = "abc".index(role) + 1
        values = {
            "KIND": self.kind, "ROLE": role, "GUESTS": self.guests,
            "IP": f"10.0.0.{index}", "IP6": f"fd00::{index}",
            "SUITES": " ".join(self.suites),
            "SUITE_PARAMETERS": self.suite_parameters,
            "TESTS": " ".join(self.tests),
            "TIMEOUT": self.patience or self.timeout,
            "HOST_ROOT": "yes" if self.host_root else "",
            "KMEMLEAK": "yes" if self.kmemleak else "",
        }
        for setting in self.settings:
            name, _, default = setting.partition("=")
            values[name] = os.environ.get(name, default)
        return "".join(f"export {k}={shlex.quote(str(v))}\n" for k, v in values.items())


@dataclasses.dataclass
class Outcome:
    """What came of one guest."""
    boot: Boot
    role: str
    log: pathlib.Path
    status: object = None           # QEMU's, None when it had to be killed
    console: str = ""
    sections: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


def split_sections(text):
    """{name: [lines]} of the results port; the last line of a section that was
    cut off by the guest's end is "@@cut"."""
    sections, lines = {}, None
    for line in text.splitlines():
        if line.startswith("@@file "):
            if lines is not None:
                lines.append("@@cut")
            lines = sections.setdefault(line[7:], [])
        elif line == "@@end":
            lines = None
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        lines.append("@@cut")
    return sections


def machine(boot, built, console):
    """QEMU's command line, less what is per guest."""
    append = f"console=ttyS0 panic=-1 oops=panic loglevel=7 {boot.clock} {boot.cmdline}"
    if boot.kernel == "test":
        append += " kmemleak=on" if boot.kmemleak else " kmemleak=off"
    # la57=off: with five levels an interrupt early in the boot makes KASAN cry
    # wolf, as identify_cpu() forgets the feature for a moment.
    command = [
        # Not even a run that is killed leaves a guest behind.
        "setpriv", "--pdeathsig", "KILL",
        QEMU, "-accel", boot.accel, "-cpu", boot.cpu, "-machine", "q35",
        "-smp", str(boot.smp), "-m", boot.mem, "-nodefaults", "-no-user-config",
        "-display", "none", "-no-reboot", "-serial", console,
        "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
        "-device", "virtio-serial-pci",
        "-kernel", str(built.image), "-append", append, *boot.qemu]
    if boot.host_root:
        # The guest's root reads what the caller may, and writes nothing.
        command += ["-virtfs", "local,path=/,mount_tag=host,security_model=none,"
                    "readonly=on,multidevs=remap"]
    return command


def nic(role, sockets):
    """A cable of two datagram sockets: no order of start, and MTU 9000."""
    number = "ab".index(role) + 1
    other = "ba"["ab".index(role)]
    return ["-netdev", f"dgram,id=net,local.type=unix,local.path={sockets}/net-{role},"
            f"remote.type=unix,remote.path={sockets}/net-{other}",
            "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{number},"
            "host_mtu=9000,romfile="]


class Guest:
    """A QEMU process with its logs and its control connection."""

    def __init__(self, boot, role, built, log, sockets):
        self.boot, self.role, self.log = boot, role, log
        log.mkdir(parents=True)
        self.up = None
        self.control = None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{sockets}/control-{role}")
        self.listener.listen(1)
        initrd = pathlib.Path(sockets) / f"initrd-{role}"
        initrd.write_bytes(built.initramfs(boot.modules) +
                           tree.archive_file("bed/job", boot.job(role)) +
                           boot.files)
        command = machine(boot, built, f"file:{log}/console") + [
            "-initrd", str(initrd),
            "-chardev", f"file,id=results,path={log}/results",
            "-device", "virtserialport,chardev=results,name=results",
            "-chardev", f"socket,id=control,path={sockets}/control-{role}",
            "-device", "virtserialport,chardev=control,name=control"]
        if boot.guests == 2:
            command += nic(role, sockets)
        (log / "command").write_text(shlex.join(command) + "\n")
        self.started = time.monotonic()
        with open(log / "qemu", "wb") as qemu_log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                            stdout=qemu_log, stderr=qemu_log)
        running.add(self.process)

    def overdue(self):
        now = time.monotonic()
        if self.up is None:
            return now - self.started > BOOT_TIMEOUT
        return now - self.up > self.boot.timeout + self.boot.grace

    def outcome(self):
        """After the process has ended."""
        def read(name):
            path = self.log / name
            return path.read_text(errors="replace") if path.exists() else ""
        code = self.process.returncode
        return Outcome(self.boot, self.role, self.log,
                       status=code if code >= 0 else None,
                       console=read("console"),
                       sections=split_sections(read("results")),
                       seconds=time.monotonic() - self.started)


class Control:
    """The host's end of the control ports: who is up, who waits at a barrier."""

    def __init__(self, guests):
        self.guests = guests
        self.selector = selectors.DefaultSelector()
        self.buffers = {g.role: b"" for g in guests}
        self.waiting = {}
        for guest in guests:
            self.selector.register(guest.listener, selectors.EVENT_READ,
                                   (self._accept, guest))

    def poll(self, seconds):
        for key, _ in self.selector.select(seconds):
            handler, guest = key.data
            handler(guest)

    def _accept(self, guest):
        guest.control, _ = guest.listener.accept()
        self.selector.register(guest.control, selectors.EVENT_READ,
                               (self._read, guest))

    def _read(self, guest):
        try:
            data = guest.control.recv(4096)
        except ConnectionError:
            data = b""
        if not data:
            self.selector.unregister(guest.control)
            self._gone(guest)
            return
        *lines, rest = (self.buffers[guest.role] + data).split(b"\n")
        self.buffers[guest.role] = rest
        for line in lines:
            self._line(guest, line.decode(errors="replace"))

    def _line(self, guest, line):
        words = line.split(" ", 2)
        if words[0] == "up":
            guest.up = time.monotonic()
        elif words[0] == "bye":
            guest.control.sendall(b"bye\n")
        elif words[0] == "barrier" and len(words) == 3:
            self.waiting[guest.role] = words[1:]
            self._release()

    def _release(self):
        if len(self.waiting) < len(self.guests):
            return
        names = {name for name, _ in self.waiting.values()}
        if len(names) == 1:
            values = " ".join(self.waiting[role][1] for role in sorted(self.waiting))
            answer = f"go {names.pop()} {values}\n"
        else:
            answer = f"guests are at different barriers: {' '.join(sorted(names))}\n"
        self._answer_all(answer)

    def _gone(self, guest):
        """The others wait in vain."""
        self.guests = [g for g in self.guests if g is not guest]
        self._answer_all(f"guest {guest.role} is gone\n")

    def _answer_all(self, answer):
        for guest in self.guests:
            if guest.role in self.waiting:
                guest.control.sendall(answer.encode())
        self.waiting.clear()


def run(boot, trees, logs):
    """Boots and waits for the end. Returns the outcome of each guest."""
    with slots.take(boot.guests), \
            tempfile.TemporaryDirectory(prefix="kofi-") as sockets:
        return _run(boot, trees[boot.kernel], logs / boot.name, sockets)


def _run(boot, built, logs, sockets):
    guests = [Guest(boot, role, built, logs / role, sockets)
              for role in "abc"[:boot.guests]]
    control = Control(guests)
    try:
        while any(g.process.poll() is None for g in guests):
            control.poll(0.2)
            for guest in guests:
                if guest.process.poll() is None and guest.overdue():
                    guest.process.kill()
    finally:
        for guest in guests:
            guest.process.kill()
            guest.process.wait()
            running.discard(guest.process)
            guest.listener.close()
    return [g.outcome() for g in guests]


def kill_all():
    for process in list(running):
        process.kill()
