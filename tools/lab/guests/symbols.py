"""Where the functions of a guest's kernel are, and so what was executed by module and by function."""

import bisect
import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import progress
from bench.counting import Window

# What the kernel's own code is called here, and what runs in user mode.
KERNEL, USER = "kernel", "user"
# The kernel's support of modules in Rust: what C has in its headers, and so in the module.
RUST = "rust"
OF_RUST = re.compile(r"rust_helper_|_R")
# The compiler has changed how such a function is called, but a call of it is still one. What it has cut off from a
# function (.cold, .part) keeps its name: to go there is no call of the function.
VARIANT = re.compile(r"\.(isra|constprop|llvm)\.\d+")

# The names of a module and of a function in it.
Function = tuple[str, str]


@dataclass(frozen=True)
class Tally:
    """Instructions by module and by function, and how often the code at an address was gone to."""

    total: int
    modules: Counter[str]
    functions: Counter[Function]
    entries: Counter[int]


class Symbols:
    """The lines of /proc/kallsyms that tell of code."""

    def __init__(self, text: str) -> None:
        found = sorted({_symbol(line) for line in text.splitlines()})
        if not found or found[-1][0] == 0:
            raise progress.Failure("the kernel does not tell where its functions are")
        self._addresses = [address for address, _ in found]
        self._functions = [function for _, function in found]
        # There can be several static functions of a name.
        self._entries: defaultdict[Function, list[int]] = defaultdict(list)
        for address, function in found:
            self._entries[function].append(address)

    def entries(self, function: Function) -> list[int]:
        """Where functions of this name begin."""
        return self._entries.get(function, [])

    def entry(self, function: Function) -> int:
        """Where the only function of this name begins."""
        found = self.entries(function)
        if len(found) != 1:
            raise progress.Failure(f"{function[0]} has {len(found)} functions {function[1]}")
        return found[0]

    def tally(self, window: Window) -> Tally:
        """What was executed, by module and by function."""
        modules, functions, entries = Counter[str](), Counter[Function](), Counter[int]()
        for block in window.blocks:
            function = self._at(block.address)
            instructions = block.length * block.count
            modules[function[0]] += instructions
            functions[function] += instructions
            entries[block.address] += block.count
        modules[USER] += window.user
        return Tally(modules.total() + window.lost, modules, functions, entries)

    def _at(self, address: int) -> Function:
        index = bisect.bisect_right(self._addresses, address) - 1
        return self._functions[index] if index >= 0 else (KERNEL, "?")


def _symbol(line: str) -> tuple[int, Function]:
    address, _, rest = line.split(" ", 2)
    name, _, module = rest.partition("\t")
    place = module.strip("[]") or (RUST if OF_RUST.match(name) else KERNEL)
    return int(address, 16), (place, VARIANT.sub("", name))
