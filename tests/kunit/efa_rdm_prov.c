// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The files of fabric efa that need neither a device nor an endpoint. */
#include "../../prov/efa/rdm/packet.c"
#include "../../prov/efa/rdm/parse.c"
#include "../../prov/efa/rdm/build.c"
#include "../../prov/efa/rdm/index.c"
#include "../../prov/efa/rdm/backoff.c"
#include "../../prov/efa/rdm/peer.c"
#include "../../prov/efa/rdm/find.c"
#include "../../prov/efa/rdm/shake.c"
#include "../../prov/efa/rdm/rop.c"
#include "../../prov/efa/rdm/select.c"
