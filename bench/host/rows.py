# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The measurements: a row for each test, and its figures, from its windows."""

import dataclasses
import statistics

import counts

MODES = ("polled", "handler", "sleeping")
WINDOWS = 5
BATCH = 16
READ_REGIONS = 8        # default of kofi_efa's parameter: messages that peers read at a time
DEPTH = 32              # of block devices
KIB = 1024

# Sizes by kind.
SIZES = (
    ("send", (0, 8, KIB, 8 * KIB)),
    ("recv", (0, 8, KIB, 8 * KIB)),
    ("inject", (8,)),
    ("write", (4 * KIB, 64 * KIB, KIB * KIB)),
    ("read", (4 * KIB, 64 * KIB, KIB * KIB)),
    ("reg", (4 * KIB, 64 * KIB, KIB * KIB)),
    ("inv", (4 * KIB, KIB * KIB)),
)
# These are measured one at a time as well, to tell what a batch costs.
SINGLE = (("send", 8), ("recv", 8), ("write", 4 * KIB), ("read", 4 * KIB), ("reg", 4 * KIB),
          ("inv", 4 * KIB))
ADDRESSES = (1, 64, 4096, 65536)
ENDPOINTS = (1, 16, 128)
POSTED = (1, 4096, 65536)       # receives, each for a tag of its own
MATCHED = 4096          # messages of a batch: so many that their buckets are an average
# Both sides are kOFI's: "rdmlocal" without the devices, "readtx" and "readrx" with messages from
# 32 KiB on read by the receiver, "emutx" and "emurx" with RMA by packets, "dgtx" and "dgrx" with
# datagrams, the last two connected.
READ_PAIRS = ("readtx", "readrx")
PAIRS = ("rdmpair", "rdmlocal", "rdmtx", "rdmrx", *READ_PAIRS, "emutx", "emurx", "dgtx", "dgrx",
         "msgtx", "msgrx")
# Block devices: both ends are measured together, with what has the data.
DISKS = ("null_blk", "nvme-loop", "nvme-tcp", "nvme-rxe", "nvme-rdma", "kofiblk")
RDM_DISK = "kofiblk-efa"        # on fabric efa
POLLED_DISK = "kofiblk-polled"  # with a polled queue
DISK_KINDS = ("read", "write")
DISK_SIZES = (4 * KIB, 128 * KIB)

# Parts that are the host's software; the others are the device and the benchmark.
HOST = counts.HOST + counts.BLOCK
ADDED = ("kofi", "kofi_efa", "kofi_ulp", "kofiblk", "kofi_rc")

POSTS = ("efasim_post_send", "efasim_post_recv", "rxe_post_send", "rxe_post_recv")
INTERRUPTS = ("cq_event",)
# Functions of workers. kefa_direct_soft() and kefa_mrq_soft() do the same in softirqs, where no
# task is woken, and kbv_work() runs in a softirq instead if the mode says so.
WORKERS = ("kefa_direct_work", "kefa_rdm_work", "kefa_mrq_work", "kofi_notifier_work", "kbv_work")
SOFTIRQ_WORKERS = tuple(name for name in WORKERS if name != "kbv_work")
# Functions that copy payload for the host, with their callers.
COPIES = (("_copy_from_iter", None), ("memcpy_orig", "efasim_post_send"))
# The device's worker. Code of the kernel that runs after it is charged to the device, also
# if it switches to the next task of the host.
DEVICE_WORKER = "efasim_dev_work"


@dataclasses.dataclass(frozen=True)
class Row:
    """A test. Names of devices go with the ULP."""
    ulp: str
    kind: str
    size: int
    mode: str
    batch: int = BATCH
    addresses: int = 1
    endpoints: int = 1

    def is_disk(self):
        return self.ulp in (*DISKS, RDM_DISK, POLLED_DISK)

    def name(self):
        if self.is_disk():
            return f"{self.ulp} {self.kind} {size_name(self.size)} depth={self.batch}"
        words = [self.ulp, self.kind, size_name(self.size), self.mode]
        if self.batch == 1:
            words.append("single")
        if self.addresses > 1:
            words.append(f"{'posted' if self.ulp == 'match' else 'addresses'}="
                         f"{self.addresses}")
        if self.endpoints > 1:
            words.append(f"endpoints={self.endpoints}")
        return " ".join(words)

    def command(self):
        ulp, device, peer = {"rxe": ("verbs", "rxe0", "rxe0"),
                             "tcp": ("tcp", "-", "-"),
                             "match": ("match", "-", "-"),
                             "tag": ("tag", "-", "-")}.get(self.ulp, (self.ulp, "es0", "es1"))
        if self.is_disk():
            ulp, device, peer = "blk", self.ulp, "-"
        return (f"{ulp} {device} {peer} {self.kind} {self.mode} {self.size} {self.batch} "
                f"{WINDOWS} {self.addresses - 1} {self.endpoints - 1}")


