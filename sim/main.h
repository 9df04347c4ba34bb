/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions of the module for both front ends: parameters and network. */
#ifndef EFASIM_MAIN_H
#define EFASIM_MAIN_H

#include <linux/errno.h>
#include <linux/kconfig.h>

#include "engine.h"

struct dentry;
struct net_device;

int efasim_params(struct efasim_dev_params *params, struct efasim_limits *limits);
int efasim_join(struct efasim_dev *eng, struct net_device *netdev);
void efasim_tell_tales(struct efasim_dev *eng, const char *name);

/* pci/main.c */
#ifdef EFASIM_HAS_PCI
int efasim_pci_init(struct dentry *debugfs);
void efasim_pci_exit(void);
void efasim_pci_netdev_gone(struct net_device *netdev);
#else
static inline int efasim_pci_init(struct dentry *debugfs)
{
	return 0;
}

static inline void efasim_pci_exit(void)
{
}

static inline void efasim_pci_netdev_gone(struct net_device *netdev)
{
}
#endif

#endif /* EFASIM_MAIN_H */
