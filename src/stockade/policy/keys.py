"""Every key of the language, once: the loader, the JSON Schema and the reference page read it here.

A section is one kind of mapping. A key's `kind` names how its value is read
(`policy.parse` has a reader and `policy.schema` a fragment for each kind); ``[]`` after it
means a list of such values.
"""

from __future__ import annotations

from msgspec import Struct


class Key(Struct, frozen=True, kw_only=True):
    """One key of a section.

    Attributes:
        kind: How the value is read, for example ``port[]``.
        doc: What it means, one or two sentences of plain Markdown.
        is_required: The section is refused without it.
        may_be_empty: An empty list is clear here (it adds nothing).
        levels: The rules that may have it: any of ``allow proxy deny``; empty outside rules.
    """

    name: str
    kind: str
    doc: str
    is_required: bool = False
    may_be_empty: bool = False
    levels: tuple[str, ...] = ()


class Section(Struct, frozen=True, kw_only=True):
    """One kind of mapping, with its keys in the order of the reference page."""

    name: str
    title: str
    doc: str
    keys: tuple[Key, ...]

    def names(self) -> list[str]:
        return [key.name for key in self.keys]


_ALL = ("allow", "proxy", "deny")
_OPENING = ("allow", "proxy")

_POLICY = Section(
    name="policy",
    title="The file",
    doc="One YAML file, given with `-p`. It is never picked up from the working folder.",
    keys=(
        Key(name="version", kind="version", is_required=True, doc="The version of the language: `1`."),
        Key(
            name="include",
            kind="include[]",
            may_be_empty=True,
            doc="Presets that ship with the package (`python-docs`), or files beside this one (`team.yaml`). "
            "The result is the union; a denial from anywhere wins.",
        ),
        Key(name="rules", kind="rule[]", may_be_empty=True, doc="What may be reached, and what may not."),
        Key(
            name="rubric",
            kind="rubric[]",
            may_be_empty=True,
            doc="Closed to the identity `agent` in phase `scoring`, whatever any rule says. "
            "A bare host, or the mapping below.",
        ),
        Key(
            name="internal",
            kind="internal[]",
            may_be_empty=True,
            doc="The only way to a private or loopback address. Opens nothing without a rule.",
        ),
        Key(
            name="unknown",
            kind="unknown",
            doc="What happens to a destination that nothing lists: `deny` (the default), or `ask`, "
            "which holds it for a person and then denies. With includes, `deny` wins.",
        ),
        Key(
            name="hold",
            kind="duration",
            doc="How long an `ask` waits: `60s` (the default), `5m`. With includes, the shortest.",
        ),
        Key(
            name="catalogue",
            kind="catalogue[]",
            may_be_empty=True,
            doc="Says what places are, so that a denial can be named; opens nothing and closes nothing.",
        ),
        Key(name="exec", kind="exec", doc="Which programs may run besides the launched command."),
        Key(name="files", kind="files", doc="Changes to what the worker sees of the file system."),
        Key(
            name="limits",
            kind="limits",
            doc="A limit that is named and cannot be held stops the run. With includes, the smallest.",
        ),
    ),
)

