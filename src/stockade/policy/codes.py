"""Every code that a policy can be refused or warned with, one table for code and docs.

Load errors stop the run (exit 2). Lint codes are warnings and notes; the file still means
what it says. Run refusals stop `stockade run` alone (102). `docs/reference/policy-keys.md`
is generated from this table and `policy.keys`.
"""

from __future__ import annotations

LOAD_ERRORS: dict[str, str] = {
    # the file
    "file-not-found": "there is no such file",
    "file-not-regular": "the policy is not a regular file (a folder, a pipe, a device)",
    "file-unreadable": "the file could not be opened or read",
    "file-too-large": "the file is larger than a policy may be",
    "file-not-utf8": "the file is not UTF-8 text",
    # the YAML
    "yaml-syntax": "the text is not YAML",
    "yaml-wildcard-unquoted": "a `*` outside quotes means an alias in YAML; a wildcard needs quotes",
    "yaml-alias": "aliases make a policy say something in two places; write it out",
    "yaml-anchor": "anchors serve only aliases, which a policy may not use",
    "yaml-tag": "tags change what a value means; a policy may not use them",
    "yaml-merge-key": "merge keys hide where a key comes from; write the keys out",
    "yaml-many-documents": "one file is one policy; a second document would be ignored by other readers",
    "yaml-too-deep": "the nesting is deeper than any policy needs",
    # the shape
    "empty-file": "the file says nothing",
    "version-missing": "`version: 1` is missing",
    "version-unknown": "this version of the language is not known",
    "unknown-key": "no such key here",
    "duplicate-key": "a key stands twice; readers differ about which one counts",
    "missing-key": "a key that is needed here is missing",
    "not-a-mapping": "keys and values are expected here",
    "not-a-list": "a list is expected here",
    "not-one-value": "one value is expected here",
    "empty-list": "an empty list here could mean all or nothing",
    "empty-value": "the value is empty",
    "unknown-word": "the word is not one of a closed set",
    "not-a-number": "a plain whole number is expected here",
    "size-unclear": "not a size such as 512KiB, 1MiB or 2GiB",
    "duration-unclear": "not a duration such as 60s or 5m",
    "rate-unclear": "not a rate such as 20/s",
    "text-unclear": "the text has characters that do not belong there",
    # rules
    "verdict-missing": "a rule says exactly one of allow, proxy and deny",
    "verdict-twice": "a rule says more than one of allow, proxy and deny",
    "host-with-scheme": "a host stands here, not a URL",
    "host-with-path": "a host stands here; paths have their own key",
    "host-with-port": "a host stands here; ports have their own key",
    "host-with-user": "a user name stands before the host",
    "host-malformed": "the host could be read in two ways or in none",
    "address-in-rule": "an address stands where a name is needed",
    "network-in-rule": "a network stands where a name is needed",
    "metadata-name": "a name of a cloud metadata service, which no rule can open",
    "wildcard-too-broad": "the wildcard covers names of people who have nothing to do with each other",
    "wildcard-misplaced": "a wildcard is `*.` at the front of a name and nothing else",
    "wildcard-not-here": "an exact name is needed here",
    "port-unclear": "not a port from 1 to 65535",
    "ports-missing": "this protocol has no usual port",
    "protocol-missing": "nobody can tell what is spoken on this port",
    "method-unclear": "not an HTTP method",
    "path-unclear": "not a path, or one that two servers read differently",
    "condition-in-allow": "an allow rule is a closed tunnel; what is inside cannot be limited",
    "condition-in-deny": "an amount, a credential or a content rule has no meaning in a denial",
    "proxy-without-requests": "only tls and http carry requests that a proxy rule could read",
    # internal
    "network-unclear": "not a network such as 10.20.0.0/24",
    "network-public": "the network is not private; rules alone open public addresses",
    "network-never": "the network is always denied; no entry can open it",
    # exec and files
    "program-unclear": "not the name or the path of a program",
    "program-too-broad": "the pattern could match any program",
    "folder-unclear": "not a path",
    "exec-conflict": "a list of programs, libraries or `code: closed` means nothing beside `mode: any`",
    # include
    "include-unknown": "no preset of that name ships with the package",
    "include-outside": "an include stays in the folder of the policy; links may not lead out",
    "include-cycle": "the files include each other",
    "include-too-many": "too many includes, or nested too deeply",
    "include-not-possible": "text without a file can include presets only",
}

LINT_CODES: dict[str, str] = {
    # translations
    "name-converted": "a name in Unicode was converted to the form that clients send",
    "name-respelled": "a name was read in another spelling than written",
    "word-unquoted": "other YAML readers take the word for a truth value, a number or a date",
    "listed-twice": "the same thing stands twice",
    # ways out
    "wildcard-whole-zone": "the wildcard covers a whole top-level zone",
    "wildcard-shared": "anyone can get a name under this wildcard, so it is a way out for data",
    "shared-place": "many people keep their things at this host, so it is a way out for data",
    "resolver-allowed": "names asked there are not seen by the policy",
    "metadata-below": "metadata names below this wildcard stay denied",
    "plain-http": "anyone on the way can read and change what is fetched",
    # rules that do nothing, or other things than they seem
    "deny-hides-all": "deny * hides every allow and every proxy",
    "deny-hides-rule": "a denial for the same place hides the rule; deny wins whatever the order",
    "proxy-hides-allow": "a proxy rule for the same place hides the allow; proxy wins",
    "rule-redundant": "another rule says the same",
    "rubric-hides-rule": "the rubric list closes this to the agent while scoring",
    "path-closes-host": "the path cannot be seen in a tunnel, so the whole host is closed",
    "internal-without-rule": "an internal entry opens nothing without a rule",
    "internal-port-unused": "no rule for this name uses the port",
    "rule-without-internal": "the class says internal, and no internal entry opens a private address",
    "metadata-in-network": "a metadata address inside the network stays denied",
    "network-broad": "the network is wider than a service needs",
    "catalogue-conflict": "two entries say different things about one host; the first counts",
    "nothing-permitted": "no rule permits a connection",
    # what the run needs
    "inspection-needed": "holds only where the gateway opens TLS",
    "unknown-asks": "destinations that nothing lists wait for a person",
    "hold-without-ask": "`hold` says how long an ask waits, and nothing asks",
    "exec-launched-only": "without an `exec:` key only the launched command may run",
    "exec-any": "any program may run",
    "exec-jit": "permitted programs may make new native code",
    "exec-unix-sockets": "Unix sockets may be made and connected inside",
    "exec-interpreter": "the program runs any code that it is given",
    "exec-starts-others": "the program starts other programs, each of which must be permitted itself",
    "exec-many-in-one": "one file is many programs, and all of them are permitted",
    "exec-loader": "the loader of programs runs any program file that it is given",
    "exec-script": "the interpreter of a listed script is permitted for every command line",
    "exec-pattern-broad": "the pattern matches a whole folder of programs",
    "exec-from-workspace": "the file lies where an earlier run may have written",
    "library-writable": "a library folder stays read-only for the worker, whatever `files:` says",
    "write-outside": "a folder outside the workspace may be written",
}

# What loads, and is shown and decided with, but `run` cannot hold yet; it stops with 102.
RUN_REFUSALS: dict[str, str] = {
    "inspection-not-available": "the rule needs the gateway to read or change what this version cannot",
}

CODES = LOAD_ERRORS | LINT_CODES | RUN_REFUSALS
