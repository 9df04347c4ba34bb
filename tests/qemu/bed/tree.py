# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Kernels, our modules built for them, and the guests' initramfs."""

import functools
import lzma
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[3]
QEMU_DIR = TOP / "tests" / "qemu"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "kofi"
BUSYBOX = pathlib.Path("/bin/busybox")

# Modules by which a guest communicates with the host, if its kernel has them as modules.
DRIVERS = ["virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p"]

running = set()


class Unavailable(Exception):
    """Something isn't available on this machine, so tests are skipped."""


def script(*args):
    """The output of a script in scripts/."""
    with subprocess.Popen([TOP / "scripts" / args[0], *args[1:]],
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True) as run:
        running.add(run)
        answer = run.communicate()[0]
        running.discard(run)
    if run.returncode == 3:
        raise Unavailable(f"no {' '.join(args[1:])} for this distribution")
    if run.returncode:
        raise SystemExit(f"{' '.join(args)} failed")
    return pathlib.Path(answer.strip())


def kill_all():
    for process in list(running):
        process.terminate()


def module_name(path):
    """The name of a module: ib_core for .../ib-core.ko.xz."""
    return pathlib.Path(path).name.split(".")[0].replace("-", "_")


class Tree:
    """A kernel with its modules, and our modules for it. Its name is one of plan.KERNELS."""

    def __init__(self, name):
        self.name = name
        version = name.removeprefix("stock-")
        if name == "test":
            self.kernel = script("kernel.sh", "test")
            self.image = self.kernel / "vmlinux"
        else:
            self.kernel = script("kernel.sh", "stock", version)
            self.image = self.kernel / "vmlinuz"
        self.release = (self.kernel / "release").read_text().strip()
        self.modules = self.kernel / "modules" / "lib" / "modules" / self.release
        self.build = script("build.sh", version)
        self.copy = tempfile.TemporaryDirectory()   # pylint: disable=consider-using-with
        self.ours = self._ours()
        self._copy_tests(pathlib.Path(self.copy.name))
        self.dependencies = self._dependencies()

    def _ours(self):
        """Copies of our modules by name, only of those that the last build made. Copies, because
        another build may replace them before all guests have booted."""
        order = (self.build / "modules.order").read_text().split()
        # Names of files are absolute or relative, as the kernel's makefiles have it.
        paths = [self.build / pathlib.Path(p.rpartition("/src/")[2]).with_suffix(".ko")
                 for p in order]
        return {module_name(p): pathlib.Path(shutil.copy(p, self.copy.name))
                for p in paths}

    @staticmethod
    def _copy_tests(root):
        for name in ("bed/guest", "bed/tools"):
            (root / name).mkdir(parents=True)
        shutil.copy(QEMU_DIR / "init", root / "init")
        for path in QEMU_DIR.glob("*.sh"):
            shutil.copy(path, root / "bed")
        for path in (*QEMU_DIR.glob("guest/*.[ps][yh]"), *QEMU_DIR.glob("selftest/*.sh")):
            shutil.copy(path, root / "bed" / "guest")
        for path in (*(TOP / "tools").iterdir(), *(TOP / "units").iterdir()):
            shutil.copy(path, root / "bed" / "tools")
        subprocess.run(["make", "-s", "-C", TOP / "tests/interop", "tools",
                        f"OUT={root}/bed/tools"], check=True)

    @functools.lru_cache(maxsize=None)
    def installed(self):
        """The files of make modules_install install, as an archive of /installed."""
        made = script("installed.sh", self.name.removeprefix("stock-"))
        with tempfile.TemporaryDirectory() as root:
            shutil.copytree(made, pathlib.Path(root) / "installed", symlinks=True)
            return archive(pathlib.Path(root))

    def _dependencies(self):
        """The kernel's modules: {name: [path, path of a dependency, ...]}"""
        table = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            path, _, needs = line.partition(":")
            table[module_name(path)] = [path, *needs.split()]
        return table

    def kernel_modules(self, names):
        """Paths of modules of the kernel: of these, of those that ours need, and dependencies."""
        wanted = set(names)
        if "efa" in wanted and self.name != "test":
            # Only for the tests that need it: it takes the kernel's source.
            script("kernel.sh", "with-efa", self.name.removeprefix("stock-"))
            self.dependencies = self._dependencies()
        for path in self.ours.values():
            depends = subprocess.run(["/sbin/modinfo", "-F", "depends", path],
                                     stdout=subprocess.PIPE, text=True, check=True)
            wanted.update(d for d in depends.stdout.strip().split(",") if d)
        paths = set()
        for name in wanted:
            paths.update(self.dependencies.get(name.replace("-", "_"), []))
        return sorted(paths)

    @functools.lru_cache(maxsize=None)
    def initramfs(self, names):
        """The initramfs of all guests of this kernel, as bytes."""
        with tempfile.TemporaryDirectory() as root:
            root = pathlib.Path(root)
            self._stage(root, names)
            return archive(root)

    def _stage(self, root, names):
        release = root / "lib" / "modules" / self.release
        for path in self.kernel_modules((*DRIVERS, *names)):
            target = release / path.removesuffix(".xz")
            target.parent.mkdir(parents=True, exist_ok=True)
            data = (self.modules / path).read_bytes()
            target.write_bytes(lzma.decompress(data) if path.endswith(".xz") else data)
        ours = release / "updates"
        ours.mkdir(parents=True)
        for path in self.ours.values():
            shutil.copy(path, ours)
        for path in self.modules.glob("modules.builtin*"):
            shutil.copy(path, release)
        (release / "modules.order").touch()
        subprocess.run(["/sbin/depmod", "-b", root, self.release], check=True)
        self._stage_system(root)

    def _stage_system(self, root):
        for name in ("bin", "sbin", "proc", "sys", "dev", "tmp"):
            (root / name).mkdir(parents=True)
        copy = pathlib.Path(self.copy.name)
        shutil.copytree(copy / "bed", root / "bed")
        shutil.copy(copy / "init", root / "init")
        shutil.copy(BUSYBOX, root / "bin" / "busybox")
        applets = subprocess.run([BUSYBOX, "--list"], stdout=subprocess.PIPE,
                                 text=True, check=True).stdout.split()
        for applet in applets:
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        # The kernel calls modprobe by this path.
        (root / "sbin" / "modprobe").symlink_to("../bin/busybox")
        (root / "bed" / "modules").write_text("\n".join(self.ours) + "\n")


def record(name, mode, data):
    """A member of a cpio archive in the "newc" format."""
    name = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
    return pad(head) + pad(data)


def pad(data):
    return data + bytes(-len(data) % 4)


def archive(root):
    members = []
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            data = os.readlink(path).encode()
        elif stat.S_ISREG(mode):
            data = path.read_bytes()
        else:
            data = b""
        members.append(record(str(path.relative_to(root)), mode, data))
    return b"".join(members) + record("TRAILER!!!", 0, b"")


def archive_file(name, content):
    """An archive of one file, text or bytes, to be appended to another archive."""
    data = content.encode() if isinstance(content, str) else content
    return record(name, stat.S_IFREG | 0o644, data) + record("TRAILER!!!", 0, b"")
