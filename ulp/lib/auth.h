/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef KULP_AUTH_H
#define KULP_AUTH_H

/* Free what the first secret needed. When the module is unloaded. */
void kulp_auth_exit(void);

#endif /* KULP_AUTH_H */
