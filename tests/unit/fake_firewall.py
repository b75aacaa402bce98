"""A fake of iptables on every node of a fake stack: rules with counters, lost when a node restarts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fakes import NODES, FakeStack

from harness.model import ExecResult

STORAGE = "172.19.0.7"
FINE = ExecResult(status=0, output="")
BUILT_IN = ("INPUT", "OUTPUT", "FORWARD")


class FakeFirewall:
    """Answers `iptables`, `sh -c` with iptables lines, and `getent`, as a node of the stack would.

    `packets` is how many each node's rules have stopped. `stubborn` names nodes where deleting does
    nothing; `broken` those where every command fails.
    """

    def __init__(self, stack: FakeStack) -> None:
        self.rules: dict[str, dict[str, list[list[str]]]] = {node.name: _empty() for node in NODES}
        self.packets = {node.name: 5 for node in NODES}
        self.stubborn: set[str] = set()
        self.broken: set[str] = set()
        self.storage = STORAGE
        self.removals: list[str] = []
        stack.programs |= {"iptables": self._iptables, "sh": self._shell, "getent": self._resolve}

    def cut_nodes(self) -> list[str]:
        """The nodes with anything of the harness's in their rules."""
        return sorted(node for node, chains in self.rules.items() if chains != _empty())

    def restart(self, node: str) -> None:
        """The node's container restarts: its rules are gone."""
        self.rules[node] = _empty()

    def _resolve(self, node: str, argv: Sequence[str]) -> ExecResult:
        assert ["getent", "ahostsv4", "storage"] == list(argv), f"{node} resolves something else"
        return ExecResult(status=0, output=f"{self.storage}      STREAM storage\n{self.storage}  DGRAM\n")

    def _shell(self, node: str, argv: Sequence[str]) -> ExecResult:
        first, *lines = argv[2].split("\n")
        assert ("-c", "set -e") == (argv[1], first)
        for line in lines:
            done = self._iptables(node, shlex.split(line))
            if done.status != 0:
                return done
        return FINE

    def _iptables(self, node: str, argv: Sequence[str]) -> ExecResult:
        if node in self.broken:
            return ExecResult(status=4, output="iptables: Permission denied (you must be root).")
        assert ["iptables", "-w", "5"] == list(argv[:3])
        words, chains = list(argv[3:]), self.rules[node]
        if words == ["-v", "-S"]:
            return ExecResult(status=0, output=self._listing(node))
        action, chain, *rest = words
        if action in ("-D", "-F", "-X"):
            self.removals.append(f"{node} {' '.join(words)}")
            if node in self.stubborn:
                return FINE
        if (action == "-N") == (chain in chains):
            return ExecResult(status=1, output=f"iptables: Chain {chain}: exists already or not at all.")
        if action == "-N":
            chains[chain] = []
        elif action == "-A":
            chains[chain].append(rest)
        elif action == "-I":
            chains[chain].insert(int(rest[0]) - 1, rest[1:])
        elif action == "-D":
            chains[chain].remove(rest)
        elif action == "-F":
            chains[chain].clear()
        elif action == "-X":
            assert not chains[chain], "a chain with rules can't be deleted"
            assert not any(chain in rule for rules in chains.values() for rule in rules), "still referred to"
            del chains[chain]
        else:
            raise AssertionError(f"the fake knows no {action}")
        return FINE

    def _listing(self, node: str) -> str:
        chains = self.rules[node]
        lines = [f"-P {chain} ACCEPT -c 9 900" for chain in BUILT_IN]
        lines += [f"-N {chain}" for chain in chains if chain not in BUILT_IN]
        for chain, rules in chains.items():
            for number, rule in enumerate(rules):
                # All of them are counted by the first rule of a chain.
                packets = self.packets[node] if number == 0 else 0
                at = rule.index("-j")
                counted = [*rule[:at], "-c", str(packets), str(packets * 60), *rule[at:]]
                lines.append(f"-A {chain} {' '.join(counted)}")
        return "\n".join(lines) + "\n"


def _empty() -> dict[str, list[list[str]]]:
    return {chain: [] for chain in BUILT_IN}
