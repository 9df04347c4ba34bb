# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The boots of a run: the suites, and the guest tests by their needs."""

import dataclasses
import fnmatch
import itertools
import os
import pathlib
import re
import shutil
import subprocess

import tree
from boot import AT_ONCE, BY_TURNS, Boot, mebibytes

KERNELS = ("test", "stock-6.12", "stock-6.1", "stock-newest")
SUITES = tree.QEMU_DIR / "suites"

# Developers run the first level after each change, CI the first two.
LEVELS = ("check", "more", "full")


# The test kernel looks for data races (make kcsan) or counts which lines run (make
# coverage), and has no kmemleak.
VARIANT = os.environ.get("KOFI_VARIANT", "")


def accel(level, kernel, smp=2):
    """Mode in which CPUs run: at once, to find races, for all tests of level full, and for those of
    one kernel of level more. That kernel has no checkers, in which CPUs would mostly wait
    for locks."""
    often = level == "full" or (level, kernel) == ("more", "stock-6.12")
    return AT_ONCE if (often or VARIANT == "kcsan") and smp > 1 else BY_TURNS


def listed_suites():
    """{name: "", "slow" or "only-slow"}"""
    lines = (re.sub(r"#.*", "", line).split() for line in SUITES.read_text().splitlines())
    return {words[0]: "".join(words[1:]) for words in lines if words}


@dataclasses.dataclass(frozen=True)
class Needs:
    """Requirements in the comments on top of a guest test. Tests with the same ones
    share a boot."""
    kernel: str = "test"
    guests: int = 1
    smp: int = 0                # CPUs of a guest; 0: two if there is one guest, else one
    cmdline: str = ""
    alone: str = ""             # the test's name, if it shares its boot with no other test
    kmemleak: bool = False
    lives: int = 1
    drive: str = ""
    drive_writes: int = 0
    installed: bool = False     # the test needs the result of make install


@dataclasses.dataclass(frozen=True)
class Offers:
    """Requirements that don't prevent tests from sharing a boot."""
    mem: str = "768M"
    host_root: bool = False
    host_tools: tuple = ()
    modules: tuple = ()
    settings: tuple = ()


@dataclasses.dataclass
class GuestTest:
    name: str
    needs: Needs
    offers: Offers = Offers()
    timeout: int = 60
    level: str = LEVELS[0]


def read_header(path):
    """{key: value} of the "# key: value" lines."""
    header = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        match = re.fullmatch(r"# ([a-z-]+): +(.*\S)\s*", line)
        if match:
            header[match[1]] = match[2]
    return header


CONVERT = {
    "guests": int, "smp": int, "mem": str, "cmdline": str,
    "host-root": lambda v: v == "yes", "host-tools": lambda v: tuple(v.split()),
    "modules": lambda v: tuple(v.split()),
    "settings": lambda v: tuple(v.split()), "kmemleak": lambda v: v == "yes",
    "lives": int, "drive": str, "drive-writes": int, "installed": lambda v: v == "yes",
}


def read_tests(path):
    """A GuestTest for each kernel on which the test runs."""
    header = read_header(path)
    kernels = header.pop("kernel", "test").split()
    timeout = int(header.pop("timeout", 60))
    levels = {}
    for level in LEVELS[1:]:
        named = header.pop(level, "").replace("yes", " ".join(kernels)).split()
        levels.update(dict.fromkeys(named, level))
    # Another life would repeat the other tests of the boot.
    alone = path.stem if header.pop("alone", "no") == "yes" or "lives" in header else ""
    unknown = set(header) - set(CONVERT)
    if unknown:
        raise SystemExit(f"{path}: unknown needs: {' '.join(sorted(unknown))}")
    needs = {key.replace("-", "_"): CONVERT[key](value) for key, value in header.items()}
    offers = Offers(**{field.name: needs.pop(field.name)
                       for field in dataclasses.fields(Offers) if field.name in needs})
    if (set(kernels) - set(KERNELS) or set(levels) - set(kernels)
            or needs.get("guests", 1) not in (1, 2)):
        raise SystemExit(f"{path}: no such kernel or number of guests")
    leaks = needs.pop("kmemleak", False)
    return [GuestTest(path.stem, Needs(kernel=kernel, alone=alone, **needs,
                                       kmemleak=leaks and kernel == "test" and not VARIANT),
                      offers, timeout, levels.get(kernel, LEVELS[0]))
            for kernel in kernels]