_RULE = Section(
    name="rule",
    title="A rule",
    doc="Exactly one of `allow`, `proxy` and `deny` names the host; the other keys narrow the rule.",
    keys=(
        Key(
            name="allow",
            kind="host-pattern",
            levels=("allow",),
            doc='An end-to-end tunnel to this host. A bare name is that host only; `"*.example.test"` '
            "is any depth below, not `example.test` itself. No addresses.",
        ),
        Key(
            name="proxy",
            kind="host-pattern",
            levels=("proxy",),
            doc="The gateway reads and records each request, "
            "so methods, paths, account and amounts can be limited.",
        ),
        Key(
            name="deny",
            kind="closing-pattern",
            levels=("deny",),
            doc='Closed, whatever allows it. Takes `"*"` and single addresses too.',
        ),
        Key(name="class", kind="class", levels=_ALL, doc="What kind of place it is; shown in decisions."),
        Key(name="why", kind="text", levels=_ALL, doc="Your words; shown in decisions."),
        Key(
            name="ports",
            kind="port[]",
            levels=_ALL,
            doc="TCP ports. Default: 443, with `protocol: http` 80; in a denial every port.",
        ),
        Key(
            name="protocol",
            kind="protocol",
            levels=_ALL,
            doc="What is spoken: `tls` (default on 443), `http` (default on 80), `ssh`, `tcp`. "
            "Required on other ports.",
        ),
        Key(
            name="methods",
            kind="method[]",
            levels=("proxy", "deny"),
            doc="HTTP methods; default every method.",
        ),
        Key(
            name="paths",
            kind="path[]",
            levels=("proxy", "deny"),
            doc="Paths without query: `*` is any text inside one segment, `**` any number of segments "
            "(`/v1/**` is everything below `/v1/`). In a denial `/a/**` closes `/a` as well.",
        ),
        Key(
            name="phases",
            kind="phase[]",
            levels=_ALL,
            doc="When it is in force: `setup`, `work`, `scoring`; default always.",
        ),
        Key(
            name="identities",
            kind="identity[]",
            levels=_ALL,
            doc="Whom it is for: `agent`, `grader`. Default: the agent; a denial binds everyone.",
        ),
        Key(
            name="credential",
            kind="credential",
            levels=("proxy",),
            doc="A header that the gateway puts in. A request that brings one of its own is refused.",
        ),
        Key(
            name="max-body",
            kind="size",
            levels=("proxy",),
            doc="Largest request body: `512B`, `16KiB`, `1MiB`, `4GiB`.",
        ),
        Key(name="max-query", kind="size", levels=("proxy",), doc="Longest query string."),
        Key(
            name="rate",
            kind="rate",
            levels=("proxy",),
            doc="`20/s` or `30/m`; faster requests are slowed down, not refused.",
        ),
        Key(name="body", kind="body", levels=("proxy",), doc="What a request body may ask for."),
        Key(name="risk", kind="risk", levels=_ALL, doc="What a refusal under this rule is called."),
        Key(
            name="control",
            kind="control",
            levels=_ALL,
            doc="What a pass or a refusal under this rule is called.",
        ),
    ),
)

_CREDENTIAL = Section(
    name="credential",
    title="`credential`",
    doc="The worker never holds it.",
    keys=(
        Key(name="header", kind="header", is_required=True, doc="Name of the header."),
        Key(
            name="env",
            kind="variable",
            is_required=True,
            doc="Environment variable of the gateway with the whole value of the header.",
        ),
    ),
)

_BODY = Section(
    name="body",
    title="`body`",
    doc="Needs a gateway that reads bodies.",
    keys=(
        Key(
            name="forbid-tools", kind="tool[]", doc="Server-side tools that a model request may not declare."
        ),
        Key(
            name="graphql",
            kind="operation[]",
            doc="GraphQL operations that may be sent: `query`, `mutation`, `subscription`.",
        ),
    ),
)

_RUBRIC = Section(
    name="rubric",
    title="An entry of `rubric`",
    doc="A bare host closes the whole host. On a tunnelled host, paths close the whole host too, "
    "since they cannot be seen.",
    keys=(
        Key(name="host", kind="rubric-host", is_required=True, doc='A name, or `"*.name"`.'),
        Key(name="paths", kind="path[]", doc="Close only these paths, where the gateway can see them."),
        Key(name="why", kind="text", doc="Your words; shown in decisions."),
    ),
)

_INTERNAL = Section(
    name="internal",
    title="An entry of `internal`",
    doc="All three must fit: the name, the network that its answer lies in, and the port.",
    keys=(
        Key(name="host", kind="exact-host", is_required=True, doc="An exact name."),
        Key(
            name="networks",
            kind="network[]",
            is_required=True,
            doc="Private, carrier-grade or loopback networks, IPv4 and IPv6. "
            "A metadata address inside stays denied.",
        ),
        Key(name="ports", kind="port[]", is_required=True, doc="The ports."),
    ),
)