def size_name(size):
    if size >= KIB * KIB:
        return f"{size // KIB // KIB}MiB"
    return f"{size // KIB}KiB" if size >= KIB else f"{size}B"


def batch_for(size):
    return BATCH if size < KIB * KIB else 4


def compared():
    """The same work with kOFI and without."""
    for kind, sizes in SIZES:
        for size in sizes:
            for mode in MODES:
                # An inject has no completion.
                if kind == "inject" and mode != "polled":
                    continue
                for ulp in ("verbs", "efa"):
                    yield Row(ulp, kind, size, mode, batch_for(size))
    for kind, size in SINGLE:
        for mode in MODES:
            for ulp in ("verbs", "efa"):
                yield Row(ulp, kind, size, mode, 1)
        if kind not in ("write", "read"):
            for batch in (BATCH, 1):
                for ulp in ("verbs", "efa"):
                    yield Row(ulp, kind, size, "softirq", batch)


def own():
    """Registrations by the endpoint's queue pair."""
    for kind in ("reg", "inv"):
        for mode in ("polled", "handler"):
            for batch in (BATCH, 1):
                yield Row("efa", kind + "own", 4 * KIB, mode, batch)


def apart():
    """A message is sent and one received, with a completion queue for each."""
    for mode in ("handler", "softirq"):
        yield Row("efa", "recvapart", 8, mode, 1)


def scattered():
    """Registrations of single pages, which is how block devices have their data."""
    for kind in ("reg", "inv"):
        for ulp, whose in (("verbs", ""), ("efa", ""), ("efa", "own")):
            yield Row(ulp, kind + "list" + whose, 128 * KIB, "polled")


def growth():
    for addresses in ADDRESSES[1:]:
        yield Row("efa", "send", 8, "polled", addresses=addresses)
    for endpoints in ENDPOINTS[1:]:
        for ulp in ("verbs", "efa"):
            yield Row(ulp, "send", 8, "polled", endpoints=endpoints)


def one_piece():
    """By messages with one bio_vec, which is how block devices have their data."""
    for kind, size in (("send", 8), ("send", KIB), ("recv", KIB), ("write", 4 * KIB),
                       ("read", 4 * KIB)):
        yield Row("efa", kind + "msg", size, "polled")


def matching():
    """A message takes its receive, which is posted again."""
    for posted in POSTED:
        yield Row("match", "recv", 8, "polled", MATCHED, addresses=posted)


def tags():
    """kofiblk's messages: to set a command's tag, and to check it."""
    for kind in ("send", "recv"):
        yield Row("tag", kind, 64, "polled")


def messages():
    """Fabric efa: tagged messages, one side and both."""
    for mode in ("polled", "sleeping"):
        for kind in ("send", "recv"):
            for size in (8, KIB):
                yield Row("rdm", kind, size, mode)
    yield Row("rdm", "inject", 8, "polled")
    yield Row("rdm", "send", 8, "polled", 1)
    yield Row("rdm", "recv", 8, "polled", 1)
    for size in (8, KIB):
        yield Row("rdm", "late", size, "polled")
    for kind in ("send", "recv"):
        yield Row("rdm", kind, 8, "polled", addresses=ADDRESSES[-1])
    # The last of them is read by its receiver.
    for size in (8, KIB, 64 * KIB, KIB * KIB):
        for ulp in ("rdmpair", "rdmlocal"):
            yield Row(ulp, "send", size, "polled", batch_for(size))
    # Likewise, but only one side of the two is counted.
    for size, batch in ((8, BATCH), (KIB, BATCH), (64 * KIB, BATCH), (KIB * KIB, READ_REGIONS)):
        yield Row("rdmtx", "send", size, "polled", batch)
        yield Row("rdmrx", "recv", size, "polled", batch)
    for ulp, kind in (("readtx", "send"), ("readrx", "recv")):
        yield Row(ulp, kind, 64 * KIB, "polled", READ_REGIONS)
    # Connected endpoints.
    yield Row("msgtx", "send", 8, "polled")
    yield Row("msgrx", "recv", 8, "polled")


def one_sided():
    """Fabric efa: reads and writes, by the device, and by packets with each end counted; and
    additions with old values, which always go by packets."""
    for kind in ("write", "read"):
        yield Row("rdmtx", kind, 4 * KIB, "polled")
        for side in ("emutx", "emurx"):
            yield Row(side, kind, KIB, "polled")
    for side in ("rdmtx", "rdmrx"):
        yield Row(side, "fetch", 8, "polled")


def datagrams():
    """Fabric efa: one side of datagrams."""
    yield Row("dgtx", "send", 8, "polled")
    yield Row("dgrx", "recv", 8, "polled")


def alternatives():
    """RC queue pairs of rxe, and TCP, both ends together."""
    for kind, sizes in SIZES:
        if kind in ("send", "recv", "write", "read"):
            for size in sizes:
                for mode in ("polled", "sleeping"):
                    yield Row("rxe", kind, size, mode, batch_for(size))
    for size in (8, KIB, 4 * KIB, 8 * KIB, 64 * KIB, KIB * KIB):
        yield Row("tcp", "send", size, "polled", batch_for(size))


