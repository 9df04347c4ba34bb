# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One boot: a guest, or several that are linked, from start to exit."""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import selectors
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time

import tree

QEMU = "qemu-system-x86_64"
BOOT_TIMEOUT = 240      # until the guest is up; long, because the host may be busy
GRACE = 20              # after the guest's own watchdog should have ended it

# On a busy host, a guest that measures the rate of its TSC, or checks whether timer
# interrupts arrive, may be wrong by a factor of ten, or panic. So it uses the HPET.
CLOCK = "no_timer_check tsc=unstable"

# la57=off: with five levels, an interrupt early in the boot causes false KASAN reports, because
# identify_cpu() clears the feature for a moment.
# cx16=off: after cmpxchg16b QEMU's flags may have any value, if they were in memory when the
# block began (seen in 7.2, by pushfq after popfq, jmp, cmp, cmpxchg16b). The
# slab allocator uses it, and an interrupt just then returns with NT set: a double fault.
CPU = "max,la57=off,cx16=off"

# The guest would take long to read its code in the ACPI tables.
NO_HOTPLUG = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")

running = set()


def mebibytes(size):
    return int(size[:-1]) * {"M": 1, "G": 1024}[size[-1]]


# A guest's CPUs run in a thread each, or in turns in one thread. The former finds more
# races. In turns, no CPU spins for one that isn't scheduled, and two guests on
# two CPUs need only two thirds of the time.
AT_ONCE = "tcg,thread=multi"
BY_TURNS = "tcg,thread=single"

LOOK = 0.2              # seconds between looks for a free slot


def try_lock(name):
    """Try to take a lock. Return its open file, or None; it is released with the process."""
    (tree.CACHE / "lock").mkdir(parents=True, exist_ok=True)
    lock = open(tree.CACHE / "lock" / name, "wb")   # pylint: disable=consider-using-with
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


ours = {}               # locks that this run holds, with their names
taking = threading.Lock()


def take_any(names):
    """Try to take any of these locks. Return it, or None; and whether this run holds one."""
    with taking:
        for name in names:
            if lock := try_lock(name):
                ours[lock] = name
                return lock, True
        return None, any(name in names for name in ours.values())


@contextlib.contextmanager
def lock_any(names):
    lock, known = take_any(names)
    if not known:
        print("waiting for the guests of another run", flush=True)
    while not lock:
        time.sleep(LOOK)
        lock, _ = take_any(names)
    try:
        yield
    finally:
        with taking:
            lock.close()
            del ours[lock]


def slot_count(accel):
    """Maximum number of concurrent guests: at least two, because tests may need two. If CPUs of
    a guest take turns, one more than there are CPUs, because guests are sometimes idle."""
    return max(2, len(os.sched_getaffinity(0)) + (accel == BY_TURNS))


@contextlib.contextmanager
def slots(count, accel=AT_ONCE):
    """Take slots for guests. All runs that share the cache compete for these. A boot of
    several guests takes all its slots before another boot can take one."""
    names = [f"guest-{n}" for n in range(slot_count(accel))]
    with contextlib.ExitStack() as held:
        with lock_any(["guests"]):
            for _ in range(count):
                held.enter_context(lock_any(names))
        yield


