"""A program that lies inside a folder of libraries.

/usr/lib has to be executable, since shared objects are loaded from it; git, compilers and others
keep whole programs there. They are covered one by one.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: a library that does something when it is loaded; libraries there are the system's own.
"""

ATTACK = {
    "title": "Program inside a library folder",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["CWE-693", "hier(7) /usr/lib"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "/usr/lib/git-core/git"},
            "seen": ["EACCES"],
        }
    ],
    "needs": ["git"],
}


def attempt(kit):
    kit.run("/usr/lib/git-core/git", "config", "--file", kit.facts["witness"], "the.word", kit.word)
