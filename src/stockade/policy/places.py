"""Well-known hosts that lint has a word about. Advice only: nothing here opens or closes anything.

These are ordinary, useful services. What the entries have in common is that many people
can put things there, or that names are resolved there, so that permitting the host
permits more than the one thing that the author had in mind.
"""

from __future__ import annotations

import re

# host: what many people keep there
SHARED_PLACES: dict[str, str] = {
    "github.com": "repositories and gists",
    "api.github.com": "repositories and gists",
    "raw.githubusercontent.com": "files of every public repository",
    "gist.github.com": "gists",
    "codeload.github.com": "archives of every public repository",
    "objects.githubusercontent.com": "release files of every repository",
    "github-cloud.githubusercontent.com": "large files of every repository",
    "gitlab.com": "repositories and snippets",
    "bitbucket.org": "repositories and snippets",
    "codeberg.org": "repositories",
    "sourceforge.net": "projects and their files",
    "huggingface.co": "models, data sets and spaces",
    "hf.co": "models, data sets and spaces",
    "storage.googleapis.com": "buckets of every customer",
    "s3.amazonaws.com": "buckets of every customer",
    "cdn.jsdelivr.net": "files of every package and repository",
    "cdnjs.cloudflare.com": "files of many projects",
    "drive.google.com": "files of every user",
    "docs.google.com": "documents and forms of every user",
    "www.dropbox.com": "files of every user",
}

# The other hosts that one of these needs: listing the first alone fails half way (R029).
COMPANIONS: dict[str, str] = {
    "github.com": "its API, raw files, archives and large files are other hosts (preset git-host)",
    "huggingface.co": "its files come from hosts below hf.co",
}

RESOLVERS = frozenset(
    {
        "dns.google",
        "cloudflare-dns.com",
        "chrome.cloudflare-dns.com",
        "mozilla.cloudflare-dns.com",
        "one.one.one.one",
        "dns.quad9.net",
        "doh.opendns.com",
        "dns.nextdns.io",
        "dns.adguard-dns.com",
        "doh.cleanbrowsing.org",
        "dns.mullvad.net",
    }
)
_RESOLVER_LABEL = re.compile(r"(?:doh|dot|doq|dns-?query|resolver)[0-9]*", re.ASCII)

# First labels that services use for what their customers put there.
_SHARED_LABEL = re.compile(
    r"(?:blob|blobs|bucket|buckets|s3|r2|storage|objects?|pages|sites|usercontent|users|uploads?|files?|cdn|apps?)"
    r"(?:-[a-z0-9-]+)?|.*usercontent.*",
    re.ASCII,
)


def is_resolver_name(name: str) -> bool:
    """True for known public resolvers and for names that say they are one."""
    return name in RESOLVERS or bool(_RESOLVER_LABEL.fullmatch(name.partition(".")[0]))


def looks_shared(name: str) -> bool:
    """True if a name reads like the parent of its customers' names, for wildcards over it."""
    return bool(_SHARED_LABEL.fullmatch(name.partition(".")[0]))