@dataclasses.dataclass
class Boot:
    """A boot of one or several guests, and the tests that they run."""
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
    modules: tuple = ()             # modules of the kernel, besides those that ours need
    settings: tuple = ()            # NAME=DEFAULT, which the environment overrides
    kind: str = "run"
    level: str = "check"            # some guest tests do more at other levels
    accel: str = AT_ONCE
    cpu: str = CPU
    clock: str = CLOCK
    qemu: tuple = ()                # further arguments of QEMU
    files: bytes = b""              # an archive with more files for the guest
    patience: int = 0               # the guest's own timeout, if it differs from the host's
    lives: int = 1                  # number of times that a guest boots; it is killed in between
    drive: str = ""                 # size of the drive that a guest keeps for all its lives
    drive_writes: int = 0           # maximum writes per second; 0: no limit
    installed: bool = False         # the guest has the result of make install in /installed

    def job(self, role, life=1, used=0):
        """The parameters of a guest, with the time that it has left."""
        index = "abc".index(role) + 1
        values = {
            "KIND": self.kind, "ROLE": role, "GUESTS": self.guests, "LIFE": life,
            "IP": f"10.0.0.{index}", "IP6": f"fd00::{index}",
            "SUITES": " ".join(self.suites),
            "SUITE_PARAMETERS": self.suite_parameters,
            "TESTS": " ".join(self.tests),
            "TIMEOUT": self.patience or max(1, int(self.timeout - used)),
            "DRIVE": self.drive,
            "HOST_ROOT": "yes" if self.host_root else "",
            "KMEMLEAK": "yes" if self.kmemleak else "",
            "LEVEL": self.level,
        }
        for setting in self.settings:
            name, _, default = setting.partition("=")
            values[name] = os.environ.get(name, default)
        return "".join(f"export {k}={shlex.quote(str(v))}\n" for k, v in values.items())


@dataclasses.dataclass
class Outcome:
    """The outcome of one guest, in one of its lives."""
    boot: Boot
    role: str
    log: pathlib.Path
    status: object = None           # exit status of QEMU, or -signal; None if the bed killed it
    console: str = ""
    sections: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    life: int = 1
    killed: bool = False            # killed because a test requested it

    @property
    def name(self):
        return self.role if self.boot.lives == 1 else f"{self.role}, life {self.life}"


def split_sections(text):
    """{name: [lines]} of the results port. The last line of a section that was cut
    off by the guest's end is "@@cut". Lines outside of sections have the name ""."""
    sections, lines = {}, None
    for line in text[:text.rfind("\n") + 1].splitlines():
        if line.startswith("@@file "):
            if lines is not None:
                lines.append("@@cut")
            lines = sections.setdefault(line[7:], [])
        elif line == "@@end":
            lines = None
        elif lines is not None:
            lines.append(line)
        elif line:
            sections.setdefault("", []).append(line)
    if lines is not None:
        lines.append("@@cut")
    return sections


def machine(boot, built, console):
    """QEMU's command line without the options of a single guest."""
    # Where both endpoints are in one guest, the tests are about the device between them.
    append = ("console=ttyS0 panic=-1 oops=panic softlockup_panic=1 loglevel=7 "
              f"kofi_efa.local_transfer=0 {boot.clock} {boot.cmdline}")
    if boot.kernel == "test":
        append += " kmemleak=on" if boot.kmemleak else " kmemleak=off"
    command = [
        # If the run is killed, the guest ends, too.
        "setpriv", "--pdeathsig", "KILL",
        QEMU, "-accel", boot.accel, "-cpu", boot.cpu, "-machine", "q35", *NO_HOTPLUG,
        "-smp", str(boot.smp), "-m", boot.mem, "-nodefaults", "-no-user-config",
        "-display", "none", "-no-reboot", "-serial", console,
        "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
        "-device", "virtio-serial-pci",
        "-kernel", str(built.image), "-append", append, *boot.qemu]
    if boot.host_root:
        # The guest can read all files that the caller can, and write none.
        command += ["-virtfs", "local,path=/,mount_tag=host,security_model=none,"
                    "readonly=on,multidevs=remap"]
    return command


def nic(role, sockets):
    """A cable of two datagram sockets, so that guests start in any order; with MTU 9000."""
    number = "ab".index(role) + 1
    other = "ba"["ab".index(role)]
    return ["-netdev", f"dgram,id=net,local.type=unix,local.path={sockets}/net-{role},"
            f"remote.type=unix,remote.path={sockets}/net-{other}",
            "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{number},"
            "host_mtu=9000,romfile="]


