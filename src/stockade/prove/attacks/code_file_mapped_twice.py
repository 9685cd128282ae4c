"""One file mapped twice: through one mapping it is written, through the other it runs.

No memory is ever writable and executable, no protection changes, and the file need not look like a
program. The mount on which everything writable lies is without exec, and that counts for mappings.

Layers: mounts alone; without it the attack arrives.

Not covered: library folders that the policy opens; they are read-only while they may be loaded from.
"""

import os

import native

ATTACK = {
    "title": "One file mapped to write and to run",
    "group": "commands",
    "layer": "mounts",
    "risk": "boundary-tampering",
    "references": ["mmap(2) EPERM", "mount(8) noexec", "W^X"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["EPERM"]}],
}


def attempt(kit):
    def make():
        fd = os.open(f"{kit.folder}/twice", os.O_RDWR | os.O_CREAT, 0o755)
        os.write(fd, bytes(native.PAGE))
        native.put(native.mapped(native.READ | native.WRITE, native.SHARED, fd))
        native.write_by(native.mapped(native.READ | native.EXECUTE, native.SHARED, fd), kit)

    native.apart(kit, "mmap", make)
