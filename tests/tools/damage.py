"""Damages for generated stores: what disks, foreign writers and hostile hands do to one."""

import damage_files
import damage_structure


def apply(rng, store, wanted):
    """Applies up to `wanted` damages, encodes the store in between, and answers a line for each."""
    plan = [rng.choice((damage_structure, damage_structure, damage_files)) for _ in range(wanted)]
    lines = [run(rng, store, damage_structure) for kind in plan if kind is damage_structure]
    store.encode()
    lines += [run(rng, store, damage_files) for kind in plan if kind is damage_files]
    return [line for line in lines if line]


def run(rng, store, kind):
    damage = rng.choice(kind.DAMAGES)
    detail = damage(rng, store)
    return detail and "%s: %s" % (damage.__name__, detail)