class Guest:
    """A QEMU process with its logs and its control connection. It can be killed, and boot
    again in another life, which keeps nothing but its drive and its address."""

    def __init__(self, boot, role, built, logs, sockets):
        self.boot, self.role, self.built = boot, role, built
        self.logs, self.directory = logs, pathlib.Path(sockets)
        self.past = []              # outcomes of earlier lives
        self.born = time.monotonic()
        self.deadline = None        # of all its lives, once the first is up
        if boot.drive:
            with open(self._drive(), "wb") as drive:
                drive.truncate(mebibytes(boot.drive) << 20)
        self._start()

    def _drive(self):
        return self.directory / f"drive-{self.role}"

    def _start(self):
        self.life = len(self.past) + 1
        self.log = self.logs / (self.role if self.life == 1 else f"{self.role}-{self.life}")
        self.log.mkdir(parents=True)
        self.up = None
        self.shot = False           # the bed has killed it
        # Each life has a socket, so that messages of an earlier life are ignored.
        path = f"{self.directory}/control-{self.role}-{self.life}"
        self.control = socket.socket(socket.AF_UNIX)
        self.control.bind(path)
        self.control.listen(1)
        command = self._command(path)
        (self.log / "command").write_text(shlex.join(command) + "\n")
        self.started = time.monotonic()
        with open(self.log / "qemu", "wb") as qemu_log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                            stdout=qemu_log, stderr=qemu_log)
        running.add(self.process)

    def _command(self, control):
        boot, log = self.boot, self.log
        used = boot.timeout - self._left() if self.deadline else 0
        initrd = self.directory / f"initrd-{self.role}"
        initrd.write_bytes(self.built.initramfs(boot.modules) +
                           tree.archive_file("bed/job", boot.job(self.role, self.life, used)) +
                           boot.files + (self.built.installed() if boot.installed else b""))
        command = machine(boot, self.built, f"file:{log}/console") + [
            "-initrd", str(initrd),
            "-chardev", f"file,id=results,path={log}/results",
            "-device", "virtserialport,chardev=results,name=results",
            "-chardev", f"socket,id=control,path={control}",
            "-device", "virtserialport,chardev=control,name=control"]
        if boot.drive:
            # The host's page cache keeps what QEMU has written. So completed writes of the guest
            # survive the guest, and flushes can be ignored.
            command += ["-drive", f"file={self._drive()},id=drive,if=none,format=raw,"
                        f"cache=unsafe,throttling.iops-write={boot.drive_writes}",
                        "-device", "virtio-blk-pci,drive=drive"]
        if boot.guests == 2:
            command += nic(self.role, self.directory)
        return command

    def is_up(self):
        self.up = time.monotonic()
        self.deadline = self.deadline or self.up + self.boot.timeout

    def _left(self):
        return self.deadline - time.monotonic()

    def overdue(self):
        if self.up is None and time.monotonic() - self.started > BOOT_TIMEOUT:
            return True
        return self.deadline is not None and self._left() < -self.boot.grace

    def kill(self):
        if self.process.poll() is None:
            self.shot = True
            self.process.kill()

    def _was_killed(self):
        """True if the bed killed the guest, rather than another process or itself."""
        return self.shot and self.process.returncode == -signal.SIGKILL

    def end(self):
        self.kill()
        self.process.wait()
        running.discard(self.process)
        self.control.close()

    def begin_anew(self):
        """Kill the guest and boot it again. Return: False if it had ended by itself before, which
        must not be taken for the kill."""
        self.end()
        if not self._was_killed():
            return False
        self.past.append(self._outcome(killed=True))
        self._start()
        return True

    def _outcome(self, killed=False):
        """The outcome of the current life, after the process has ended."""
        def read(name):
            path = self.log / name
            return path.read_text(errors="replace") if path.exists() else ""
        return Outcome(self.boot, self.role, self.log,
                       status=None if self._was_killed() else self.process.returncode,
                       console=read("console"),
                       sections=split_sections(read("results")),
                       seconds=time.monotonic() - self.born,
                       life=self.life, killed=killed)

    def outcomes(self):
        """The outcomes of all lives."""
        return [*self.past, self._outcome()]


