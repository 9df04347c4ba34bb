#!/usr/bin/env drgn
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Print the endpoints of the EFA provider with their peers, operations and slots.

  drgn -s .../kofi_efa.ko tools/kefa_dump.py [DEVICE...]                  the running kernel
  drgn -c vmcore -s vmlinux -s .../kofi_efa.ko tools/kefa_dump.py [...]   a crash dump

kofi_efa.ko is the loaded one with its debugging information, from the directory where it was built.
No lock is taken: on a running kernel an endpoint may change while it is being printed.
"""

import sys

from drgn import FaultError, Object, ProgramFlags, cast, container_of
from drgn.helpers.linux.list import hlist_for_each_entry, list_for_each_entry

prog = globals()["prog"]    # the program that drgn debugs


def variable(name):
    """A variable of the module. Without the kernel's own debugging information drgn doesn't find
    where a running kernel has its modules."""
    if prog.flags & ProgramFlags.IS_LIVE:
        with open("/proc/kallsyms", encoding="utf-8") as symbols:
            for address, _, symbol, *module in map(str.split, symbols):
                if (symbol, module) == (name, ["[kofi_efa]"]):
                    return Object(prog, prog[name].type_, address=int(address, 16))
    return prog[name]


class Names:
    """Texts of an enumeration's values, without their common prefix."""

    def __init__(self, enum, prefix):
        values = prog.type(f"enum {enum}").enumerators
        self.names = {value: name.removeprefix(prefix) for name, value in values}

    def __getitem__(self, value):
        return self.names.get(int(value), str(int(value)))


def peer_text(peer):
    return f" peer {int(peer.id)}" if peer else ""


def nonzero(obj, *members):
    """Text of those members that aren't 0."""
    return "".join(f" {name} {int(obj.member_(name))}" for name in members if obj.member_(name))


def entries(index, kind, member):
    """The entries of a struct kefa_index."""
    for bucket in range(index.buckets):
        # Segment n begins with bucket 2^n, segment 0 with bucket 0.
        seg = max(bucket.bit_length() - 1, 0)
        head = index.segs[seg] + (bucket - (1 << seg if seg else 0))
        yield from hlist_for_each_entry(kind, head, f"{member}.node")


def print_peers(rdm):
    states = Names("kefa_rpeer_state", "KEFA_RPEER_")
    for peer in sorted(entries(rdm.peers.by_conn, "struct kefa_rpeer", "by_conn"),
                       key=lambda peer: int(peer.id)):
        key, addr = int(peer.by_conn.key), int(peer.addr)
        gid = bytes(peer.gid).hex(":", 2)
        print(f"    peer {int(peer.id)} {states[peer.state]} gid {gid} qp {key >> 32} "
              f"connid {key & 0xffffffff:#x} addr {'none' if addr == 0xffffffff else addr} "
              f"next {int(peer.order.next_id)} expected {int(peer.order.exp_id)} "
              f"flags {int(peer.flags):#x}{nonzero(peer, 'nops', 'wrs', 'kept', 'owes')}")


def print_rops(rdm):
    """Operations of the ULP, and of peers; posted receives are only counted."""
    states, types = Names("kefa_rop_state", "KEFA_ROP_"), Names("kefa_pkt_type", "KEFA_")
    listed = 0
    for i in range(rdm.rops.size):
        rop = rdm.rops.ops[i]
        state = states[rop.state]
        listed += state == "LISTED"
        if state not in ("FREE", "LISTED"):
            print(f"    op {i} {state} {types[rop.type] if rop.type else '-'}"
                  f"{peer_text(rop.peer)} msg {int(rop.msg_id)} total {int(rop.total)} "
                  f"done {int(rop.done)} sent {int(rop.sent)} flags {int(rop.flags):#x}"
                  f"{nonzero(rop, 'wrs', 'owes', 'window', 'err', 'prov')}")
    print(f"    ops: {int(rdm.rops.used)} of {int(rdm.rops.size)} in use, {listed} posted receives")


def print_slots(rdm):
    """Send slots in use, and the number of receive slots by state."""
    states, uses = Names("kefa_ts_state", "KEFA_TS_"), Names("kefa_ts_what", "KEFA_TS_")
    types = Names("kefa_pkt_type", "KEFA_")
    for i in range(rdm.nts):
        ts = rdm.ts[i]
        if (state := states[ts.state]) != "FREE":
            op = f" op {int(ts.rop - rdm.rops.ops)}" if ts.rop else ""
            print(f"    send slot {i} {state} {uses[ts.what]} "
                  f"{types[ts.type] if ts.type else '-'}{peer_text(ts.peer)}{op} "
                  f"len {int(ts.len) + int(ts.seg.len)}{nonzero(ts, 'msg_id', 'again', 'err')}")
    states = Names("kefa_rs_state", "KEFA_RS_")
    slots = [states[rdm.rs[i].state] for i in range(rdm.nrs)]
    counts = "".join(f" {slots.count(state)} {state}" for state in states.names.values())
    print(f"    receive slots:{counts}; kept {int(rdm.kept)} of {int(rdm.budget)}")


def print_direct(ep):
    """Slots of efa-direct; those of plain receives are only counted."""
    direct = container_of(ep, "struct kefa_direct", "ep")
    states = Names("kefa_op_state", "KEFA_OP_")
    ntx = int(ep.tx.base.size)
    for i in range(direct.nops):
        op = direct.ops[i]
        if (state := states[op.state]) != "FREE" and i < ntx:
            print(f"    op {i} {state} flags {int(op.flags):#x} len {int(op.len)} "
                  f"head {int(op.head - direct.ops)}{nonzero(op, 'parts', 'err', 'prov_errno')}")
    recvs = sum(states[direct.ops[i].state] != "FREE" for i in range(ntx, direct.nops))
    print(f"    ops: {recvs} posted receives")


def print_ep(ep, rdm):
    states = Names("kefa_ep_state", "KEFA_EP_")
    sides = "".join(f" {name} {int(side.base.size) - int(side.nfree)}/{int(side.base.size)}"
                    for name, side in (("tx", ep.tx), ("rx", ep.rx)))
    print(f"  {'efa' if rdm else 'efa-direct'} qp {int(ep.hq.qpn)}: {states[ep.state]}{sides}"
          f"{nonzero(ep, 'stop_err', 'nheld', 'nrecvs')}")
    if rdm:
        rdm = cast("struct kefa_rdm *", ep)
        print_peers(rdm)
        print_rops(rdm)
        print_slots(rdm)
    else:
        print_direct(ep)


def main():
    rdm_kind = variable("kefa_rdm_kind").address_of_()
    devs = variable("kefa_devs").address_of_()
    for dev in list_for_each_entry("struct kefa_dev", devs, "list"):
        name = dev.name.string_().decode()
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        print(name)
        for dom in list_for_each_entry("struct kefa_domain", dev.domains.address_of_(), "list"):
            for ep in list_for_each_entry("struct kefa_ep", dom.eps.address_of_(), "list"):
                try:
                    print_ep(ep, ep.kind == rdm_kind)
                except FaultError as fault:
                    print(f"    it changed meanwhile: {fault}")


main()