_CATALOGUE = Section(
    name="catalogue",
    title="An entry of `catalogue`",
    doc="Extends the catalogue that ships with the package.",
    keys=(
        Key(name="class", kind="class", is_required=True, doc="What the hosts are."),
        Key(name="risk", kind="risk", doc="What reaching them would mean; default by the class."),
        Key(name="control", kind="control", doc="The control that fits best; default `default-deny`."),
        Key(name="hosts", kind="closing-pattern[]", is_required=True, doc='Names and `"*.name"`.'),
    ),
)

_EXEC = Section(
    name="exec",
    title="`exec`",
    doc="The launched command is always permitted, and if it is a script, its interpreters are. "
    "Without the key nothing else may run. With includes, the union.",
    keys=(
        Key(
            name="mode",
            kind="exec-mode",
            doc="`listed` (the default), or `any`: every program may run, and every record says so. "
            "With includes, `listed` wins.",
        ),
        Key(
            name="allow",
            kind="program[]",
            may_be_empty=True,
            doc="A name (`git`: the file of that name in each of `/usr/local/bin`, `/usr/bin`, `/bin`, "
            "`/usr/local/sbin`, `/usr/sbin`, `/sbin`, `/usr/games`), an absolute path, a path below the "
            "workspace (`./tools/check`) or below your home (`~/.cargo/bin/cargo`). In a path `*` is any "
            "text inside one segment (`/usr/lib/git-core/*`). All of it is resolved once, when the run "
            "starts, to real files. A listed script brings its interpreter with it.",
        ),
        Key(
            name="libraries",
            kind="folder[]",
            may_be_empty=True,
            doc="Folders whose shared objects may be loaded; read-only for the worker.",
        ),
        Key(
            name="code",
            kind="exec-code",
            doc="`closed` (the default): a permitted program cannot make new native code inside itself. "
            "`jit`: it can, as browsers and Node must; then the promise is that no other program is "
            "started. `mode: any` means `jit`.",
        ),
        Key(
            name="unix-sockets",
            kind="boolean",
            doc="`true`: Unix sockets may be made and connected inside, as a browser and Python's "
            "`forkserver` and `Manager` do. `false` (the default): pairs of them only.",
        ),
    ),
)

_FILES = Section(
    name="files",
    title="`files`",
    doc="The default view: `/usr`, the interpreter's libraries, parts of `/etc`, and the workspace, "
    "read-only. Relative paths are below the workspace; links are not followed.",
    keys=(
        Key(name="read", kind="folder[]", may_be_empty=True, doc="Added to the view, read-only."),
        Key(
            name="write",
            kind="folder[]",
            may_be_empty=True,
            doc="May be written; `.` is the workspace. Also `run --write`.",
        ),
        Key(name="hide", kind="folder[]", may_be_empty=True, doc="Taken out of what is visible."),
    ),
)

_LIMITS = Section(
    name="limits",
    title="`limits`",
    doc="Per run, where nothing else is said. `memory` needs a control group; the others hold everywhere.",
    keys=(
        Key(
            name="memory",
            kind="size",
            doc="Memory and swap of the worker and all it starts, its private `/tmp` among it. The sandbox's "
            "own first processes count too (about 5 MiB).",
        ),
        Key(name="processes", kind="count", doc="Processes and threads of the worker at one time."),
        Key(name="open-files", kind="count", doc="Descriptors open at one time, in each process."),
        Key(name="file-size", kind="size", doc="Size that a file can be written to."),
        Key(
            name="time",
            kind="duration",
            doc="From the start of the command: `30s`, `10m`, `2h`. Then it gets SIGTERM, "
            "and everything is killed five seconds later.",
        ),
        Key(name="connections", kind="count", doc="Connections open at one time."),
        Key(name="upload", kind="size", doc="Bytes sent out, all connections together."),
    ),
)

SECTIONS: dict[str, Section] = {
    section.name: section
    for section in (
        _POLICY,
        _RULE,
        _CREDENTIAL,
        _BODY,
        _RUBRIC,
        _INTERNAL,
        _CATALOGUE,
        _EXEC,
        _FILES,
        _LIMITS,
    )
}

LEVELS = ("allow", "proxy", "deny")
