"""The chain of iptables rules that cuts a node off from an address: made, read and removed.

Source: iptables(8), iptables-extensions(8). Every rule is in a chain of the harness's own, so that
removing it touches nothing else. A container that restarts loses its rules.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from harness.errors import FaultError
from harness.ports import Stack

CHAIN = "HARNESS-CUT"
HOOKS = ("INPUT", "OUTPUT")
MODES = ("drop", "reject")

IPTABLES = ("iptables", "-w", "5")
TIMEOUT_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Chain:
    """What a node has of the chain: whether it is there, which hooks jump to it, its rules and packets."""

    there: bool
    jumps: tuple[str, ...]
    rules: int
    packets: int

    @property
    def cuts(self) -> bool:
        """True when both directions go through the chain and it has a rule for each."""
        return set(HOOKS) <= set(self.jumps) and self.rules >= len(HOOKS)

    def __str__(self) -> str:
        if not self.there:
            return f"no chain {CHAIN}"
        return f"chain {CHAIN}, {self.rules} rules, jumps from {', '.join(self.jumps) or 'nowhere'}"


def address_of(stack: Stack, node: str, name: str) -> str:
    """The IPv4 address that a node resolves a host name to. Raises FaultError."""
    found = stack.execute(node, ["getent", "ahostsv4", name], timeout_s=TIMEOUT_S, repeatable=True)
    first = found.output.split()[:1]
    try:
        return str(IPv4Address("".join(first)))
    except ValueError as error:
        raise FaultError(f"{node} can't resolve {name}: {found.output.strip() or 'no answer'}") from error


def cut(stack: Stack, node: str, *, address: str, port: int, mode: str) -> None:
    """Stop every TCP packet between the node and the port of the address, in both directions.

    `drop` is silence; `reject` resets the connection at once. Raises FaultError, also when the chain is
    there already.
    """
    target = ["-j", "DROP"] if mode == "drop" else ["-j", "REJECT", "--reject-with", "tcp-reset"]
    # The reset that answers our own packet comes in as if from the storage: it has to get through,
    # or rejecting is as silent as dropping.
    spared = [] if mode == "drop" else ["!", "--tcp-flags", "RST", "RST"]
    tcp = ["-A", CHAIN, "-p", "tcp", "-m", "tcp"]
    _change(
        stack,
        node,
        [
            ["-N", CHAIN],
            [*tcp, "-d", address, "--dport", str(port), *target],
            [*tcp, "-s", address, "--sport", str(port), *spared, *target],
            *(["-I", hook, "1", "-j", CHAIN] for hook in HOOKS),
        ],
    )


def look(stack: Stack, node: str) -> Chain:
    """What the node has of the chain now. Raises FaultError, and StackError when it is not running."""
    there, jumps, rules, packets = False, [], 0, 0
    for line in _rules(stack, node):
        if line[:2] == ["-N", CHAIN]:
            there = True
        elif line[:2] == ["-A", CHAIN]:
            rules += 1
            packets += int(line[line.index("-c") + 1])
        elif _jumps(line):
            jumps.append(line[1])
    return Chain(there=there, jumps=tuple(jumps), rules=rules, packets=packets)


def remove(stack: Stack, node: str) -> None:
    """Remove the chain and all jumps to it; does nothing when there is none.

    Raises FaultError when anything remains, and StackError when the node is not running.
    """
    found = look(stack, node)
    if not found.there:
        return
    jumps = [["-D", hook, "-j", CHAIN] for hook in found.jumps]
    _change(stack, node, [*jumps, ["-F", CHAIN], ["-X", CHAIN]])
    left = look(stack, node)
    if left.there:
        raise FaultError(
            f"{node}: rules remain after healing: {left}",
            todo="`harness heal` again; a restart of the container loses them too",
        )


def _change(stack: Stack, node: str, commands: Sequence[Sequence[str]]) -> None:
    """Run iptables commands in one go, up to the first that fails."""
    script = ["set -e", *(shlex.join([*IPTABLES, *command]) for command in commands)]
    done = stack.execute(node, ["sh", "-c", "\n".join(script)], user="root", timeout_s=TIMEOUT_S)
    if done.status != 0:
        raise FaultError(
            f"{node}: iptables failed with status {done.status}: {done.output.strip()}",
            todo="if the chain is there already, `harness heal` removes it",
        )


def _rules(stack: Stack, node: str) -> list[list[str]]:
    """Every rule of the node with its counters (-c packets bytes), as words."""
    found = stack.execute(node, [*IPTABLES, "-v", "-S"], user="root", timeout_s=TIMEOUT_S, repeatable=True)
    if found.status != 0:
        raise FaultError(f"{node}: iptables can't be read: {found.output.strip()}")
    return [line.split() for line in found.output.splitlines()]


def _jumps(line: Sequence[str]) -> bool:
    return line[:1] == ["-A"] and line[-2:] == ["-j", CHAIN]