def block_devices():
    for disk in DISKS:
        for kind in DISK_KINDS:
            for size in DISK_SIZES:
                yield Row(disk, kind, size, "sleeping", DEPTH)
            yield Row(disk, kind, 4 * KIB, "sleeping", 1)
    for kind in DISK_KINDS:
        yield Row(RDM_DISK, kind, 4 * KIB, "sleeping", DEPTH)
    yield Row(POLLED_DISK, "read", 4 * KIB, "polled", 1)


def pairs():
    """Two CPUs at the same time, each with separate endpoints and completion queues."""
    yield Row("efa", "send", 8, "pair")
    yield Row("efa", "reg", 4 * KIB, "pair")


def all_rows():
    return [*compared(), *own(), *apart(), *scattered(), *one_piece(), *growth(), *matching(),
            *tags(), *messages(), *one_sided(), *datagrams(), *alternatives(), *block_devices()]


def waits(row):
    """The device takes so long over the data that the ULP looks in vain meanwhile, and
    how often it does is chance: it differs between builds of the same source. So does how many
    operations of 128 KiB a block device has for each event: what kOFI adds to a read of kofiblk
    was 6444 and 6820 in two boots of one build, 6 % more, and a row may only grow by 3 %."""
    return (row.kind in ("write", "read") and row.size > 4 * KIB or
            row.ulp in PAIRS and row.size == KIB * KIB or row.ulp in READ_PAIRS)


def checked():
    """The rows of kOFI that are compared with the baseline, each path once."""
    for row in all_rows():
        if waits(row):
            continue
        if (row.ulp in ("match", "tag", "kofiblk", RDM_DISK, POLLED_DISK, *PAIRS) or
                row.ulp == "nvme-rdma" and row.batch == DEPTH):
            yield row
        if row.ulp in ("efa", "rdm") and (row.mode in ("polled", "softirq") or
                                 (row.kind, row.size) in (("send", 8), ("recvapart", 8),
                                                          ("reg", 4 * KIB))):
            yield row


def copied(row, window):
    """Bytes that the host's software copied: of payload, or of block devices and pairs all."""
    if row.is_disk() or row.ulp in PAIRS:
        return sum(n for (part, _, _), n in window.copied.items() if part in HOST)
    return row.size * sum(n for (name, had), n in window.calls.items()
                          if any(name == c and by in (None, had) for c, by in COPIES))


def both(window, *parts):
    """The writers of each cache line that both CPUs wrote for one of these parts."""
    lines = [{w for w in writers if w[1] in parts} for writers in window.lines.values()]
    return [writers for writers in lines if len({w[0] for w in writers}) > 1]


def shared(windows):
    """Cache lines that both CPUs wrote for kOFI, in the middle one of the windows: how many,
    how many of them by locked instructions, and by what functions. (What an event sets off,
    once in some milliseconds, isn't in each window, but what operations share is.)"""
    found = sorted((both(window, "kofi", "kofi_efa") for window in windows), key=len)
    middle = found[len(found) // 2]
    return {"lines": len(middle),
            "locks": sum(len({w[0] for w in writers if w[4]}) > 1 for writers in middle),
            "where": sorted(", ".join(sorted({f"{name} for {had}" if had else name
                                              for _, _, name, had, _ in writers}))
                            for writers in middle)}


def after(window):
    """Instructions of the kernel after the device's worker, of which the host may have needed
    some."""
    return sum(n for (part, _, had), n in window.functions.items()
               if part == "device" and had == DEVICE_WORKER)


def figures(row, windows):
    """Figures of the median window, for one operation. If a block device has one at a time, the
    switch from the device's worker to the host counts as the host's."""
    def host(window):
        return (sum(window.parts[p] for p in HOST) +
                (after(window) if row.is_disk() and row.batch == 1 else 0))

    middle = sorted(windows, key=host)[len(windows) // 2]

    def each(number):
        return round(number / row.batch, 2)

    def calls(names):
        return each(sum(n for (name, _), n in middle.calls.items() if name in names))

    return {
        "parts": {p: each(middle.parts[p]) for p in counts.PARTS},
        "host": each(host(middle)),
        "added": each(sum(middle.parts[p] for p in ADDED)),
        "locked": each(sum(n for (whose, _, _), n in middle.locked.items()
                           if whose in ADDED)),
        "posts": calls(POSTS),
        "interrupts": calls(INTERRUPTS),
        "workers": calls(SOFTIRQ_WORKERS if row.mode == "softirq" else WORKERS),
        "copied": each(copied(row, middle)),
        "after": each(after(middle)),
        "spread": spread([host(w) for w in windows]),
    }, middle


def spread(values):
    """Spread of a row's windows, in percent of the middle one."""
    middle = statistics.median(values)
    return round(100 * (max(values) - min(values)) / middle, 1) if middle else 0.0