class Control:
    """The host's end of the control ports, by which guests report that they are up, wait at a
    barrier, and request to kill a guest."""

    def __init__(self, guests):
        self.guests = guests
        self.gone = None            # role of the first guest that ended: barriers fail then
        self.selector = selectors.DefaultSelector()
        self.buffers = {}
        self.waiting = {}
        for guest in guests:
            self._watch(guest)

    def poll(self, seconds):
        for key, _ in self.selector.select(seconds):
            handler, guest = key.data
            # A guest that was killed just now has another socket already.
            if key.fileobj is guest.control:
                handler(guest)

    def _watch(self, guest):
        self.buffers[guest.role] = b""
        self.selector.register(guest.control, selectors.EVENT_READ,
                               (self._accept, guest))

    def _accept(self, guest):
        listener = guest.control
        guest.control, _ = listener.accept()
        self.selector.unregister(listener)
        listener.close()
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
            guest.is_up()
        elif words[0] == "bye":
            self._answer(guest, "bye")
        elif words[0] == "barrier" and len(words) == 3:
            self.waiting[guest.role] = words[1:]
            self._release()
        elif words[0] == "kill" and len(words) == 2:
            self._kill(guest, words[1])

    def _kill(self, asker, role):
        guest = next((g for g in self.guests if g.role == role), None)
        if not guest:
            self._answer(asker, f"guest {role} is gone")
        elif guest.life == guest.boot.lives:
            self._answer(asker, f"guest {role} has no more lives")
        elif not self._begin_anew(guest):
            self._gone(guest)
            self._answer(asker, f"guest {role} is gone")
        elif asker is not guest:
            self._answer(asker, f"killed {role}")

    def _begin_anew(self, guest):
        self.selector.unregister(guest.control)
        if not guest.begin_anew():
            return False
        self.waiting.pop(guest.role, None)
        self._watch(guest)
        return True

    def _release(self):
        if self.gone:
            self._answer_all(f"guest {self.gone} is gone")
            return
        if len(self.waiting) < len(self.guests):
            return
        names = {name for name, _ in self.waiting.values()}
        if len(names) == 1:
            values = " ".join(self.waiting[role][1] for role in sorted(self.waiting))
            answer = f"go {names.pop()} {values}"
        else:
            answer = f"guests are at different barriers: {' '.join(sorted(names))}"
        self._answer_all(answer)

    def _gone(self, guest):
        """A guest is gone: release the others, which would wait for it forever."""
        self.guests = [g for g in self.guests if g is not guest]
        self.gone = self.gone or guest.role
        self._release()

    def _answer_all(self, answer):
        for guest in self.guests:
            if guest.role in self.waiting:
                self._answer(guest, answer)
        self.waiting.clear()

    @staticmethod
    def _answer(guest, answer):
        # The guest may have ended meanwhile, which is read soon.
        with contextlib.suppress(OSError):
            guest.control.sendall(answer.encode() + b"\n")


def run(boot, trees, logs):
    """Run a boot, and wait for its end. Return the outcome of each guest."""
    with slots(boot.guests, boot.accel):
        return run_now(boot, trees, logs)


def run_now(boot, trees, logs):
    """Run a boot whose slots are taken."""
    with tempfile.TemporaryDirectory(prefix="kofi-") as sockets:
        return _run(boot, trees[boot.kernel], logs / boot.name, sockets)


def _run(boot, built, logs, sockets):
    guests = []
    try:
        for role in "abc"[:boot.guests]:
            guests.append(Guest(boot, role, built, logs, sockets))
        control = Control(guests)
        while any(g.process.poll() is None for g in guests):
            control.poll(0.2)
            for guest in guests:
                if guest.overdue():
                    guest.kill()
    finally:
        for guest in guests:
            guest.end()
    return [outcome for guest in guests for outcome in guest.outcomes()]


def run_all(jobs, run_job):
    """Call run_job(job, held) in a thread for each job, a tuple that begins with the boot.
    This takes the slots, so that boots begin in this order; closing held gives them back."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for job in jobs:
            held = contextlib.ExitStack()
            held.enter_context(slots(job[0].guests, job[0].accel))
            pool.submit(run_job, job, held)


def kill_all():
    for process in list(running):
        process.kill()