def runs(level, at, only=None):
    """True if a test of a level runs at another one. The last level has all tests. A test
    that is named runs at any level unless its own is full."""
    return level == at or at == "full" or (bool(only) and level != "full")


def guest_tests(at, only=None):
    tests = [test for path in sorted(tree.QEMU_DIR.glob("guest/*.sh"))
             for test in read_tests(path) if test.needs.kernel == "test" or not VARIANT]
    return [t for t in tests if runs(t.level, at, only) and (not only or t.name in only)]


# Directories of tests of programs, which need no boot.
UNITTESTS = {"verdict": tree.QEMU_DIR / "selftest", "tools": tree.TOP / "tests" / "tools"}


def unknown(only, at, boots):
    """The names in only that are neither names of these boots nor tests of this level."""
    known = {*boots, *UNITTESTS, *(test.name for test in guest_tests(at, only))}
    return [name for name in only if name not in known]


def require_tools(test):
    """Programs of the host that the test runs below /host."""
    missing = [tool for tool in test.offers.host_tools
               if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    if missing:
        raise tree.Unavailable(f"this machine has no {' '.join(missing)}")


def require_programs(test):
    """For tests that need them, set DEBIAN13 to the directory with programs of Debian 13, SYSTEM to
    that with its systemd, and LIBFABRIC, unless it names another one, to that with programs of Debian
    testing."""
    if "SYSTEM=" in test.offers.settings:
        os.environ["SYSTEM"] = str(tree.script("newest.sh", "system", "trixie"))
    if "DEBIAN13=" in test.offers.settings:
        os.environ["DEBIAN13"] = str(tree.script("newest.sh", "user", "trixie"))
    if "LIBFABRIC=" in test.offers.settings:
        root = os.environ.get("LIBFABRIC")
        if not root:
            os.environ["LIBFABRIC"] = str(tree.script("newest.sh", "user", "testing"))
        elif not os.path.isdir(f"{root}/tmp"):
            raise SystemExit(f"LIBFABRIC={root}: this isn't a root directory")
        elif os.path.realpath(root).startswith("/tmp/"):
            raise SystemExit(f"LIBFABRIC={root}: guests have a /tmp of their own")


def require_blktests(test):
    """Check that there is a copy of blktests, for tests that run it."""
    if "BLKTESTS=" not in test.offers.settings:
        return
    path = os.environ.get("BLKTESTS")
    if not path:
        raise tree.Unavailable("BLKTESTS= names no copy of blktests")
    if not os.path.isfile(f"{path}/check"):
        raise SystemExit(f"BLKTESTS={path}: this isn't blktests")
    if os.path.realpath(path).startswith("/tmp/"):
        raise SystemExit(f"BLKTESTS={path}: guests have a /tmp of their own")


def require_driver(test, release):
    """Check that there is a build of Amazon's driver for this kernel, for tests of it."""
    if "EFA_KO=" not in test.offers.settings:
        return
    path = os.environ.get("EFA_KO")
    if not path:
        raise tree.Unavailable("EFA_KO= names no build of Amazon's driver")
    if not os.path.isfile(path):
        raise SystemExit(f"EFA_KO={path}: there is no such file")
    magic = subprocess.run(["/sbin/modinfo", "-F", "vermagic", path], stdout=subprocess.PIPE,
                           text=True, check=True).stdout
    if magic.split()[0] != release:
        raise tree.Unavailable(f"{path} is for {magic.split()[0]}")


def driver_file(settings):
    """An archive with that driver, for guests that need it; empty if there is none."""
    path = os.environ.get("EFA_KO")
    if not path or "EFA_KO=" not in settings:
        return b""
    return tree.archive_file("bed/efa.ko", pathlib.Path(path).read_bytes())


def boot_for(tests, level=LEVELS[0]):
    """One boot for tests of equal needs."""
    needs = tests[0].needs
    settings = tuple(sorted({s for t in tests for s in t.offers.settings}))
    name = "+".join(t.name for t in tests)[:60]
    smp = needs.smp or (2 if needs.guests == 1 else 1)
    return Boot(name=name if needs.kernel == "test" else f"{name}-{needs.kernel}",
                kernel=needs.kernel, guests=needs.guests,
                tests=tuple(t.name for t in tests), cmdline=needs.cmdline,
                smp=smp,
                mem=max((t.offers.mem for t in tests), key=mebibytes),
                timeout=sum(t.timeout for t in tests) + (30 if needs.kmemleak else 0),
                host_root=any(t.offers.host_root for t in tests),
                modules=tuple(sorted({m for t in tests for m in t.offers.modules} |
                                     ({"virtio_blk"} if needs.drive else set()))),
                settings=settings, files=driver_file(settings),
                kmemleak=needs.kmemleak, lives=needs.lives, drive=needs.drive,
                drive_writes=needs.drive_writes, installed=needs.installed, level=level, accel=accel(level, needs.kernel, smp))


def guest_boots(tests, level):
    groups = {}
    for test in tests:
        groups.setdefault((test.level == "full", test.needs), []).append(test)
    return [boot_for(group, level) for group in groups.values()]


def in_turn(boots):
    """Boots in the order in which they start: long ones first, and a boot of one guest after one
    of two, because both fit on the machine."""
    boots = sorted(boots, key=lambda boot: -boot.timeout)
    several, one = ([boot for boot in boots if (boot.guests > 1) == many]
                    for many in (True, False))
    return [boot for pair in itertools.zip_longest(several, one) for boot in pair if boot]


DEMOS = ("demo", "demo-nvme")


def demo_test(name, kernel):
    """The guest test of make demo or make demo-nvme, on a given kernel."""
    test = read_tests(tree.QEMU_DIR / "guest" / f"{name}.sh")[0]
    needs = dataclasses.replace(test.needs, kernel=kernel)
    return dataclasses.replace(test, needs=needs)


def suite_modules(built):
    """Our modules with suites, which are named by this rule."""
    return tuple(name for name in built.ours if name.endswith("_kunit"))


# Suites of the boots that run only some of efa_kunit's. Two boots have half of them each.
SUITES_OF = {"kunit-efa": "kefa_[!r]*", "kunit-rdm": "kefa_r*", "kunit-models": "kefa_rdm_*"}


# Cases that are marked as slow have a boot of their own, after which the others needn't run them.
SLOW = "kunit-slow"
QUICK = ("kunit", "kunit-efa", "kunit-rdm")


def suites_of(boot, listed):
    """The suites that must run in a boot."""
    if boot == SLOW:
        return [name for name, slow in listed.items() if slow]
    if boot in QUICK:
        listed = [name for name, slow in listed.items() if slow != "only-slow"]
    if boot in SUITES_OF:
        return fnmatch.filter(listed, SUITES_OF[boot])
    return [name for name in listed if boot != "kunit" or not name.startswith("kefa_")]


def suite_boots(built, at, only):
    modules = suite_modules(built)
    common = {"suites": modules, "timeout": 1200}
    # Several boots, for several CPUs. Most of the time would be spent waiting for grace periods.
    # kmemleak doubles the time of the rest.
    quick = {"accel": BY_TURNS, "kmemleak": bool(os.environ.get("LEAKS")) or at == "full",
             "timeout": 1200}
    efa = tuple(name for name in modules if name == "efa_kunit")
    expedite = "rcupdate.rcu_expedited=1"
    fast = f"{expedite} kunit.filter=speed>slow"
    only_some = {name: f"kunit.filter_glob={glob}" for name, glob in SUITES_OF.items()}
    boots = (*(("check", Boot(name, suites=efa, cmdline=f"{fast} {only_some[name]}", **quick))
               for name in ("kunit-rdm", "kunit-efa")),
             ("check", Boot("kunit", suites=tuple(n for n in modules if n not in efa),
                            cmdline=fast, **quick)),
             ("more", Boot(SLOW, suites=modules, cmdline=f"{expedite} kunit.filter=speed<=slow",
                           **quick)),
             ("full", Boot("kunit-parallel", **common)),
             # All moments, and models with many more steps. A case may take minutes.
             ("full", Boot("kunit-models", suites=efa, timeout=3600,
                           suite_parameters="chaos_seeds=10 chaos_steps=100000 rdm_long=1",
                           cmdline=only_some["kunit-models"] +
                                   " sysctl.kernel.hung_task_timeout_secs=0")),
             ("full", Boot("kunit-swiotlb", cmdline="swiotlb=force", **common)))
    return [boot for level, boot in boots
            if runs(level, at, only) and (not only or boot.name in only)]
