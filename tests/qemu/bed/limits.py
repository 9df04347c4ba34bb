# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CPUs and memory that a run may use. In a container, these are less than the machine has."""

import math
import os
import pathlib
import re

CGROUPS = pathlib.Path("/sys/fs/cgroup")
OWN_CGROUP = pathlib.Path("/proc/self/cgroup")
MEMINFO = pathlib.Path("/proc/meminfo")


def group_limits(name):
    """The words of a limit of our control group (of version 2), and of all groups above it."""
    groups = OWN_CGROUP.read_text() if OWN_CGROUP.exists() else ""
    own = re.search(r"^0::/(.*)$", groups, re.M)
    path = pathlib.PurePath(own[1] if own else "")
    files = [CGROUPS / group / name for group in (path, *path.parents)]
    limits = [file.read_text().split() for file in files if file.exists()]
    return [words for words in limits if words[0] != "max"]


def cpus():
    """Number of CPUs that may run at once, but at least two, because tests have two guests."""
    quotas = [math.ceil(int(quota) / int(period))
              for quota, period in group_limits("cpu.max")]
    return max(2, min([len(os.sched_getaffinity(0)), *quotas]))


def room():
    """Available memory in GiB."""
    free = re.search(r"^MemAvailable: +(\d+) kB$", MEMINFO.read_text(), re.M)
    return min([int(free[1]) >> 20, *(int(words[0]) >> 30
                                      for words in group_limits("memory.max"))])
