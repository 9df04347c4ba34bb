# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Directories for the logs of runs."""

import datetime
import os
import shutil

import tree

KEEP = 10
NAME = "%Y-%m-%d-%H%M%S"
# No run takes longer.
OLD = datetime.timedelta(hours=6)


def new_directory(kind):
    """Create a directory for this run, to which "latest" points. Delete the oldest directories,
    except those of runs that may not have ended."""
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
