"""A name that looks like the permitted one, in letters of another script.

The first letter is a Cyrillic one. On the wire the name is `xn--...`, which no rule lists; a
filter that folds letters together, or a person who approves it by eye, takes it for the other.

Not covered: look-alikes within one script (`al1owed.test`), which are unlisted all the same.
"""

ATTACK = {
    "title": "Name in look-alike letters",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-1007", "R021", "R022", "UTS 39 section 4"],
    "zone": {"xn--llowed-2nf.test": {"a": ["93.184.216.66"]}},
    "arrives": [
        {"what": "request", "name": "xn--llowed-2nf.test"},
        {"what": "question", "name": "xn--llowed-2nf.test"},
    ],
    "stopped": [
        {"reason": ["lookalike"], "entry": ["transparent"], "where": {"name": "xn--llowed-2nf.test"}}
    ],
}


def attempt(kit):
    host = "\N{CYRILLIC SMALL LETTER A}llowed.test".encode("idna").decode()
    kit.talk(host, 80, kit.get("/", host))
