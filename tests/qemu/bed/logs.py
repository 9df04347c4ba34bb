# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where runs leave their logs."""

import datetime
import os
import shutil

import tree

KEEP = 10
NAME = "%Y-%m-%d-%H%M%S"
# Nobody's run goes on for longer.
OLD = datetime.timedelta(hours=6)


def new_directory(kind):
    """A new one for this run, "latest" pointing to it, the oldest dropped, but
    none that may be another run's that is still going on."""
    top = tree.CACHE / kind
    now = datetime.datetime.now()
    old_name = f"{now - OLD:{NAME}}"
    logs = top / f"{now:{NAME}}-{os.getpid()}"
    logs.mkdir(parents=True)
    link = top / f".latest-{os.getpid()}"
    link.symlink_to(logs.name)
    link.rename(top / "latest")
    old = sorted(p for p in top.iterdir() if p.is_dir() and not p.is_symlink()
                 and p.name < old_name)
    for path in old[:-KEEP]:
        shutil.rmtree(path, ignore_errors=True)
    return logs
